"""A load written as YAML: tables with made-up rows, and events of SQL with drawn values.

    tables:
      jobs:
        rows: 10000
        columns:
          id: {type: BIGINT PRIMARY KEY, value: row}
          state: {type: VARCHAR(10), value: {choice: [new, done], weights: [9, 1]}}
        indexes: [state]
    events:
      take:
        weight: 4                        # against the other events; 1 unless given
        transaction: true
        draw: {id: {zipfian: jobs}}      # from 1 to the table's rows, or [1, 500]
        statements:
          - SELECT state FROM jobs WHERE id = :id FOR UPDATE
          - {sql: UPDATE jobs SET state = 'done' WHERE id = :id, repeat: 2}
        think_time: 5ms

`values.py` has the rules for values. The template becomes a Lua script (`lua`) with all features of
scripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from dbdyno import shipped
from dbdyno.budget import content, within
from dbdyno.errors import PlanError, PlanMistake, UsageError
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.document import Document, Path, parse
from dbdyno.plan.mistakes import file_meant, nearest, shape_mistakes
from dbdyno.plan.spelling import Time
from dbdyno.plan.sql import NAMES, one_line, tables_in
from dbdyno.plan.values import (
    ROW,
    UUID,
    WEIGHT_MAX,
    Name,
    Scalar,
    Value,
    bind_type,
    example,
    expression,
    quoted,
)
from dbdyno.plan.workload import SCRIPT_LENGTH_MAX, TEMPLATE_SUFFIXES, is_script, known_workloads

ROWS_MAX: Final = 2**31 - 1
STATEMENTS_MAX: Final = 10_000
TRANSACTION: Final = 2  # BEGIN and COMMIT
EVENTS_MAX: Final = 256
_INSERT: Final = re.compile(r"(?:INSERT|REPLACE)(?: [A-Z_]+)*? INTO [`\"]?(\w+)", re.IGNORECASE)


class TemplateColumn(FiniteNoun):
    """A column: its SQL type with constraints, and the rule for its values."""

    type: Annotated[str, Field(min_length=1)]
    value: Value


class TemplateTable(FiniteNoun):
    """A table to create and fill.

    Attributes:
        indexes: columns of each index.
        options: SQL at the end of its CREATE TABLE.
    """

    rows: Annotated[int, Field(ge=0, le=ROWS_MAX)]
    columns: Annotated[dict[Name, TemplateColumn], Field(min_length=1)]
    indexes: tuple[str, ...] = ()
    options: str = ""


class Statement(FiniteNoun):
    """SQL with `:name` for drawn values; each repetition draws its own.

    Attributes:
        id: name in later statements for the key that the server gives to the row of this INSERT.
    """

    sql: Annotated[str, Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1, le=STATEMENTS_MAX)] = 1
    id: Name | None = None

    @property
    def table(self) -> str | None:
        """The table of an INSERT; None for another statement."""
        match = _INSERT.match(one_line(self.sql))
        return match[1] if match else None


class TemplateEvent(FiniteNoun):
    """Statements sent by a connection together; the event's latency covers them all.

    Attributes:
        draw: values by name, drawn as the event begins.
        think_time_ms: rest after the event in milliseconds, not part of its latency.
    """

    statements: Annotated[tuple[Statement, ...], Field(min_length=1, max_length=STATEMENTS_MAX)]
    weight: Annotated[float, Field(gt=0, le=WEIGHT_MAX)] = 1.0
    transaction: bool = False
    draw: dict[Name, Value] = {}
    think_time_ms: Annotated[float, Field(ge=0), Time("ms")] = 0.0

    def statement_count(self) -> int:
        """Number of statements sent by one event."""
        return sum(one.repeat for one in self.statements) + (TRANSACTION if self.transaction else 0)


class Template(FiniteNoun):
    """A whole load."""

    events: Annotated[dict[Name, TemplateEvent], Field(min_length=1, max_length=EVENTS_MAX)]
    tables: dict[Name, TemplateTable] = {}

    def shares(self) -> dict[str, float]:
        """Share of each event among all events, by name."""
        total = sum(event.weight for event in self.events.values())
        return {name: event.weight / total for name, event in self.events.items()}

    def rows(self) -> dict[str, int]:
        """Number of rows of each table, by name."""
        return {name: table.rows for name, table in self.tables.items()}


def read(text: str, source: str) -> Template:
    """The template of a YAML text that came from `source`.

    Raises:
        PlanError: all mistakes, each with its line.
        UsageError: it asks for too much work.
    """
    return within(f"the template {source}", lambda: _read(text, source))


def _read(text: str, source: str) -> Template:
    document = parse(text)
    if document.value is None:
        raise PlanError(source, document.mistakes or [PlanMistake("template", "is empty")])
    _write_in_full(document)
    template = None
    try:
        template = Template.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        document.mistakes.extend(shape_mistakes(document, error, Template, "a template"))
    if template is not None:
        document.mistakes.extend(_mistakes(document, template))
    if document.mistakes or template is None:
        raise PlanError(source, document.mistakes)
    return template


def _write_in_full(document: Document) -> None:
    """Convert short forms to long forms; values of other shapes are left for pydantic."""
    template = document.value if isinstance(document.value, dict) else {}
    for name, table in _entries(template, "tables").items():
        if isinstance(table.get("indexes"), str):
            table["indexes"] = [table["indexes"]]
        for key, column in _entries(table, "columns").items():
            _join_type(column)
            _write_value(document, ("tables", name, "columns", key), column, "value")
    for name, event in _entries(template, "events").items():
        statements = event.get("statements")
        if isinstance(draw := event.get("draw"), dict):
            for key in draw:
                _write_value(document, ("events", name, "draw"), draw, key)
        if isinstance(statements, list):
            event["statements"] = [{"sql": s} if isinstance(s, str) else s for s in statements]
        if "think_time" in event and "think_time_ms" in event:
            message = "stands beside think_time_ms; keep one of the two"
            document.add_mistake(("events", name, "think_time"), message)
        if "think_time" in event:
            event["think_time_ms"] = event.pop("think_time")


def _entries(part: dict[str, Any], key: str) -> dict[str, dict[str, Any]]:
    parts = part.get(key)
    items = parts.items() if isinstance(parts, dict) else ()
    return {name: one for name, one in items if isinstance(one, dict)}


def _join_type(column: dict[str, Any]) -> None:
    """Join the pieces of a type with a comma in its parentheses.

    Within braces YAML ends a text at a comma: ``{type: DECIMAL(10,2) NOT NULL, value: …}`` has the
    keys ``type`` and ``2) NOT NULL``, the latter without a value.
    """
    text = column.get("type")
    if not isinstance(text, str):
        return
    pieces, depth = [text], text.count("(") - text.count(")")
    keys = list(column)
    for key in keys[keys.index("type") + 1 :]:
        if depth <= 0 or column[key] is not None:
            break
        pieces.append(key)
        depth += key.count("(") - key.count(")")
    if depth == 0:
        column["type"] = ",".join(pieces)
        for key in pieces[1:]:
            del column[key]


def _write_value(document: Document, path: Path, part: dict[str, Any], key: str) -> None:
    """Convert a word to a key, a single length to both ends of a range, decimals to their text."""
    value = part.get(key)
    if isinstance(value, str) and value in (ROW, UUID):
        part[key] = {value: True}
    if not isinstance(value, dict):
        return
    for kind in ("text", "words"):
        if isinstance(value.get(kind), int):
            value[kind] = [value[kind], value[kind]]
    if isinstance(decimals := value.get("decimal"), list):
        where = (*path, key, "decimal")
        texts = [document.printed.get((*where, at), end) for at, end in enumerate(decimals)]
        value["decimal"] = texts
    if isinstance(members := value.get("json"), dict):
        for member in members:
            _write_value(document, (*path, key, "json"), members, member)


# References between names; pydantic has checked the shape by now.


def _mistakes(document: Document, template: Template) -> Iterator[PlanMistake]:
    for name, table in template.tables.items():
        path: Path = ("tables", name)
        for column, value in table.columns.items():
            where = (*path, "columns", column)
            yield from _of_value(document, where, value.value, template)
            for part in value.value.parts():
                if part.sequential is not None or part.recent is not None:
                    message = f"{part.kind} is for events; say {ROW} or uniform here"
                    yield document.mistake(where, message)
        for at, index in enumerate(table.indexes):
            for column in (one.strip() for one in index.split(",")):
                if column.split(" ")[0] not in table.columns:
                    missing = f"there is no column {column!r}{nearest(column, table.columns)}"
                    yield document.mistake((*path, "indexes", at), missing)
    inserted = {column for event in template.events.values() for column in _inserted(event)}
    for name, event in template.events.items():
        yield from _of_statements(document, ("events", name), event, template)
        yield from _of_draw(document, ("events", name), event, template, inserted)


def _of_statements(
    document: Document, path: Path, event: TemplateEvent, template: Template
) -> Iterator[PlanMistake]:
    known = set(event.draw)
    for at, statement in enumerate(event.statements):
        where = (*path, "statements", at)
        for match in NAMES.finditer(statement.sql):
            name = match[1]
            if "?" in match[0] and not match[0].startswith(("--", "/*")):
                yield document.mistake(where, "has a ?; write :name for a value that is drawn")
            elif name and name not in known:
                missing = f"there is no value :{name} in draw{nearest(name, known)}"
                yield document.mistake(where, missing)
        for name in tables_in(statement.sql) if template.tables else ():
            if name not in template.tables:
                unknown = f"there is no table {name!r}{nearest(name, template.tables)}"
                yield document.mistake(where, unknown)
        if statement.id is not None:
            if statement.id in known:
                yield document.mistake((*where, "id"), f"there is a value :{statement.id} already")
            if statement.table is None:
                yield document.mistake((*where, "id"), "is for INSERT INTO a table")
            known.add(statement.id)


def _of_draw(
    document: Document,
    path: Path,
    event: TemplateEvent,
    template: Template,
    inserted: Container[str | None],
) -> Iterator[PlanMistake]:
    used = {match[1] for one in event.statements for match in NAMES.finditer(one.sql)}
    for name, value in event.draw.items():
        where = (*path, "draw", name)
        yield from _of_value(document, where, value, template)
        if any(part.row for part in value.parts()):
            yield document.mistake(where, f"{ROW} is for columns; say sequential here")
        for part in (part for part in value.parts() if part.recent is not None):
            if part.recent not in inserted and part.table not in inserted:
                message = f"needs an INSERT INTO {part.table} with id, or sequential: {part.recent}"
                yield document.mistake(where, message)
        if name not in used:
            yield document.mistake(where, "is used by no statement")


def _inserted(event: TemplateEvent) -> dict[str, str]:
    """Columns and tables that get rows from an event, each with the name of the key in its SQL."""
    columns = {value.sequential: name for name, value in event.draw.items() if value.sequential}
    tables = {one.table: one.id for one in event.statements if one.id and one.table}
    return {**columns, **tables}


def _of_value(
    document: Document, path: Path, value: Value, template: Template
) -> Iterator[PlanMistake]:
    for key, member in (value.members or {}).items():
        yield from _of_value(document, (*path, "json", key), member, template)
    if value.table is not None:
        column = (value.sequential or value.recent or "").partition(".")[2]
        table = template.tables.get(value.table)
        if table is None:
            unknown = f"there is no table {value.table!r}{nearest(value.table, template.tables)}"
            yield document.mistake(path, unknown)
        elif column and column not in table.columns:
            missing = f"{value.table} has no column {column!r}{nearest(column, table.columns)}"
            yield document.mistake(path, missing)
        elif value.sequential is None and not table.rows:
            yield document.mistake(path, f"{value.table} has no rows to draw from")
    if any("\\" in text for text in value.texts):
        said = "has a backslash, which MySQL and PostgreSQL read in different ways"
        yield document.mistake(path, said)
    given = [value.constant, *(value.choice or ())]
    if any(isinstance(one, int) and abs(one) > 2**53 for one in given):
        yield document.mistake(path, "has a whole number beyond 2^53, which Lua would round")


# The script: a file of Lua with the template's own part in the middle.

_RUNTIME: Final = FilePath(__file__).with_name("template.lua")
_MIDDLE: Final = "-- TABLES AND EVENTS\n"
_COUNTS: Final = "-- Statements of each event: "
_EXAMPLES: Final = "-- Statements with values: "
_AS_COUNTS: Final = TypeAdapter(dict[Name, Annotated[int, Field(ge=1)]])
_AS_EXAMPLES: Final = TypeAdapter(dict[str, str])
_EXPLAINABLE: Final = re.compile(r"(?:SELECT|UPDATE|DELETE|WITH)\b[^;]*;?", re.IGNORECASE)
"""A single statement with a query plan: PostgreSQL would execute a statement behind it."""
_RETURNING: Final = re.compile(r" RETURNING ", re.IGNORECASE)
_SERIAL: Final = re.compile(r"\b(?:(?:BIG|SMALL)?SERIAL|IDENTITY)\b", re.IGNORECASE)
"""Type of a column whose keys PostgreSQL takes from a sequence."""
EXAMPLES_MAX: Final = 50
EXAMPLE_LENGTH_MAX: Final = 4_000
Stated = TypeVar("Stated", int, str)


def lua(template: Template, name: str) -> str:
    """The template as a Lua script in sysbench's language; `name` is its file's."""
    before, _, behind = _RUNTIME.read_text(encoding="utf-8").partition(_MIDDLE)
    counts = {name: event.statement_count() for name, event in template.events.items()}
    head = [
        f"-- Made by dbdyno of the template {json.dumps(name)}.",
        _COUNTS + json.dumps(counts),
        _EXAMPLES + json.dumps(_with_values(template)),
    ]
    return "\n".join([*head, before, _tables(template), *_events(template), behind])


def statement_counts(script: str) -> dict[str, int]:
    """Number of statements of each event, by name, in a script made by `lua`; else empty."""
    return _stated(script, _COUNTS, _AS_COUNTS)


def examples(script: str) -> dict[str, str]:
    """Statements with query plans in a script made by `lua`, with values filled in.

    Keys are the event and the statement's place in it (`take.2`). Empty for other scripts.
    """
    return _stated(script, _EXAMPLES, _AS_EXAMPLES)


def _stated(script: str, begin: str, shape: TypeAdapter[dict[str, Stated]]) -> dict[str, Stated]:
    """The JSON behind `begin` in the script's head; empty if it is missing."""
    for line in script.split("\n", 3)[:3]:
        if line.startswith(begin):
            with suppress(ValueError):
                return shape.validate_json(line.removeprefix(begin))
    return {}


