"""Questions about the tables of a running server, from whose answers a template is written.

The catalog tells types and indexes. A query over a sample of each table's rows tells ranges,
lengths and shares, so texts of rows stay on the server unless the user wants them. Nothing is
written there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.draft import CHOICE_LENGTH_MAX
from dbdyno.plan.source import ColumnKind, ColumnSample, SourceColumn, SourceIndex, SourceTable
from dbdyno.servers.base import PGSQL, Answering, count_of, row_of, rows_of
from dbdyno.servers.foreign.endpoint import MARK

TABLES_MAX: Final = 50
COUNTED_MAX: Final = 1_000_000
"""Rows of a table that are counted; of a larger table the server's estimate is taken."""
SAMPLE_ROWS: Final = 10_000
FEW: Final = 20
"""Different values of a column that become a choice."""
OFTEN: Final = 5
"""Rows for each value of a choice, at least."""
QUESTION_S_MAX: Final = 10.0
SAMPLING_S_MAX: Final = 60.0
"""Time for counts and samples of all tables; further tables are written without."""
NO_VALUES: Final = "a template has no values of this type"

WHOLE_LIMITS: Final = {
    **{"tinyint": 127, "smallint": 32_767, "mediumint": 8_388_607, "int": 2_147_483_647},
    **{"bigint": 2**63 - 1, "int2": 32_767, "int4": 2_147_483_647, "int8": 2**63 - 1},
    "oid": 2_147_483_647,
}
"""Greatest number of each type, signed."""
_SIZES: Final = re.compile(r"\(([0-9]{1,5})(?:,([0-9]{1,3}))?\)")
_LABELS: Final = re.compile(r"'((?:[^']|'')*)'")
_COMPUTED: Final = re.compile(r"\b(?:VIRTUAL|STORED|PERSISTENT)\b")
_COUNT: Final = re.compile(r"[0-9]{1,18}")
_ABSENT: Final = "CASE WHEN {} IS NULL THEN NULL ELSE 1 END"
"""Expression for a column of which only the share of NULL is asked."""
_WITH_ENDS: Final = frozenset(
    {
        *(ColumnKind.WHOLE, ColumnKind.DECIMAL, ColumnKind.DATE, ColumnKind.DATETIME),
        *(ColumnKind.TEXT, ColumnKind.BYTES, ColumnKind.JSON),
    }
)
_COUNTABLE: Final = frozenset({ColumnKind.WHOLE, ColumnKind.LABEL})
"""Kinds whose values may be in the template: numbers, and labels of the type."""


def look(
    server: Answering,
    driver: str,
    database: str,
    wanted: Sequence[str],
    report: Callable[[str], None],
    *,
    with_values: bool = False,
) -> tuple[list[SourceTable], set[str]]:
    """Facts of a database's tables, and words that the server takes as names only in quotes.

    Args:
        driver: the engine's, `MYSQL` or `PGSQL`.
        wanted: names of tables; all if empty.
        report: takes a line for each table, and for each that is left out.
        with_values: texts with few values become choices.

    Raises:
        UsageError: there are no such tables, or too many.
        ServerError: the server does not tell its catalog.
    """
    catalog = (PostgresCatalog if driver == PGSQL else MysqlCatalog)(server, database)
    estimates = {name: rows for name, rows in catalog.estimates().items() if name != MARK}
    names = _chosen(list(estimates), wanted, database)
    columns, indexes, parents = catalog.columns(), catalog.indexes(), catalog.parents()
    reserved = catalog.reserved(
        {name for table in names for name in (table, *(c.name for c in columns.get(table, ())))}
    )
    ends_at = time.monotonic() + SAMPLING_S_MAX
    tables = []
    for name in names:
        report(f"{server.label}: reading {name}")
        is_late = time.monotonic() > ends_at
        rows, is_counted = (
            (estimates[name], False) if is_late else catalog.rows(name, estimates[name])
        )
        table = SourceTable(
            name,
            rows,
            is_counted,
            tuple(columns.get(name, ())),
            tuple(indexes.get(name, ())),
            parents.get(name, {}),
        )
        if all(column.kind is ColumnKind.UNKNOWN for column in table.columns):
            report(f"{name} is left out: a template can fill none of its columns")
            continue
        try:
            if is_late:
                raise ServerError("the time for samples is over")
            table = catalog.sampled(table, with_values=with_values)
        except ServerError as error:
            why = error.found or error.message
            report(f"{name} is written without a sample, with usual values: {why}")
        tables.append(table)
    if not tables:
        raise UsageError(f"the database {database} has no table that a template can fill")
    return tables, reserved


