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

It becomes a Lua script (`lua`) with all features of scripts. `sysbench.rand` draws the values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from dbdyno import shipped
from dbdyno.budget import content, within
from dbdyno.errors import PlanError, PlanMistake, UsageError
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.document import Document, Path, parse
from dbdyno.plan.mistakes import file_meant, nearest, shape_mistakes
from dbdyno.plan.spelling import COLUMN_PATTERN, NAME_PATTERN, Time
from dbdyno.plan.sql import NAMES, one_line, tables_in
from dbdyno.plan.workload import SCRIPT_LENGTH_MAX, TEMPLATE_SUFFIXES, is_script, known_workloads

NUMBER_MAX: Final = 2**32 - 2
"""`sysbench.rand` counts the numbers of a range in 32 bits: from 0 to the last it draws 0 alone."""
ROWS_MAX: Final = 2**31 - 1
TEXT_MAX: Final = 65_535
STATEMENTS_MAX: Final = 10_000
TRANSACTION: Final = 2  # BEGIN and COMMIT
EVENTS_MAX: Final = 256
WEIGHT_MAX: Final = 1e9
DRAWS: Final = ("uniform", "gaussian", "special", "pareto", "zipfian")
KINDS: Final = (*DRAWS, "sequential", "text", "format", "choice", "constant")
ROW: Final = "row"

Scalar = int | float | str
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Count = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Length = Annotated[int, Field(ge=0, le=TEXT_MAX)]
Range = tuple[Count, Count] | Name
"""From one number to another, or from 1 to the rows of a table."""


class Value(FiniteNoun):
    """Rule for a value: exactly one of these keys, or the word ``row``.

    Attributes:
        row: the number of the row, from 1; for columns.
        uniform, gaussian, special, pareto, zipfian: a whole number drawn from a range with this
            distribution.
        sequential: numbers above the greatest in a column, named as ``jobs.id``; each connection
            gets different numbers.
        text: number of random small letters, or the range of that number.
        format: a text with each # replaced by a digit and each @ by a small letter.
        choice: values to draw from, by default equally often.
        weights: weight of each choice.
        constant: the same value each time.
    """

    row: bool = False
    uniform: Range | None = None
    gaussian: Range | None = None
    special: Range | None = None
    pareto: Range | None = None
    zipfian: Range | None = None
    sequential: Annotated[str, Field(pattern=COLUMN_PATTERN)] | None = None
    text: tuple[Length, Length] | None = None
    format: Annotated[str | None, Field(max_length=TEXT_MAX)] = None
    choice: Annotated[tuple[Scalar, ...], Field(min_length=1)] | None = None
    weights: tuple[Annotated[float, Field(ge=0, le=WEIGHT_MAX)], ...] | None = None
    constant: Scalar | None = None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Value:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) + self.row != 1:
            raise ValueError(f"must be {ROW}, or one of {', '.join(KINDS)}")
        ranges = (getattr(self, kind) for kind in (*DRAWS, "text"))
        for low, high in (pair for pair in ranges if isinstance(pair, tuple)):
            if low > high:
                raise ValueError(f"must be from the lesser to the greater, found [{low}, {high}]")
        if self.weights is not None and len(self.weights) != len(self.choice or ()):
            raise ValueError("needs as many weights as there are choices")
        if self.weights is not None and not sum(self.weights):
            raise ValueError("needs a weight above 0")
        if self.choice and len({isinstance(one, str) for one in self.choice}) > 1:
            raise ValueError("must choose among texts or among numbers, not both")
        return self

    @property
    def kind(self) -> str:
        """The key that is given, or ``row``."""
        return ROW if self.row else next(k for k in KINDS if getattr(self, k) is not None)

    @property
    def table(self) -> str | None:
        """The table named in the value's range or column, if any."""
        named = getattr(self, self.kind) if self.kind in (*DRAWS, "sequential") else None
        return named.partition(".")[0] if isinstance(named, str) else None

    @property
    def bytes_max(self) -> int | None:
        """Most bytes of its text; None for a number."""
        if self.text is not None:
            return self.text[1]
        texts = [self.format, self.constant, *(self.choice or ())]
        lengths = [len(one.encode()) for one in texts if isinstance(one, str)]
        return max(lengths, default=None)


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
    """SQL with `:name` for drawn values; each repetition draws its own."""

    sql: Annotated[str, Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1, le=STATEMENTS_MAX)] = 1


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
    for table in _entries(template, "tables").values():
        if isinstance(table.get("indexes"), str):
            table["indexes"] = [table["indexes"]]
        for column in _entries(table, "columns").values():
            _write_value(column, "value")
    for name, event in _entries(template, "events").items():
        statements = event.get("statements")
        if isinstance(draw := event.get("draw"), dict):
            for key in draw:
                _write_value(draw, key)
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