def _with_values(template: Template) -> dict[str, str]:
    """Statements with a query plan, each once under the first place where it stands."""
    places: dict[str, str] = {}
    rows = template.rows()
    for name, event in template.events.items():
        values = {key: _literal(example(value, rows)) for key, value in event.draw.items()}
        for number, statement in enumerate(event.statements, 1):
            sql = _filled(statement.sql, values)
            if _EXPLAINABLE.fullmatch(sql) and len(sql) <= EXAMPLE_LENGTH_MAX:
                places.setdefault(sql, f"{name}.{number}")
            if statement.id is not None:
                values[statement.id] = _literal(rows.get(statement.table or "", 0) + 1)
    return {place: sql for sql, place in islice(places.items(), EXAMPLES_MAX)}


def _filled(sql: str, values: Mapping[str, str]) -> str:
    """The SQL on one line, with values in place of their names."""
    return one_line(NAMES.sub(lambda match: values[match[1]] if match[1] else match[0], sql))


def _literal(value: Scalar) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _tables(template: Template) -> str:
    statements = []
    rows = template.rows()
    for name, table in template.tables.items():
        columns = ", ".join(f"{column} {one.type}" for column, one in table.columns.items())
        values = ", ".join(
            f"literal({expression(one.value, rows)})" for one in table.columns.values()
        )
        create = f"CREATE TABLE {name} ({columns}) {table.options}".rstrip()
        statements.append(
            f"  {{ name = {quoted(name)}, rows = {table.rows},\n"
            f"    create = {quoted(create)},\n"
            f"    serials = {{ {', '.join(map(quoted, _serials(name, table)))} }},\n"
            f"    columns = {quoted(', '.join(table.columns))},\n"
            f'    row = function(row) return table.concat({{ {values} }}, ",") end,\n'
            f"    indexes = {{ {', '.join(map(quoted, table.indexes))} }} }},\n"
        )
    return f"local TABLES = {{\n{''.join(statements)}}}\n"


