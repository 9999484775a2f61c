"""A template written from the tables of a running server, as a first draft of a load.

The draft has tables of the same shape with made-up rows, and example events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from dbdyno.plan.source import ColumnKind, ColumnSample, SourceColumn, SourceIndex, SourceTable
from dbdyno.plan.values import DIGITS_MAX, NUMBER_MAX, TEXT_MAX

NAME_LENGTH_MAX: Final = 52
"""Leaves room for a number and an event's ending behind a table's name."""
UNIQUE_LENGTH: Final = 12
"""Random letters that are hardly ever equal, even in billions of rows."""
UUID_LENGTH: Final = 36
INSERTS_MIN: Final = 1_000_000
"""Numbers that a key's type must have left for new rows."""
CHOICE_LENGTH_MAX: Final = 100
EXACT_MAX: Final = 2**53
"""Greatest whole number that Lua keeps exactly."""
WEIGHTS: Final = {"read": 90, "update": 8, "insert": 2}
"""Weights of a table's events."""
USUAL_TIMES: Final = (datetime(2024, 1, 1), datetime(2024, 12, 31))
"""Range of dates and times for a column without a date that a template can have."""
FIRST_YEAR: Final = 1000
PLACES_MAX: Final = 10


def draft(tables: Sequence[SourceTable], source: str, reserved: Collection[str]) -> str:
    """A template's YAML text.

    Args:
        source: where the tables are, in a few words.
        reserved: words in small letters that the server takes as names only in quotes.
    """
    renamed = _renamed(tables, reserved)
    rows = {table.name: table.made_rows for table in renamed}
    shapes = {table.name: _shape(table, rows) for table in renamed}
    lines = [*_head(tables, source), "tables:"]
    for shape in shapes.values():
        lines += _table_lines(shape, shapes)
    lines += [
        "events:",
        "  # Of 100 events on a table 90 read, 8 update and 2 insert. `weight` says how often an",
        "  # event runs, against the weights of all others.",
    ]
    for shape in shapes.values():
        lines += _event_lines(shape, shapes)
    return "\n".join(lines) + "\n"


def _head(tables: Sequence[SourceTable], source: str) -> list[str]:
    columns = (column for table in tables for column in table.columns)
    has_texts = any(
        column.kind is ColumnKind.TEXT and column.sample is not None and column.sample.counts
        for column in columns
    )
    shown = "Some choices are texts of rows." if has_texts else "No text of a row is in this file."
    return [
        f"# Written by `dbdyno workload new` from {_said(source)}.",
        "#",
        "# Types, indexes and numbers of rows are the server's; ranges, lengths and shares are a",
        f"# sample's. The rows are made up. {shown} Foreign keys only",
        "# decide which values are drawn.",
        "#",
        "# The events are examples: put the statements of your application in their place. Then",
        "# run `dbdyno workload check` and `dbdyno workload try` with this file.",
    ]


# Names. A template has them without quotes, so a name that needs quotes is changed.


def _renamed(tables: Sequence[SourceTable], reserved: Collection[str]) -> list[SourceTable]:
    """The tables under names that need no quotes."""
    names = _free([table.name for table in tables], reserved)
    columns = {
        table.name: _free([column.name for column in table.columns], reserved) for table in tables
    }
    return [
        replace(
            table,
            name=names[table.name],
            server_name=table.name if names[table.name] != table.name else "",
            columns=tuple(_under(column, columns[table.name]) for column in table.columns),
            indexes=tuple(
                replace(
                    index,
                    columns=tuple(columns[table.name].get(name, "") for name in index.columns),
                )
                for index in table.indexes
            ),
            parents={
                columns[table.name][name]: (names[parent], columns[parent][key])
                for name, (parent, key) in table.parents.items()
                if name in columns[table.name] and key in columns.get(parent, {})
            },
        )
        for table in tables
    ]


def _under(column: SourceColumn, names: Mapping[str, str]) -> SourceColumn:
    name = names[column.name]
    return replace(column, name=name, server_name=column.name if name != column.name else "")