def _write_value(part: dict[str, Any], key: str) -> None:
    """Convert the word `row`, and a single length to both ends of a text's range."""
    value = part.get(key)
    if value == ROW:
        part[key] = {ROW: True}
    elif isinstance(value, dict) and isinstance(value.get("text"), int):
        value["text"] = [value["text"], value["text"]]


# References between names; pydantic has checked the shape by now.


def _mistakes(document: Document, template: Template) -> Iterator[PlanMistake]:
    for name, table in template.tables.items():
        path: Path = ("tables", name)
        for column, value in table.columns.items():
            yield from _of_value(document, (*path, "columns", column), value.value, template)
            if value.value.sequential is not None:
                where = (*path, "columns", column)
                yield document.mistake(where, f"sequential is for events; say {ROW} here")
        for at, index in enumerate(table.indexes):
            for column in (one.strip() for one in index.split(",")):
                if column.split(" ")[0] not in table.columns:
                    missing = f"there is no column {column!r}{nearest(column, table.columns)}"
                    yield document.mistake((*path, "indexes", at), missing)
    for name, event in template.events.items():
        yield from _of_event(document, ("events", name), event, template)


def _of_event(
    document: Document, path: Path, event: TemplateEvent, template: Template
) -> Iterator[PlanMistake]:
    used: set[str] = set()
    for at, statement in enumerate(event.statements):
        where = (*path, "statements", at)
        for match in NAMES.finditer(statement.sql):
            name = match[1]
            if "?" in match[0] and not match[0].startswith(("--", "/*")):
                yield document.mistake(where, "has a ?; write :name for a value that is drawn")
            elif name and name not in event.draw:
                missing = f"there is no value :{name} in draw{nearest(name, event.draw)}"
                yield document.mistake(where, missing)
            used |= {name} if name else set()
        for name in tables_in(statement.sql) if template.tables else ():
            if name not in template.tables:
                unknown = f"there is no table {name!r}{nearest(name, template.tables)}"
                yield document.mistake(where, unknown)
    for name, value in event.draw.items():
        where = (*path, "draw", name)
        yield from _of_value(document, where, value, template)
        if value.row:
            yield document.mistake(where, f"{ROW} is for columns; say sequential here")
        if name not in used:
            yield document.mistake(where, "is used by no statement")


def _of_value(
    document: Document, path: Path, value: Value, template: Template
) -> Iterator[PlanMistake]:
    table = value.table
    if table is not None and table not in template.tables:
        unknown = f"there is no table {table!r}{nearest(table, template.tables)}"
        yield document.mistake(path, unknown)
    elif value.sequential is not None and table is not None:
        column, columns = value.sequential.partition(".")[2], template.tables[table].columns
        if column not in columns:
            missing = f"{table} has no column {column!r}{nearest(column, columns)}"
            yield document.mistake(path, missing)
    elif table is not None and not template.tables[table].rows:
        yield document.mistake(path, f"{table} has no rows to draw from")
    given = [value.format, value.constant, *(value.choice or ())]
    if any(isinstance(one, str) and "\\" in one for one in given):
        said = "has a backslash, which MySQL and PostgreSQL read in different ways"
        yield document.mistake(path, said)
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
"""One statement with a query plan; PostgreSQL would execute a second one behind it."""
EXAMPLES_MAX: Final = 50
EXAMPLE_LENGTH_MAX: Final = 4_000
EXAMPLE_LETTERS: Final = 20
"""Letters of a made-up text; its length decides nothing."""
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
    for name, event in template.events.items():
        values = {one: _literal(_example(value, template)) for one, value in event.draw.items()}
        for number, statement in enumerate(event.statements, 1):
            sql = _filled(statement.sql, values)
            if _EXPLAINABLE.fullmatch(sql) and len(sql) <= EXAMPLE_LENGTH_MAX:
                places.setdefault(sql, f"{name}.{number}")
    return {place: sql for sql, place in islice(places.items(), EXAMPLES_MAX)}


def _filled(sql: str, values: Mapping[str, str]) -> str:
    """The SQL on one line, with values in place of their names."""
    return one_line(NAMES.sub(lambda match: values[match[1]] if match[1] else match[0], sql))


