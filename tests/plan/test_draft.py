"""Templates written from a server's tables: each is valid, and has the tables' shape."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from dbdyno.plan.draft import draft
from dbdyno.plan.source import ColumnKind as Kind
from dbdyno.plan.source import ColumnSample, SourceColumn, SourceIndex, SourceTable
from dbdyno.plan.template import Template, read

BIGINT = 2**63 - 1
ID = SourceColumn("id", "bigint", Kind.WHOLE, is_nullable=False, limit=BIGINT)
NOTE = SourceColumn("note", "varchar(50)", Kind.TEXT, limit=50)
KEY = SourceIndex(("id",), is_primary=True, is_unique=True)
JOBS = SourceTable("jobs", 1000, True, (ID, NOTE), (KEY,))


def seen(rows: int = 100, values: int = 100, least: str = "", greatest: str = "") -> ColumnSample:
    return ColumnSample(rows, values, least, greatest)


def drafted(*tables: SourceTable, reserved: Collection[str] = ()) -> tuple[str, Template]:
    text = draft(tables, "the database shop", reserved)
    return text, read(text, "made.yaml")


def statement(template: Template, event: str) -> str:
    return template.events[event].statements[0].sql


def test_a_table_is_read_by_its_key_and_gets_new_rows() -> None:
    _, template = drafted(JOBS)
    jobs = template.tables["jobs"]
    assert (jobs.rows, jobs.columns["id"].type) == (1000, "bigint NOT NULL PRIMARY KEY")
    assert jobs.columns["id"].value.row
    assert template.shares() == {"jobs_read": 0.9, "jobs_update": 0.08, "jobs_insert": 0.02}
    assert [statement(template, event) for event in template.events] == [
        "SELECT * FROM jobs WHERE id = :id",
        "UPDATE jobs SET note = :note WHERE id = :id",
        "INSERT INTO jobs (id, note) VALUES (:id, :note)",
    ]
    assert template.events["jobs_read"].draw["id"].uniform == "jobs"
    assert template.events["jobs_insert"].draw["id"].sequential == "jobs.id"


COUNTED = ColumnSample(100, 100, "1", "2", counts=(("2", 75), ("1", 25)))
NAMED = ColumnSample(100, 100, "3", "4", counts=(("open", 99), ("it's", 1)))


@pytest.mark.parametrize(
    ("kind", "more", "sample", "value"),
    [
        (Kind.WHOLE, {"limit": 127}, seen(least="3", greatest="50"), "{uniform: [3, 50]}"),
        (Kind.WHOLE, {"limit": 127}, COUNTED, "{choice: [2, 1], weights: [75, 25]}"),
        (Kind.WHOLE, {}, seen(least="-9", greatest="-3"), "{constant: -3}"),
        (Kind.WHOLE, {}, seen(least="-9", greatest="3"), "{uniform: [0, 3]}"),
        (Kind.WHOLE, {}, seen(least="7", greatest="17" * 6), '{format: "1###########"}'),
        (Kind.WHOLE, {"limit": 127}, None, "{uniform: [1, 127]}"),
        (Kind.DECIMAL, {"places": 2}, seen(least="-0.5", greatest="9"), "{decimal: [-0.50, 9.00]}"),
        (Kind.DECIMAL, {}, seen(least="0.125", greatest="9"), "{decimal: [0.125, 9.000]}"),
        (Kind.DECIMAL, {"places": 2, "limit": 9}, seen(least="NaN"), "{decimal: [0.00, 9.00]}"),
        (Kind.TEXT, {}, seen(100, 75, "3", "40"), "{text: [3, 40], null: 0.25}"),
        (Kind.TEXT, {}, seen(100, 0), "{text: [1, 20], null: 1}"),
        (Kind.TEXT, {}, seen(100, 75, "36", "36"), "{uuid: true, null: 0.25}"),
        (Kind.TEXT, {}, NAMED, '{choice: ["open", "it\'s"], weights: [99, 1]}'),
        (Kind.TEXT, {"limit": 5}, None, "{text: [1, 5]}"),
        (Kind.BYTES, {}, seen(least="0", greatest="100000"), "{text: [0, 65535]}"),
        (
            Kind.DATE,
            {},
            seen(least="2020-01-02", greatest="2021-03-04"),
            "{date: [2020-01-02, 2021-03-04]}",
        ),
        (
            Kind.DATE,
            {},
            seen(least="0000-00-00", greatest="2021-03-04"),
            "{date: [2024-01-01, 2024-12-31]}",
        ),
        (
            Kind.DATETIME,
            {},
            seen(least="2020-01-02 03:04:05.5", greatest="2021-03-04"),
            '["2020-01-02 03:04:05", "2021-03-04 00:00:00"]',
        ),
        (Kind.UUID, {}, seen(), "value: uuid}"),
        (Kind.TIME, {}, seen(), '{format: "1#:3#:0#"}'),
        (Kind.JSON, {}, seen(least="20", greatest="100"), "{json: {text: {text: [8, 88]}}}"),
        (Kind.LABEL, {"choices": ("new", "back\\slash")}, None, '{choice: ["new"]}'),
        (Kind.CONSTANT, {"choices": ("{}",)}, seen(), '{constant: "{}"}'),
    ],
)
def test_values_are_like_those_of_the_sample(
    kind: Kind, more: dict[str, object], sample: ColumnSample | None, value: str
) -> None:
    column = replace(SourceColumn("x", "some", kind, sample=sample), **more)
    text, _ = drafted(replace(JOBS, columns=(ID, column)))
    (line,) = (line for line in text.splitlines() if line.startswith("      x: {type:"))
    assert value in line


def test_a_foreign_key_draws_rows_of_its_table() -> None:
    parent = SourceColumn("job", "bigint", Kind.WHOLE, limit=BIGINT)
    values = {}
    for top in (12, 400):
        column = replace(parent, sample=ColumnSample(1000, 800, "1", "1000", top=top))
        parents = {"job": ("jobs", "id")}
        tasks = SourceTable("tasks", 9000, True, (ID, column), (KEY,), parents)
        values[top] = drafted(JOBS, tasks)[1].tables["tasks"].columns["job"].value
    assert (values[12].uniform, values[12].null) == ("jobs", 0.2)
    assert values[400].zipfian == "jobs"
    _, alone = drafted(tasks)
    assert alone.tables["tasks"].columns["job"].value.uniform == (1, 1000)


def test_names_that_need_quotes_are_changed() -> None:
    names = ("order", "Note", "note", "two words", "订单", "9lives", "evil\n  x: 1")
    columns = tuple(replace(NOTE, name=name) for name in names)
    index = SourceIndex(("order", "two words"), lengths=(0, 8))
    table = SourceTable("select", 5, True, (ID, *columns), (KEY, index))
    text, template = drafted(table, reserved={"select", "order"})
    made = template.tables["select_"]
    assert list(made.columns) == [
        *("id", "order_", "Note", "note_2", "two_words", "renamed", "_9lives", "evil_x_1"),
    ]
    assert made.indexes == ("order_, two_words (8)",)
    assert "# order on the server" in text
    assert "# evil x: 1 on the server" in text


def test_long_names_leave_room_for_the_endings_of_events() -> None:
    names = [f"{'long' * 15}_{end}" for end in "ab"]
    _, template = drafted(*(replace(JOBS, name=name) for name in names))
    assert len(template.tables) == 2
    assert len(template.events) == 6


def test_a_key_of_two_columns_differs_in_the_one_that_refers_nowhere() -> None:
    job = replace(ID, name="job")
    line = SourceColumn("line", "int", Kind.WHOLE, is_nullable=False, limit=2**31 - 1)
    key = SourceIndex(("job", "line"), is_primary=True, is_unique=True)
    lines = SourceTable("lines", 5000, True, (job, line), (key,), {"job": ("jobs", "id")})
    _, template = drafted(JOBS, lines)
    made = template.tables["lines"].columns
    assert made["line"].type == "int NOT NULL, PRIMARY KEY (job, line)"
    assert (made["job"].value.uniform, made["line"].value.row) == ("jobs", True)
    assert statement(template, "lines_read") == "SELECT * FROM lines WHERE job = :job LIMIT 10"
    assert "lines_update" not in template.events
    assert template.events["lines_insert"].draw["line"].uniform == (5001, 2**31 - 1)


def test_a_key_whose_type_has_too_few_numbers_is_an_index() -> None:
    job = replace(ID, name="job")
    line = SourceColumn("line", "tinyint", Kind.WHOLE, is_nullable=False, limit=127)
    key = SourceIndex(("job", "line"), is_primary=True, is_unique=True)
    parents = {"job": ("jobs", "id")}
    text, template = drafted(JOBS, SourceTable("lines", 5000, True, (job, line), (key,), parents))
    assert template.tables["lines"].indexes == ("job, line",)
    assert "# The index on (job, line) is unique on the server." in text
    small = replace(JOBS, rows=100, columns=(replace(ID, limit=127), NOTE))
    assert "jobs_insert" not in drafted(small)[1].events


def test_a_key_that_is_no_number_is_looked_for_behind_a_random_value() -> None:
    code = SourceColumn("id", "char(36)", Kind.UUID, is_nullable=False)
    _, template = drafted(replace(JOBS, columns=(code, NOTE)))
    assert template.tables["jobs"].columns["id"].value.uuid
    assert statement(template, "jobs_read").endswith("WHERE id >= :id ORDER BY id LIMIT 1")
    assert " WHERE id = (SELECT id FROM (SELECT id " in statement(template, "jobs_update")


def test_unique_texts_are_long_enough_to_differ() -> None:
    sample = seen(least="4", greatest="9")
    unique = SourceIndex(("note",), is_unique=True)
    table = replace(JOBS, columns=(ID, replace(NOTE, sample=sample)), indexes=(KEY, unique))
    column = drafted(table)[1].tables["jobs"].columns["note"]
    assert (column.type, column.value.text) == ("varchar(50) UNIQUE", (12, 12))


def test_the_rest_is_left_out_and_says_why() -> None:
    place = SourceColumn("place", "geo\nmetry", Kind.UNKNOWN, reason="no values")
    indexes = (SourceIndex(("place",)), SourceIndex(("note",), trouble="it is FULLTEXT"))
    table = replace(JOBS, rows=0, columns=(place, NOTE), indexes=indexes)
    text, template = drafted(table)
    assert "# place (geo metry) is left out: no values" in text
    assert "# The index on (place) is left out: a column of it is left out." in text
    assert "# The index on (note) is left out: it is FULLTEXT." in text
    assert (template.tables["jobs"].rows, list(template.events)) == (1, ["jobs_insert"])


def test_numbers_of_rows_say_where_they_are_from() -> None:
    text, _ = drafted(JOBS, replace(JOBS, name="more", is_counted=False))
    rows = [line.strip() for line in text.splitlines() if " rows: " in line]
    assert rows == ["rows: 1000  # counted", "rows: 1000  # the server's estimate"]