def _free(names: Sequence[str], reserved: Collection[str]) -> dict[str, str]:
    """A name without quotes for each name; two of them differ by more than capitals."""
    free: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names, key=lambda name: _plain(name, reserved) != name):
        begin = changed = _plain(name, reserved)
        number = 1
        while changed.lower() in taken:
            number += 1
            changed = f"{begin}_{number}"
        taken.add(changed.lower())
        free[name] = changed
    return free


def _plain(name: str, reserved: Collection[str]) -> str:
    """The name with other signs replaced, which may be the same for two names."""
    plain = name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "renamed"
        plain = f"_{plain}" if plain[0].isdigit() else plain
    plain = plain[:NAME_LENGTH_MAX]
    return f"{plain}_" if plain.lower() in reserved else plain


def _said(text: str) -> str:
    """A text from the server on a comment's line."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


# Shape. A row's number makes the values of a key differ; so do random UUIDs and long texts.


@dataclass(frozen=True)
class _Shape:
    """A table as the template has it.

    Attributes:
        columns: columns that get values, by name.
        unique: columns in which no two rows have the same value.
        leading: first columns of its indexes, the primary key's before the others.
        constraints: SQL behind a column's type.
        indexes: further indexes.
        notes: comments on parts of the table that the template lacks.
    """

    table: SourceTable
    columns: Mapping[str, SourceColumn]
    unique: frozenset[str]
    leading: tuple[str, ...]
    constraints: Mapping[str, str]
    indexes: tuple[str, ...]
    notes: tuple[str, ...]

    def is_numbered(self, name: str) -> bool:
        """True if the column's value is the row's number."""
        return name in self.unique and self.columns[name].kind is ColumnKind.WHOLE


def _shape(table: SourceTable, rows: Mapping[str, int]) -> _Shape:
    columns = {c.name: c for c in table.columns if c.kind is not ColumnKind.UNKNOWN}
    unique: set[str] = set()
    constraints: dict[str, str] = {}
    leading, indexes, notes = list[str](), list[str](), list[str]()
    for index in sorted(table.indexes, key=lambda index: not index.is_primary):
        trouble = index.trouble
        if not trouble and not columns.keys() >= set(index.columns):
            trouble = "a column of it is left out"
        if trouble:
            notes.append(f"The index on ({index.text}) is left out: {_said(trouble)}.")
            continue
        if not any(index.lengths[:1]):
            leading.append(index.columns[0])
        differing = _differing(index, table, columns, rows) if index.is_unique else None
        if differing is None:
            if index.is_unique:
                notes.append(f"The index on ({index.text}) is unique on the server.")
            indexes.append(index.text)
            continue
        unique.add(differing)
        word = "PRIMARY KEY" if index.is_primary else "UNIQUE"
        last = index.columns[-1]
        before = constraints.get(last, "")
        if len(index.columns) == 1:
            constraints[last] = f" {word}{before}"
        else:
            constraints[last] = f"{before}, {word} ({index.text})"
    return _Shape(
        table,
        columns,
        frozenset(unique),
        tuple(leading),
        constraints,
        tuple(indexes),
        tuple(notes),
    )


def _differing(
    index: SourceIndex,
    table: SourceTable,
    columns: Mapping[str, SourceColumn],
    rows: Mapping[str, int],
) -> str | None:
    """A column of a unique index in which each row can have a value of its own.

    Of several columns, one that refers to another table is the last choice, and none if that table
    has fewer rows.
    """
    if any(index.lengths):
        return None
    able = [name for name in reversed(index.columns) if _can_differ(columns[name], table.made_rows)]
    if len(index.columns) > 1:
        able = [
            name
            for name in sorted(able, key=lambda name: name in table.parents)
            if name not in table.parents or rows[table.parents[name][0]] >= table.made_rows
        ]
    return next(iter(able), None)


def _can_differ(column: SourceColumn, rows: int) -> bool:
    if column.kind is ColumnKind.WHOLE:
        return column.limit is not None and rows <= column.limit
    if column.kind in (ColumnKind.TEXT, ColumnKind.BYTES):
        return column.limit is None or column.limit >= UNIQUE_LENGTH
    return column.kind is ColumnKind.UUID


# Rules of values.

Rule = dict[str, str]
"""A template's value: YAML text by key; `row` and `uuid` are keys with the text ``true``."""