def _example(value: Value, template: Template) -> Scalar:
    """An example of the value: from the middle of its range, or its likeliest choice."""
    spec = getattr(value, value.kind)
    example: Scalar
    match value.kind:
        case "sequential":
            example = template.tables[spec.partition(".")[0]].rows + 1
        case "text":
            example = "m" * min(sum(spec) // 2, EXAMPLE_LETTERS)
        case "format":
            example = spec.replace("#", "5").replace("@", "m")
        case "choice":
            weights = value.weights or (1.0,)
            example = spec[weights.index(max(weights))]
        case "constant":
            example = spec
        case _:
            example = sum(_ends(spec, template.tables)) // 2
    return example


def _literal(value: Scalar) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _tables(template: Template) -> str:
    statements = []
    for name, table in template.tables.items():
        columns = ", ".join(f"{column} {one.type}" for column, one in table.columns.items())
        values = ", ".join(
            f"literal({_drawn(one.value, template)})" for one in table.columns.values()
        )
        create = f"CREATE TABLE {name} ({columns}) {table.options}".rstrip()
        statements.append(
            f"  {{ name = {_quoted(name)}, rows = {table.rows},\n"
            f"    create = {_quoted(create)},\n"
            f"    columns = {_quoted(', '.join(table.columns))},\n"
            f'    row = function(row) return table.concat({{ {values} }}, ",") end,\n'
            f"    indexes = {{ {', '.join(map(_quoted, table.indexes))} }} }},\n"
        )
    return f"local TABLES = {{\n{''.join(statements)}}}\n"


def _events(template: Template) -> Iterator[str]:
    prepares, events = [], []
    for name, event in template.events.items():
        drawn = {one: _drawn(value, template) for one, value in event.draw.items()}
        once = {n for s in event.statements if s.repeat == 1 for n in _with_marks(s.sql)[1]}
        lines = [f'    once["{one}"] = {value}' for one, value in drawn.items() if one in once]
        lines += ['    say("BEGIN")'] if event.transaction else []
        for statement in event.statements:
            sql, names = _with_marks(statement.sql)
            binds = ", ".join(f'{{ "{one}", {_kind(event.draw[one])} }}' for one in names)
            prepares.append(f"    prepared({_quoted(sql)}, {{ {binds} }}),")
            call = f"execute(STATEMENTS[{len(prepares)}]"
            if statement.repeat == 1:
                lines.append(f"    {call}, once)")
                continue
            lines.append(f"    for _ = 1, {statement.repeat} do")
            lines += [f'      each["{one}"] = {drawn[one]}' for one in dict.fromkeys(names)]
            lines += [f"      {call}, each)", "    end"]
        lines += ['    say("COMMIT")'] if event.transaction else []
        rest_us = round(event.think_time_ms * 1000)
        events.append(
            f"  {{ name = {_quoted(name)}, weight = {event.weight!r}, rest_us = {rest_us},\n"
            "    run = function()\n" + "\n".join(lines) + "\n  end },\n"
        )
    total = sum(event.weight for event in template.events.values())
    yield (
        "local STATEMENTS\nlocal function prepare_all()\n  STATEMENTS = {\n"
        + "\n".join(prepares)
        + "\n  }\nend\n"
    )
    drawn_values = (v for event in template.events.values() for v in event.draw.values())
    columns = dict.fromkeys(v.sequential for v in drawn_values if v.sequential is not None)
    pairs = (one.partition(".") for one in columns)
    sequences = ", ".join(f"{{ {_quoted(t)}, {_quoted(column)} }}" for t, _, column in pairs)
    yield f"local SEQUENCES = {{ {sequences} }}\n"
    rests = any(event.think_time_ms for event in template.events.values())
    yield f"local RESTS = {str(rests).lower()}\n"
    yield f"local TOTAL = {total!r}\nlocal EVENTS = {{\n{''.join(events)}}}\n"


def _with_marks(sql: str) -> tuple[str, list[str]]:
    """The SQL on one line with ? for its values, and their names."""
    names: list[str] = []

    def mark(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        names.append(match[1])
        return "?"

    return one_line(NAMES.sub(mark, sql)), names


def _kind(value: Value) -> str:
    """The type by which it is bound, and the length of a text."""
    if (longest := value.bytes_max) is not None:
        return f"types.VARCHAR, {max(1, longest)}"
    numbers = [value.constant, *(value.choice or ())]
    return "types.DOUBLE" if any(isinstance(n, float) for n in numbers) else "types.BIGINT"


def _drawn(value: Value, template: Template) -> str:
    """A Lua expression for the value; in a column `row` is the row's number."""
    kind = value.kind
    spec = getattr(value, kind)
    if kind in DRAWS:
        low, high = _ends(spec, template.tables)
        return f"rand.{kind}({low}, {high})"
    match kind:
        case "sequential":
            text = f"next_of({_quoted(spec)})"
        case "text":
            text = f"text_of({spec[0]}, {spec[1]})"
        case "format":
            text = f"rand.string({_quoted(spec)})"
        case "choice":
            weights = value.weights or tuple(1.0 for _ in spec)
            limits = ", ".join(map(repr, accumulate(weights)))
            choices = ", ".join(map(_scalar, spec))
            text = f"choice_of({{ {choices} }}, {{ {limits} }})"
        case "constant":
            text = _scalar(spec)
        case _:
            text = ROW
    return text


def _ends(of: Range, tables: Mapping[str, TemplateTable]) -> tuple[int, int]:
    return (1, tables[of].rows) if isinstance(of, str) else of


def _scalar(value: Scalar) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    """A text as Lua has it between quotes, its bytes beyond ASCII as numbers."""
    plain = set(range(32, 127)) - set(b'"\\')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03}" for b in text.encode()) + '"'


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