def _chosen(known: Sequence[str], wanted: Sequence[str], database: str) -> list[str]:
    """The wanted tables, each once; UsageError if they are not there or too many."""
    names = list(dict.fromkeys(wanted)) or list(known)
    if absent := [name for name in names if name not in known]:
        shown = ", ".join(known[:TABLES_MAX])
        raise UsageError(
            f"the database {database} has no table {', '.join(absent)}",
            found=shown or "no tables",
        )
    if not names:
        raise UsageError(
            f"the database {database} has no tables",
            hint="is its name right, and may the user read its tables?",
        )
    if len(names) > TABLES_MAX:
        raise UsageError(
            f"the database {database} has {len(names)} tables",
            wanted=f"at most {TABLES_MAX} tables for a template",
            hint="name the tables of your load behind the address",
        )
    return names


def _count(text: str) -> int:
    return int(text) if _COUNT.fullmatch(text) else 0


def _column(
    name: str,
    kind: ColumnKind,
    base: str,
    written: str,
    is_nullable: bool,
    choices: tuple[str, ...] = (),
) -> SourceColumn:
    """A column with the limits of its type.

    Args:
        base: the type's name alone.
        written: the type in SQL.
    """
    sizes = _SIZES.search(written)
    size, scale = (int(sizes[1]), int(sizes[2] or 0)) if sizes else (None, 0)
    limit: int | None = None
    places: int | None = None
    if kind is ColumnKind.WHOLE:
        limit = 2 ** (size or 1) - 1 if base == "bit" else WHOLE_LIMITS[base]
    elif kind is ColumnKind.DECIMAL and base not in ("decimal", "numeric"):
        places = 3
    elif kind is ColumnKind.DECIMAL and size is not None:
        limit, places = 10 ** max(0, size - scale) - 1, scale
        kind = kind if scale else ColumnKind.WHOLE
    elif kind in (ColumnKind.TEXT, ColumnKind.BYTES):
        limit = size
    reason = NO_VALUES if kind is ColumnKind.UNKNOWN else ""
    if "\\" in written or not written.isprintable():
        kind, reason = ColumnKind.UNKNOWN, "its type has a backslash or a control character"
    return SourceColumn(name, written, kind, is_nullable, limit, places, choices, reason)


MYSQL_KINDS: Final[Mapping[str, ColumnKind]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "bit"), ColumnKind.WHOLE),
    **dict.fromkeys(("decimal", "float", "double"), ColumnKind.DECIMAL),
    **dict.fromkeys(("char", "varchar", "tinytext", "text"), ColumnKind.TEXT),
    **dict.fromkeys(("mediumtext", "longtext"), ColumnKind.TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob"), ColumnKind.BYTES),
    **dict.fromkeys(("mediumblob", "longblob"), ColumnKind.BYTES),
    **dict.fromkeys(("datetime", "timestamp"), ColumnKind.DATETIME),
    **dict.fromkeys(("enum", "set"), ColumnKind.LABEL),
    **{"date": ColumnKind.DATE, "time": ColumnKind.TIME, "json": ColumnKind.JSON},
    **{"uuid": ColumnKind.UUID, "year": ColumnKind.CONSTANT, "inet4": ColumnKind.CONSTANT},
    "inet6": ColumnKind.CONSTANT,
}
MYSQL_CONSTANTS: Final = {"year": "2024", "inet4": "10.0.0.1", "inet6": "::1"}