def _rule(shape: _Shape, column: SourceColumn, shapes: Mapping[str, _Shape]) -> Rule:
    """The rule for a column's values, without NULL."""
    if shape.is_numbered(column.name):
        return {"row": "true"}
    if column.name in shape.unique and column.kind is not ColumnKind.UUID:
        return _letters(column, UNIQUE_LENGTH)
    parent, key = shape.table.parents.get(column.name, ("", ""))
    if parent and shapes[parent].is_numbered(key):
        is_skewed = _is_skewed(column.sample, shapes[parent].table.made_rows)
        return {"zipfian" if is_skewed else "uniform": _scalar(parent)}
    counts = column.sample.counts if column.sample is not None else ()
    return _choice(column, counts) or _RULES[column.kind](column)


def _is_skewed(sample: ColumnSample | None, rows: int) -> bool:
    """True if the most frequent of so many values is nearer to a Zipf distribution's.

    sysbench's exponent is 0.8. Its sum over 1, 2, … N is about 5 N^0.2 - 4.44.
    """
    if sample is None or sample.values < 100 or sample.top < 10:
        return False
    expected = 1 / max(1.0, 5 * rows**0.2 - 4.44)
    return bool(sample.top / sample.values > (expected + 1 / rows) / 2)


def _choice(column: SourceColumn, counts: Sequence[tuple[str, int]]) -> Rule:
    """A choice with the shares of the sample; empty if a value cannot be written."""
    items = [_item(column.kind, text) for text, _ in counts]
    total = sum(count for _, count in counts)
    if not total or "" in items:
        return {}
    weights = ", ".join(f"{max(0.1, round(100 * count / total, 1)):g}" for _, count in counts)
    return {"choice": f"[{', '.join(items)}]", "weights": f"[{weights}]"}


def _item(kind: ColumnKind, text: str) -> str:
    """YAML of a value; empty if a template cannot have it."""
    if kind is ColumnKind.WHOLE:
        number = _number(text)
        return "" if number is None or abs(number) > EXACT_MAX else str(int(number))
    is_usable = text.isprintable() and "\\" not in text and len(text) <= CHOICE_LENGTH_MAX
    return _text(text) if is_usable else ""