def _serials(name: str, table: TemplateTable) -> Iterator[str]:
    """SQL by which PostgreSQL gives keys above those of the loaded rows, as MySQL does."""
    for key, column in table.columns.items():
        if column.value.row and table.rows and _SERIAL.search(column.type):
            sequence = f"pg_get_serial_sequence('{name}', '{key.lower()}')"
            yield f"SELECT setval({sequence}, {table.rows})"


def _events(template: Template) -> Iterator[str]:
    parts = [p for e in template.events.values() for v in e.draw.values() for p in v.parts()]
    recents = dict.fromkeys(part.recent for part in parts if part.recent is not None)
    prepares: list[str] = []
    events = [_event(prepares, name, template, recents) for name in template.events]
    yield (
        "local STATEMENTS\nlocal function prepare_all()\n  STATEMENTS = {\n"
        + "\n".join(prepares)
        + "\n  }\nend\n"
    )
    columns = dict.fromkeys(part.sequential for part in parts if part.sequential is not None)
    pairs = (one.partition(".") for one in columns)
    sequences = ", ".join(f"{{ {quoted(t)}, {quoted(column)} }}" for t, _, column in pairs)
    yield f"local SEQUENCES = {{ {sequences} }}\n"
    rests = any(event.think_time_ms for event in template.events.values())
    yield f"local RESTS = {str(rests).lower()}\n"
    total = sum(event.weight for event in template.events.values())
    yield f"local TOTAL = {total!r}\nlocal EVENTS = {{\n{''.join(events)}}}\n"