class MysqlCatalog:
    """Catalog and rows of a database of MySQL, MariaDB or TiDB.

    Args:
        database: its name, without quotes in it.
    """

    quote = "`"
    expressions: Mapping[ColumnKind, str] = {
        **dict.fromkeys((ColumnKind.WHOLE, ColumnKind.DECIMAL, ColumnKind.LABEL), "{}"),
        **dict.fromkeys((ColumnKind.DATE, ColumnKind.DATETIME), "{}"),
        ColumnKind.TEXT: "CHAR_LENGTH({})",
        ColumnKind.BYTES: "LENGTH({})",
        ColumnKind.JSON: "CHAR_LENGTH(CAST({} AS CHAR))",
    }
    """The sample's measure of a column by kind: a value, or its length."""
    text = "{}"
    """A column as text."""

    def __init__(self, server: Answering, database: str) -> None:
        self._server = server
        self._schema = database

    def estimates(self) -> dict[str, int]:
        """The server's estimate of each table's rows."""
        sql = (
            "SELECT table_name, table_rows FROM information_schema.tables"
            f" WHERE table_schema = '{self._schema}' AND table_type = 'BASE TABLE'"
            " ORDER BY table_name"
        )
        return {row[0]: _count(row[1]) for row in rows_of(self._server, sql, 2)}

    def columns(self) -> dict[str, list[SourceColumn]]:
        """The columns of each table."""
        sql = (
            "SELECT table_name, column_name, data_type, column_type, is_nullable, extra"
            f" FROM information_schema.columns WHERE table_schema = '{self._schema}'"
            " ORDER BY table_name, ordinal_position"
        )
        columns: dict[str, list[SourceColumn]] = {}
        for table, name, base, written, nullable, extra, *_ in rows_of(self._server, sql, 6):
            is_nullable = nullable == "YES"
            kind = MYSQL_KINDS.get(base.lower(), ColumnKind.UNKNOWN)
            choices: tuple[str, ...] = ()
            if kind is ColumnKind.LABEL:
                choices = tuple(one.replace("''", "'") for one in _LABELS.findall(written))
            elif kind is ColumnKind.CONSTANT:
                choices = (MYSQL_CONSTANTS[base.lower()],)
            column = _column(name, kind, base.lower(), written, is_nullable, choices)
            if base.lower() == "timestamp":  # which older servers fill by themselves
                size = _SIZES.search(written)
                now = f"CURRENT_TIMESTAMP{size[0] if size else ''}"
                column = replace(
                    column, type=f"{written} NULL" if is_nullable else f"{written} DEFAULT {now}"
                )
            if _COMPUTED.search(extra.upper()):
                reason = "the server computes its values"
                column = replace(column, kind=ColumnKind.UNKNOWN, reason=reason)
            columns.setdefault(table, []).append(column)
        return columns

    def indexes(self) -> dict[str, list[SourceIndex]]:
        """The indexes of each table."""
        sql = (
            "SELECT table_name, index_name, non_unique, column_name, sub_part, index_type"
            f" FROM information_schema.statistics WHERE table_schema = '{self._schema}'"
            " ORDER BY table_name, index_name, seq_in_index"
        )
        indexes: dict[str, list[SourceIndex]] = {}
        for (table, name), rows in _by_index(rows_of(self._server, sql, 6)):
            kind = rows[0][5]
            trouble = "" if kind in ("BTREE", "HASH") else f"it is of the type {kind}"
            trouble = trouble if all(row[3] for row in rows) else "it is over an expression"
            lengths = tuple(_count(row[4]) for row in rows)
            index = SourceIndex(
                columns=tuple(row[3] for row in rows),
                is_primary=name == "PRIMARY",
                is_unique=rows[0][2] == "0",
                lengths=lengths if any(lengths) else (),
                trouble=trouble,
            )
            indexes.setdefault(table, []).append(index)
        return indexes

    def parents(self) -> dict[str, dict[str, tuple[str, str]]]:
        """The table and column to which each column refers, by table and column."""
        sql = (
            "SELECT table_name, MIN(column_name), MIN(referenced_table_name),"
            " MIN(referenced_column_name) FROM information_schema.key_column_usage"
            f" WHERE table_schema = '{self._schema}' AND referenced_table_schema = table_schema"
            " GROUP BY table_name, constraint_name HAVING COUNT(*) = 1"
        )
        return _parents(rows_of(self._server, sql, 4))

    def reserved(self, names: Iterable[str]) -> set[str]:
        """The names that the server takes only in quotes, in small letters."""
        plain = {name.lower() for name in names if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)}
        return self._refused(sorted(plain))

    def _refused(self, names: Sequence[str]) -> set[str]:
        try:
            self._server.ask(f"SELECT {', '.join(f'1 AS {name}' for name in names)}")
        except ServerError:
            if len(names) < 2:
                return set(names)
            middle = len(names) // 2
            return self._refused(names[:middle]) | self._refused(names[middle:])
        return set()

    def rows(self, table: str, estimate: int) -> tuple[int, bool]:
        """Number of rows, and whether they were counted."""
        some = f"SELECT 1 AS v FROM {self._placed(table)} LIMIT {COUNTED_MAX + 1}"
        try:
            counted = count_of(self._server, f"SELECT COUNT(*) FROM ({some}) AS counted")
        except ServerError:
            return estimate, False
        return max(counted, estimate if counted > COUNTED_MAX else 0), counted <= COUNTED_MAX

    def sampled(self, table: SourceTable, *, with_values: bool) -> SourceTable:
        """The table with facts of its columns' values; ServerError if it cannot be read."""
        columns = [column for column in table.columns if column.kind is not ColumnKind.UNKNOWN]
        measures = ["COUNT(*)"]
        for number, column in enumerate(columns, 1):
            value = f"v{number}"
            measures.append(f"COUNT({value})")
            measures.append(f"COUNT(DISTINCT {value})" if column.kind in _COUNTABLE else "0")
            has_ends = column.kind in _WITH_ENDS
            measures += [f"MIN({value})", f"MAX({value})"] if has_ends else ["''", "''"]
        some = self._some(table, [self._expression(column) for column in columns])
        sql = f"SELECT {', '.join(measures)} FROM ({some}) AS sampled"
        rows, *facts = row_of(self._server, sql, len(measures))
        samples = {}
        for number, column in enumerate(columns):
            values, distinct, least, greatest = facts[4 * number : 4 * number + 4]
            sample = ColumnSample(_count(rows), _count(values), least, greatest)
            samples[column.name] = self._counted(
                table, column, sample, _count(distinct), with_values=with_values
            )
        return replace(
            table,
            columns=tuple(
                replace(column, sample=samples.get(column.name)) for column in table.columns
            ),
        )

    def _counted(
        self,
        table: SourceTable,
        column: SourceColumn,
        sample: ColumnSample,
        distinct: int,
        *,
        with_values: bool,
    ) -> ColumnSample:
        """The sample with counts of few values, or of a foreign key's most frequent value."""
        if column.name in table.parents:
            if column.name in _key(table)[:1]:  # rows of a sample are together there
                return sample
            counts = self._counts(table, self._expression(column))
            return replace(sample, top=counts[0][1] if counts else 0)
        if column.kind is ColumnKind.TEXT and with_values:
            if _count(sample.greatest) > CHOICE_LENGTH_MAX:
                return sample
            counts = self._counts(table, self.text.format(f"origin.{self._quoted(column.name)}"))
        elif column.kind in _COUNTABLE and 0 < distinct <= FEW:
            counts = self._counts(table, self._expression(column))
        else:
            return sample
        is_few = len(counts) <= FEW and sample.values >= OFTEN * len(counts)
        return replace(sample, counts=counts if is_few else ())

    def _counts(self, table: SourceTable, expression: str) -> tuple[tuple[str, int], ...]:
        """The most frequent values in the sample, with their counts."""
        sql = (
            f"SELECT v1, COUNT(*) FROM ({self._some(table, [expression])}) AS sampled"
            f" WHERE v1 IS NOT NULL GROUP BY v1 ORDER BY 2 DESC, 1 LIMIT {FEW + 1}"
        )
        return tuple((row[0], _count(row[1])) for row in rows_of(self._server, sql, 2))

    def _some(self, table: SourceTable, expressions: Sequence[str]) -> str:
        """SQL for expressions v1, v2, … over the sample's rows.

        Of a large table it has as many rows from each end of the primary key: the oldest and the
        newest.
        """
        listed = ", ".join(f"{one} AS v{number}" for number, one in enumerate(expressions, 1))
        sql = f"SELECT {listed} FROM {self._placed(table.name)} AS origin"
        key = _key(table)
        if table.rows <= SAMPLE_ROWS or not key:
            return f"{sql} LIMIT {SAMPLE_ROWS}"
        ends = []
        for direction, alias in (("ASC", "head"), ("DESC", "tail")):
            order = ", ".join(f"origin.{self._quoted(name)} {direction}" for name in key)
            half = f"{sql} ORDER BY {order} LIMIT {SAMPLE_ROWS // 2}"
            ends.append(f"SELECT * FROM ({half}) AS {alias}")
        return " UNION ALL ".join(ends)

    def _expression(self, column: SourceColumn) -> str:
        form = self.expressions.get(column.kind, _ABSENT)
        if column.type.startswith("bit("):
            form = "{} + 0"
        return form.format(f"origin.{self._quoted(column.name)}")

    def _placed(self, table: str) -> str:
        return f"{self._quoted(self._schema)}.{self._quoted(table)}"

    def _quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote


