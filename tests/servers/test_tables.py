"""A server's tables as it tells of them: catalogs of both products become templates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.draft import draft
from dbdyno.plan.template import Template, read
from dbdyno.servers.base import MYSQL, PGSQL
from dbdyno.servers.tables import TABLES_MAX, look


class Planted:
    """Answers SQL by the first pattern that is found in it; None refuses."""

    label = "shop"

    def __init__(self, *answers: tuple[str, Sequence[tuple[str, ...]] | None]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        self.asked.append(sql)
        rows = next(rows for pattern, rows in self.answers if re.search(pattern, sql))
        if rows is None:
            raise ServerError(f"did not answer {sql!r}", found="error 1142: denied")
        return list(rows)


def written(server: Planted, driver: str, *names: str, with_values: bool = False) -> Template:
    tables, reserved = look(server, driver, "shop", names, str, with_values=with_values)
    return read(draft(tables, "the database shop", reserved), "made.yaml")


NUMBER = ("bigint", "bigint(20) unsigned", "NO", "auto_increment")
MYSQL_ANSWERS = (
    (r"\b1 AS full\b", None),
    (r"^SELECT 1 AS", ()),
    (r"_schema\.tables", [("customers", "290"), ("orders", "2100000"), ("dbdyno_dataset", "3")]),
    (
        r"_schema\.columns",
        [
            ("customers", "id", *NUMBER),
            ("customers", "email", "varchar", "varchar(100)", "NO", ""),
            ("customers", "city", "varchar", "varchar(40)", "NO", ""),
            ("customers", "state", "enum", "enum('new','it''s')", "YES", ""),
            ("customers", "full", "varchar", "varchar(200)", "YES", "VIRTUAL GENERATED"),
            ("orders", "id", *NUMBER),
            ("orders", "customer_id", *NUMBER[:3], ""),
            ("orders", "total", "decimal", "decimal(10,2)", "NO", ""),
            ("orders", "paid", "timestamp", "timestamp(6)", "YES", ""),
            ("orders", "place", "point", "point", "YES", ""),
        ],
    ),
    (
        r"_schema\.statistics",
        [
            ("customers", "PRIMARY", "0", "id", "", "BTREE"),
            ("customers", "mail", "0", "email", "", "BTREE"),
            ("orders", "PRIMARY", "0", "id", "", "BTREE"),
            ("orders", "near", "1", "place", "32", "SPATIAL"),
            ("orders", "recent", "1", "customer_id", "", "BTREE"),
            ("orders", "recent", "1", "paid", "", "BTREE"),
        ],
    ),
    (r"key_column_usage", [("orders", "customer_id", "customers", "id")]),
    (r"FROM \(SELECT 1 AS v FROM `shop`\.`customers`", [("300",)]),
    (r"FROM \(SELECT 1 AS v FROM `shop`\.`orders`", [("1000001",)]),
    (r"^SELECT v1.*`state`", [("new", "180"), ("it's", "60")]),
    (r"^SELECT v1.*`city`", [("Ulm", "225"), ("Rom", "75")]),
    (r"^SELECT v1.*`customer_id`", [("7", "40")]),
    (
        r"`customers`",
        [
            (
                *("300", "300", "300", "1", "300", "300", "0", "8", "30"),
                *("300", "0", "3", "3", "240", "2", "", ""),
            )
        ],
    ),
    (
        r"`orders`",
        [
            (
                *("10000", "10000", "10000", "1", "2100000", "10000", "300", "1", "300"),
                *("10000", "0", "1.00", "99.50"),
                *("5000", "0", "2024-01-02 03:04:05.000000", "2024-12-01 00:00:00.000000"),
            )
        ],
    ),
)


def test_tables_of_mysql_become_a_template() -> None:
    server = Planted(*MYSQL_ANSWERS)
    template = written(server, MYSQL)
    assert [(name, table.rows) for name, table in template.tables.items()] == [
        ("customers", 300),
        ("orders", 2_100_000),
    ]
    customers, orders = (table.columns for table in template.tables.values())
    assert list(customers) == ["id", "email", "city", "state"]
    assert customers["id"].type == "bigint(20) unsigned NOT NULL PRIMARY KEY"
    assert customers["email"].type == "varchar(100) NOT NULL UNIQUE"
    assert customers["email"].value.text == (12, 30)
    state = customers["state"]
    assert (state.type, state.value.choice) == ("enum('new','it''s')", ("new", "it's"))
    assert (state.value.weights, state.value.null) == ((75, 25), 0.2)
    assert list(orders) == ["id", "customer_id", "total", "paid"]
    assert orders["customer_id"].value.uniform == "customers"
    assert orders["total"].value.decimal == ("1.00", "99.50")
    assert (orders["paid"].type, orders["paid"].value.null) == ("timestamp(6) NULL", 0.5)
    assert orders["paid"].value.datetime == ("2024-01-02 03:04:05", "2024-12-01 00:00:00")
    assert template.tables["orders"].indexes == ("customer_id, paid",)


def test_texts_stay_on_the_server_unless_they_are_wanted() -> None:
    server = Planted(*MYSQL_ANSWERS)
    assert written(server, MYSQL).tables["customers"].columns["city"].value.text == (3, 3)
    in_whole = re.compile(r"(?<!CHAR_LENGTH\()origin\.`(?:email|city)`")
    assert [sql for sql in server.asked if in_whole.search(sql)] == []
    template = written(server, MYSQL, "customers", with_values=True)
    assert template.tables["customers"].columns["city"].value.choice == ("Ulm", "Rom")


def test_each_question_about_rows_is_bounded() -> None:
    server = Planted(*MYSQL_ANSWERS)
    written(server, MYSQL)
    about_rows = [sql for sql in server.asked if "`shop`" in sql]
    assert len(about_rows) > 4
    for sql in about_rows:
        assert sql.count(" LIMIT ") >= sql.count("`shop`"), sql
    (both_ends,) = (sql for sql in about_rows if "DESC LIMIT 5000" in sql and "COUNT(v1)" in sql)
    assert "ORDER BY origin.`id` ASC LIMIT 5000" in both_ends


POSTGRES_ANSWERS = (
    (r"reltuples", [("people", "38")]),
    (r"FROM pg_enum", [("16400", "sad"), ("16400", "glad")]),
    (
        r"FROM pg_attribute",
        [
            ("people", "id", "uuid", "2950", "b", "U", "uuid", "1", "1", ""),
            ("people", "order", "int4", "23", "b", "N", "integer", "1", "0", ""),
            ("people", "mood", "mood", "16400", "e", "E", "mood", "0", "0", ""),
            ("people", "tags", "_text", "1009", "b", "A", "text[]", "1", "0", ""),
            ("people", "place", "geometry", "17000", "b", "U", "geometry", "0", "0", ""),
            ("people", "ok", "bool", "16", "b", "B", "boolean", "1", "1", ""),
            ("people", "born", "date", "1082", "b", "D", "date", "1", "0", ""),
            ("people", "age", "int4", "23", "b", "N", "integer", "1", "0", "s"),
        ],
    ),
    (
        r"FROM pg_index",
        [
            ("people", "people_pkey", "1", "1", "id", "btree", "0"),
            ("people", "tagged", "0", "0", "tags", "gin", "0"),
            ("people", "young", "0", "0", "born", "btree", "1"),
            ("people", "lower", "0", "0", "", "btree", "0"),
            ("people", "moody", "0", "0", "mood", "btree", "0"),
        ],
    ),
    (r"FROM pg_constraint", ()),
    (r"pg_get_keywords", [("order",), ("select",)]),
    (r"SELECT 1 AS v", [("40",)]),
    (r'^SELECT v1.*"mood"', [("sad", "30"), ("glad", "10")]),
    (r'^SELECT v1.*"ok"', [("true", "39"), ("false", "1")]),
    (
        r'"people"',
        [
            (
                *("40", "40", "0", "", "", "40", "40", "-5", "90", "40", "2", "", ""),
                *("0", "0", "", "", "40", "2", "", "", "30", "0", "1990-01-01", "2001-02-03"),
            )
        ],
    ),
)


def test_tables_of_postgres_become_a_template() -> None:
    template = written(Planted(*POSTGRES_ANSWERS), PGSQL)
    (people,) = template.tables.values()
    columns = people.columns
    assert list(columns) == ["id", "order_", "mood", "tags", "ok", "born"]
    assert (columns["id"].type, columns["id"].value.uuid) == ("uuid NOT NULL PRIMARY KEY", True)
    assert columns["order_"].value.uniform == (0, 90)
    assert (columns["mood"].type, columns["mood"].value.weights) == ("varchar(4)", (75, 25))
    assert (columns["tags"].value.constant, columns["tags"].value.null) == ("{}", 1)
    assert columns["ok"].value.choice == ("true", "false")
    assert (columns["born"].value.date, columns["born"].value.null) == (
        ("1990-01-01", "2001-02-03"),
        0.25,
    )
    assert people.indexes == ("mood",)


def test_a_table_that_may_not_be_read_gets_usual_values() -> None:
    answers = [(pattern, rows) for pattern, rows in MYSQL_ANSWERS if "1 AS v" not in pattern]
    said: list[str] = []
    server = Planted((r"^SELECT .*`shop`\.`orders`", None), *answers)
    (orders,), _ = look(server, MYSQL, "shop", ["orders"], said.append)
    assert (orders.rows, orders.is_counted) == (2_100_000, False)
    assert all(column.sample is None for column in orders.columns)
    assert said[-1].endswith("usual values: error 1142: denied")


def test_tables_that_are_not_there_are_named() -> None:
    with pytest.raises(UsageError, match="no table absent, order") as caught:
        look(Planted(*MYSQL_ANSWERS), MYSQL, "shop", ["absent", "order", "orders"], str)
    assert caught.value.found == "customers, orders"
    with pytest.raises(UsageError, match="has no tables"):
        look(Planted(("", ())), MYSQL, "shop", [], str)
    many = [(f"t{number}", "1") for number in range(TABLES_MAX + 1)]
    with pytest.raises(UsageError, match="has 51 tables"):
        look(Planted((r"_schema\.tables", many)), MYSQL, "shop", [], str)


def test_a_database_without_a_table_that_can_be_filled_is_refused() -> None:
    answers = [("_schema.columns", [("orders", "place", "point", "point", "YES", "")])]
    server = Planted(*answers, *MYSQL_ANSWERS)
    with pytest.raises(UsageError, match="no table that a template can fill"):
        look(server, MYSQL, "shop", ["orders"], str)