def _event(prepares: list[str], name: str, template: Template, recents: Iterable[str]) -> str:
    """Lua of an event; its statements are added to `prepares`."""
    event, rows = template.events[name], template.rows()
    drawn = {key: expression(value, rows) for key, value in event.draw.items()}
    once = {n for s in event.statements if s.repeat == 1 for n in _with_marks(s.sql)[1]}
    types = {key: bind_type(value) for key, value in event.draw.items()}
    lines = [f'    once["{key}"] = {value}' for key, value in drawn.items() if key in once]
    lines += ['    say("BEGIN")'] if event.transaction else []
    for statement in event.statements:
        sql, names = _with_marks(statement.sql)
        binds = ", ".join(f'{{ "{n}", {types.get(n, "types.BIGINT")} }}' for n in names)
        more = ""
        if statement.id is not None:
            sql, returning = _without_returning(sql)
            more = f", {quoted(statement.id)}, {quoted(returning)}"
        prepares.append(f"    prepared({quoted(sql)}, {{ {binds} }}{more}),")
        call = f"execute(STATEMENTS[{len(prepares)}]"
        if statement.repeat == 1:
            lines.append(f"    {call}, once)")
            continue
        lines.append(f"    for _ = 1, {statement.repeat} do")
        again = {n: drawn.get(n, f'once["{n}"]') for n in names}
        lines += [f'      each["{n}"] = {value}' for n, value in again.items()]
        lines += [f"      {call}, each)", "    end"]
    lines += ['    say("COMMIT")'] if event.transaction else []
    inserted = _inserted(event)
    for recent in recents:
        if key := inserted.get(recent, inserted.get(recent.partition(".")[0], "")):
            values = "each" if key in drawn and key not in once else "once"
            lines.append(f'    remember({quoted(recent)}, {values}["{key}"])')
    rest_us = round(event.think_time_ms * 1000)
    return (
        f"  {{ name = {quoted(name)}, weight = {event.weight!r}, rest_us = {rest_us},\n"
        "    run = function()\n" + "\n".join(lines) + "\n  end },\n"
    )