def _by_index(
    rows: Iterable[tuple[str, ...]],
) -> Iterable[tuple[tuple[str, str], list[tuple[str, ...]]]]:
    """Table and name of each index, with the rows of its columns."""
    parts: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in rows:
        parts.setdefault((row[0], row[1]), []).append(row)
    return parts.items()


def _parents(rows: Iterable[tuple[str, ...]]) -> dict[str, dict[str, tuple[str, str]]]:
    """Foreign keys by table and column."""
    parents: dict[str, dict[str, tuple[str, str]]] = {}
    for table, column, parent, key, *_ in rows:
        parents.setdefault(table, {})[column] = (parent, key)
    return parents


def _key(table: SourceTable) -> tuple[str, ...]:
    """Columns of the primary key; empty without one."""
    return next((index.columns for index in table.indexes if index.is_primary), ())


POSTGRES_KINDS: Final[Mapping[str, ColumnKind]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), ColumnKind.WHOLE),
    **dict.fromkeys(("numeric", "float4", "float8"), ColumnKind.DECIMAL),
    **dict.fromkeys(("varchar", "text", "bpchar"), ColumnKind.TEXT),
    **dict.fromkeys(("timestamp", "timestamptz"), ColumnKind.DATETIME),
    **dict.fromkeys(("time", "timetz"), ColumnKind.TIME),
    **dict.fromkeys(("json", "jsonb"), ColumnKind.JSON),
    **{"bytea": ColumnKind.BYTES, "date": ColumnKind.DATE, "uuid": ColumnKind.UUID},
    "bool": ColumnKind.LABEL,
}
POSTGRES_CONSTANTS: Final = {
    **{"interval": "1 hour", "inet": "10.0.0.1", "cidr": "10.0.0.1", "money": "1.00"},
    **{"macaddr": "08:00:2b:01:02:03", "point": "(0,0)", "tsvector": "word"},
}
_SCHEMA: Final = "c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'public')"
_TABLES: Final = f"{_SCHEMA} AND c.relkind IN ('r', 'p') AND NOT c.relispartition"