def _number(text: str) -> Decimal | None:
    """The finite number in a text of the server; None for another text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and number.adjusted() < 25 else None


def _ends(column: SourceColumn, least: int, greatest: int) -> tuple[Decimal, Decimal]:
    """Ends of numbers or lengths in the sample; if it has no values, the given ends."""
    sample = column.sample or ColumnSample(0, 0)
    low, high = _number(sample.least), _number(sample.greatest)
    if low is None or high is None:
        return Decimal(least), Decimal(greatest)
    return low, high


def _within(column: SourceColumn, most: int) -> int:
    return most if column.limit is None else min(column.limit, most)


def _whole(column: SourceColumn) -> Rule:
    least, greatest = map(int, _ends(column, 1, _within(column, 1000)))
    if greatest < 0:
        return {"constant": str(max(greatest, -EXACT_MAX))}
    if greatest > NUMBER_MAX:  # up to 19 digits fit into every type that has such numbers
        return {"format": _text("1" + "#" * (min(len(str(greatest)), 19) - 1))}
    return {"uniform": f"[{min(max(0, least), greatest)}, {greatest}]"}


def _decimal(column: SourceColumn) -> Rule:
    ends = _ends(column, 0, _within(column, 999))
    places = column.places
    if places is None:
        exponents = (number.as_tuple().exponent for number in ends)
        places = max([2, *(-e for e in exponents if isinstance(e, int))])
    places = min(places, PLACES_MAX)
    most = Decimal(10**DIGITS_MAX - 1).scaleb(-places)
    least, greatest = (max(-most, min(most, number)) for number in ends)
    return {"decimal": f"[{least:.{places}f}, {greatest:.{places}f}]"}


def _letters(column: SourceColumn, length_min: int = 0) -> Rule:
    short = _within(column, 20)
    least, greatest = map(int, _ends(column, min(1, short), short))
    if column.kind is ColumnKind.TEXT and least == greatest == UUID_LENGTH:
        return {"uuid": "true"}
    least = min(max(least, length_min), TEXT_MAX)
    return {"text": f"[{least}, {min(max(greatest, least), TEXT_MAX)}]"}


def _json(column: SourceColumn) -> Rule:
    frame = len('{"text": ""}')
    lengths = map(int, _ends(column, frame + 10, frame + 100))
    least, greatest = (min(max(0, length - frame), TEXT_MAX) for length in lengths)
    return {"json": f"{{text: {{text: [{least}, {greatest}]}}}}"}


def _date(column: SourceColumn) -> Rule:
    least, greatest = (moment.date() for moment in _moments(column.sample))
    return {"date": f"[{least}, {greatest}]"}


def _datetime(column: SourceColumn) -> Rule:
    least, greatest = (f'"{moment}"' for moment in _moments(column.sample))
    return {"datetime": f"[{least}, {greatest}]"}


def _moments(sample: ColumnSample | None) -> tuple[datetime, datetime]:
    """Ends of dates or times in the sample, in whole seconds."""
    if sample is None:
        return USUAL_TIMES
    try:
        least, greatest = (
            datetime.fromisoformat(text[:19]).replace(tzinfo=None)
            for text in (sample.least, sample.greatest)
        )
    except ValueError:  # no values, or MySQL's 0000-00-00
        return USUAL_TIMES
    return (least, greatest) if least.year >= FIRST_YEAR else USUAL_TIMES


def _label(column: SourceColumn) -> Rule:
    items = [item for label in column.choices if (item := _item(column.kind, label))]
    return {"choice": f"[{', '.join(items)}]"} if items else {"constant": "1"}


_RULES: Final[Mapping[ColumnKind, Callable[[SourceColumn], Rule]]] = {
    ColumnKind.WHOLE: _whole,
    ColumnKind.DECIMAL: _decimal,
    ColumnKind.TEXT: _letters,
    ColumnKind.BYTES: _letters,
    ColumnKind.DATE: _date,
    ColumnKind.DATETIME: _datetime,
    ColumnKind.TIME: lambda _: {"format": _text("1#:3#:0#")},
    ColumnKind.UUID: lambda _: {"uuid": "true"},
    ColumnKind.JSON: _json,
    ColumnKind.LABEL: _label,
    ColumnKind.CONSTANT: lambda column: {"constant": _text(column.choices[0])},
}


# YAML.

_YAML_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def _text(text: str) -> str:
    """A text between quotes; a printable one is the same in JSON and in YAML."""
    return json.dumps(text, ensure_ascii=False)


def _scalar(text: str) -> str:
    """A text without quotes if they are not needed within braces."""
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_() ]*", text) and text.lower() not in _YAML_WORDS
    return text if is_plain else _text(text)


def _flow(rule: Rule) -> str:
    (key, value), *others = rule.items()
    if value == "true" and not others:
        return key
    return "{" + ", ".join(f"{key}: {value}" for key, value in rule.items()) + "}"


def _table_lines(shape: _Shape, shapes: Mapping[str, _Shape]) -> Iterator[str]:
    table = shape.table
    counted = "counted" if table.is_counted else "the server's estimate"
    if table.server_name:
        yield f"  # {_said(table.server_name)} on the server"
    yield f"  {table.name}:"
    yield f"    rows: {table.made_rows}  # {counted if table.rows else 'empty on the server'}"
    yield "    columns:"
    for column in table.columns:
        if column.kind is ColumnKind.UNKNOWN:
            reason = _said(f"({column.type}) is left out: {column.reason}")
            yield f"      # {column.name} {reason}"
            continue
        nullable = "" if column.is_nullable else " NOT NULL"
        kind = _scalar(f"{column.type}{nullable}{shape.constraints.get(column.name, '')}")
        value = _flow(_with_null(column, _rule(shape, column, shapes)))
        remarks = "; ".join(_remarks(shape, column))
        behind = f"  # {remarks}" if remarks else ""
        yield f"      {column.name}: {{type: {kind}, value: {value}}}{behind}"
    if shape.indexes:
        yield "    indexes:"
        yield from (f"      - {_text(index)}" for index in shape.indexes)
    yield from (f"    # {note}" for note in shape.notes)


def _with_null(column: SourceColumn, rule: Rule) -> Rule:
    """The rule with the sample's share of NULL; a row's number is never NULL."""
    sample = column.sample
    if sample is None or sample.values >= sample.rows or not column.is_nullable or "row" in rule:
        return rule
    return {**rule, "null": f"{max(0.001, 1 - sample.values / sample.rows):.3g}"}


def _remarks(shape: _Shape, column: SourceColumn) -> Iterator[str]:
    if column.server_name:
        yield f"{_said(column.server_name)} on the server"
    if column.name in shape.table.parents:
        parent, key = shape.table.parents[column.name]
        yield f"refers to {parent}.{key}"
    if column.kind is ColumnKind.WHOLE and _ends(column, 0, 0)[0] < 0:
        yield "numbers below 0 on the server, too"


# Events.

_EXACT: Final = frozenset({"uniform", "zipfian", "choice", "constant"})
"""Rules that draw values of existing rows; a value of another rule may lie between two rows."""


def _event_lines(shape: _Shape, shapes: Mapping[str, _Shape]) -> Iterator[str]:
    table, columns = shape.table.name, shape.columns
    key = next(iter(shape.leading), None)
    if key is None:
        yield f"  # {table} has no index by which its rows could be read."
    else:
        rule = _rule(shape, columns[key], shapes)
        rule = {"uniform": _scalar(table)} if "row" in rule else rule
        following = f"{key} >= :{key} ORDER BY {key} LIMIT 1"
        place, where = f":{key}", f"{key} = :{key}"
        if not rule.keys() & _EXACT:
            place = f"(SELECT {key} FROM (SELECT {key} FROM {table} WHERE {following}) AS next_row)"
            where = following
        elif key not in shape.unique:
            where += " LIMIT 10"
        yield from _event(table, "read", {key: rule}, f"SELECT * FROM {table} WHERE {where}")
        changed = _changed(shape)
        if changed is not None and key in shape.unique:
            new = _with_null(changed, _rule(shape, changed, shapes))
            draws = {key: rule, changed.name: new}
            sql = f"UPDATE {table} SET {changed.name} = :{changed.name} WHERE {key} = {place}"
            yield from _event(table, "update", draws, sql)
    cramped = [
        name
        for name in columns
        if shape.is_numbered(name)
        and _within(columns[name], NUMBER_MAX) - shape.table.made_rows < INSERTS_MIN
    ]
    if cramped:
        yield f"  # {table} has no insert: {cramped[0]} has no room for many more numbers."
        return
    draws = {name: _new_value(shape, column, shapes) for name, column in columns.items()}
    names, marks = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    yield from _event(table, "insert", draws, f"INSERT INTO {table} ({names}) VALUES ({marks})")


def _event(table: str, deed: str, draws: Mapping[str, Rule], sql: str) -> Iterator[str]:
    yield f"  {table}_{deed}:"
    yield f"    weight: {WEIGHTS[deed]}"
    yield "    draw:"
    yield from (f"      {name}: {_flow(rule)}" for name, rule in draws.items())
    yield "    statements:"
    yield f"      - {sql}"


def _changed(shape: _Shape) -> SourceColumn | None:
    """A column for an update: in no index, and with values that differ."""
    indexed = {name for index in shape.table.indexes for name in index.columns}
    fixed = (ColumnKind.CONSTANT, ColumnKind.JSON)
    return next(
        (
            column
            for name, column in shape.columns.items()
            if name not in indexed and name not in shape.table.parents and column.kind not in fixed
        ),
        None,
    )


def _new_value(shape: _Shape, column: SourceColumn, shapes: Mapping[str, _Shape]) -> Rule:
    """The rule for a column of a new row."""
    if not shape.is_numbered(column.name):
        return _with_null(column, _rule(shape, column, shapes))
    table = shape.table
    if column.name in shape.leading:  # its greatest number is found at once
        return {"sequential": f"{table.name}.{column.name}"}
    return {"uniform": f"[{table.made_rows + 1}, {_within(column, NUMBER_MAX)}]"}