def _with_marks(sql: str) -> tuple[str, list[str]]:
    """The SQL on one line with ? for its values, and their names."""
    names: list[str] = []

    def mark(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        names.append(match[1])
        return "?"

    return one_line(NAMES.sub(mark, sql)), names


def _without_returning(sql: str) -> tuple[str, str]:
    """The SQL up to RETURNING, and from there; MySQL sends the key with its OK."""
    ends = [match.start() for match in _RETURNING.finditer(sql)]
    at = ends[-1] if ends and "'" not in sql[ends[-1] :] else len(sql)
    return sql[:at], sql[at + 1 :]


# Files of workloads.


def text_of(path: FilePath) -> str:
    """The text of a workload's file; UsageError if it cannot be read or is too long."""
    try:
        text = content(path, 4 * SCRIPT_LENGTH_MAX).decode().replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = _in_its_place(path) if isinstance(error, FileNotFoundError) else None
        raise UsageError(f"{path} cannot be read: {reason}", hint=hint) from error
    if len(text) > SCRIPT_LENGTH_MAX:
        raise UsageError(f"{path} is longer than {SCRIPT_LENGTH_MAX:,} characters")
    return text


def _in_its_place(path: FilePath) -> str:
    if path.stem in known_workloads():
        return f"{path.stem} is built in: leave {path.suffix} out"
    otherwise = f"it was looked for in {path.parent.absolute()}"
    return file_meant(path, f"*{path.suffix}", otherwise, shipped.WORKLOADS)


def take_script(workload: dict[str, Any], folder: FilePath) -> str | None:
    """Put the text of a script or template into a workload that names its file.

    Args:
        workload: as typed; its name becomes the file's. A workload with a text is left alone.
        folder: where a relative path begins; a missing file is looked up among dbdyno's own.

    Returns:
        A message if the text cannot be taken; else None.
    """
    name = workload.get("name")
    if not isinstance(name, str) or not is_script(name) or "script" in workload:
        return None
    path = FilePath(shipped.path_of(name, shipped.WORKLOADS, str(folder)))
    try:
        text = text_of(path)
        if name.endswith(TEMPLATE_SUFFIXES):
            if workload.get("options"):
                return f"the template {name} has no options; what differs stands in the file"
            text = lua(read(text, name), path.name)
    except UsageError as error:
        return error.one_line
    workload["script"] = text
    workload["name"] = path.name
    return None