class PostgresCatalog(MysqlCatalog):
    """Catalog and rows of the schema `public` of a PostgreSQL database."""

    quote = '"'
    expressions: Mapping[ColumnKind, str] = {
        **dict.fromkeys((ColumnKind.WHOLE, ColumnKind.DECIMAL), "{}"),
        ColumnKind.LABEL: "CAST({} AS text)",
        ColumnKind.DATE: "to_char({}, 'YYYY-MM-DD')",
        ColumnKind.DATETIME: "to_char({}, 'YYYY-MM-DD HH24:MI:SS')",
        ColumnKind.TEXT: "length({})",
        ColumnKind.BYTES: "octet_length({})",
        ColumnKind.JSON: "length(CAST({} AS text))",
    }
    text = "CAST({} AS text)"

    def __init__(self, server: Answering, _database: str) -> None:
        super().__init__(server, "public")

    def estimates(self) -> dict[str, int]:
        sql = (
            "SELECT c.relname, CAST(greatest(c.reltuples, 0) AS bigint) FROM pg_class c"
            f" WHERE {_TABLES} ORDER BY c.relname"
        )
        return {row[0]: _count(row[1]) for row in rows_of(self._server, sql, 2)}

    def columns(self) -> dict[str, list[SourceColumn]]:
        """The columns of each table; an enumeration becomes a text, a domain the type below it."""
        labels: dict[str, list[str]] = {}
        sql = "SELECT enumtypid, enumlabel FROM pg_enum ORDER BY enumtypid, enumsortorder"
        for kind_id, label, *_ in rows_of(self._server, sql, 2):
            labels.setdefault(kind_id, []).append(label)
        sql = (
            "SELECT c.relname, a.attname, b.typname, b.oid, b.typtype, b.typcategory,"
            " format_type(b.oid, CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE a.atttypmod END),"
            " CASE WHEN b.typnamespace = 'pg_catalog'::regnamespace THEN 1 ELSE 0 END,"
            " CASE WHEN a.attnotnull OR t.typnotnull THEN 1 ELSE 0 END, a.attgenerated"
            " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b"
            " ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END"
            f" WHERE {_TABLES} AND a.attnum > 0 AND NOT a.attisdropped"
            " ORDER BY c.relname, a.attnum"
        )
        columns: dict[str, list[SourceColumn]] = {}
        for row in rows_of(self._server, sql, 10):
            table, name, base, kind_id, form, category, written = row[:7]
            is_own, not_null, computed = row[7:10]
            kind, choices = _postgres_kind(base, form, category)
            if form == "e":
                choices = tuple(labels.get(kind_id, ()))
                written = f"varchar({max([1, *map(len, choices)])})"
            elif is_own == "0":
                kind = ColumnKind.UNKNOWN
            column = _column(name, kind, base, written, not_null == "0", choices)
            if computed:
                reason = "the server computes its values"
                column = replace(column, kind=ColumnKind.UNKNOWN, reason=reason)
            columns.setdefault(table, []).append(column)
        return columns

    def indexes(self) -> dict[str, list[SourceIndex]]:
        sql = (
            "SELECT c.relname, i.relname, CASE WHEN x.indisprimary THEN 1 ELSE 0 END,"
            " CASE WHEN x.indisunique THEN 1 ELSE 0 END, COALESCE(a.attname, ''), m.amname,"
            " CASE WHEN x.indpred IS NULL THEN 0 ELSE 1 END"
            " FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid"
            " JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam"
            " CROSS JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)"
            " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum"
            f" WHERE {_TABLES} AND k.place <= x.indnkeyatts"
            " ORDER BY c.relname, i.relname, k.place"
        )
        indexes: dict[str, list[SourceIndex]] = {}
        for (table, _name), rows in _by_index(rows_of(self._server, sql, 7)):
            is_primary, is_unique, _, method, is_partial = rows[0][2:7]
            trouble = "" if method in ("btree", "hash") else f"it is of the type {method}"
            trouble = "it is over some of the rows" if is_partial == "1" else trouble
            trouble = trouble if all(row[4] for row in rows) else "it is over an expression"
            index = SourceIndex(
                columns=tuple(row[4] for row in rows),
                is_primary=is_primary == "1",
                is_unique=is_unique == "1",
                trouble=trouble,
            )
            indexes.setdefault(table, []).append(index)
        return indexes

    def parents(self) -> dict[str, dict[str, tuple[str, str]]]:
        sql = (
            "SELECT c.relname, a.attname, f.relname, b.attname FROM pg_constraint k"
            " JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]"
            " JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = k.confkey[1]"
            f" WHERE {_TABLES} AND k.contype = 'f' AND cardinality(k.conkey) = 1"
            " AND f.relnamespace = c.relnamespace"
        )
        return _parents(rows_of(self._server, sql, 4))

    def reserved(self, names: Iterable[str]) -> set[str]:
        sql = "SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')"
        words = {row[0] for row in rows_of(self._server, sql, 1)}
        return words & {name.lower() for name in names}


def _postgres_kind(base: str, form: str, category: str) -> tuple[ColumnKind, tuple[str, ...]]:
    """The kind of a type of PostgreSQL's own, and the values that it may have."""
    kind = POSTGRES_KINDS.get(base, ColumnKind.UNKNOWN)
    choices: tuple[str, ...] = ()
    if form == "e":
        kind = ColumnKind.LABEL
    elif kind is ColumnKind.LABEL:
        choices = ("true", "false")
    elif kind is ColumnKind.UNKNOWN:
        whole = {"A": "{}"} if form == "b" else {"R": "empty"} if form == "r" else {}
        constant = POSTGRES_CONSTANTS.get(base, whole.get(category))
        kind = kind if constant is None else ColumnKind.CONSTANT
        choices = choices if constant is None else (constant,)
    return kind, choices
