"""Values of templates: their shape over many draws, in rows and in events, without a server."""

from __future__ import annotations

import json
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from math import sqrt
from typing import cast

import pytest

from dbdyno import _engine
from dbdyno.errors import PlanError
from dbdyno.experiment.engine import ceiling
from dbdyno.experiment.engine.spec import script_spec
from dbdyno.plan.template import examples, lua, read
from dbdyno.plan.values import WORD_LENGTH_MAX
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import MYSQL, PGSQL, Endpoint, Server
from dbdyno.servers.process import LOOPBACK
from support import making
from support.source import ROOT

SERVER = """
local key, connection = 1000, {}
for _, name in ipairs({ "init", "done" }) do
  connection["bulk_insert_" .. name] = function() end
end
function connection.bulk_insert_next(_, row) print(row) end
function connection.query(_, sql) if sql:find("setval") then print(sql) end end
function connection.query_row() return "1" end
function connection.prepare()
  local statement = { bind_param = function() end, execute = function() end }
  function statement.bind_create() return { set = function() end } end
  return statement
end
function connection.affected_rows() return 1 end
function connection.last_insert_id() key = key + 1 return key end
function connection.disconnect() end
sysbench.sql.driver = function()
  return { connect = function() return connection end, name = function() return "DRIVER" end }
end
"""
"""Prints its rows. Each INSERT gets the next key after 1000."""
ROWS = 4000
Printed = Callable[..., list[str]]


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Printed:
    """Lines that a template's command prints on a server of this driver."""

    def run(text: str, command: str, driver: str = MYSQL) -> list[str]:
        made = SERVER.replace("DRIVER", driver) + lua(read(text, "made.yaml"), "made.yaml")
        workload = WorkloadPlan(name="made.yaml", script=made)
        nobody = ceiling._Nobody(driver, Endpoint(LOOPBACK, 1, None), ceiling.ANYBODY)
        spec = script_spec(making.plan(), workload, cast(Server, nobody), command, 1)
        script = _engine.Script(spec)
        script.options()
        script.set_options(spec["options"])
        script.run_command(command, 1)
        return capfd.readouterr().out.splitlines()

    return run


@pytest.fixture
def drawn(printed: Printed) -> Printed:
    """Literals of a column with this rule."""

    def rows(rule: str, driver: str = MYSQL) -> list[str]:
        column = f"{{type: TEXT, value: {rule}}}"
        tables = f"tables: {{t: {{rows: {ROWS}, columns: {{c: {column}}}}}}}"
        lines = printed(f"{tables}\nevents: {{e: {{statements: [SELECT 1]}}}}", "prepare", driver)
        assert len(lines) == ROWS
        return [line[1:-1] for line in lines]

    return rows


def is_share(count: int, share: float) -> bool:
    """Whether so many of all rows are no surprise: within six standard deviations."""
    return abs(count - share * ROWS) <= 6 * sqrt(ROWS * share * (1 - share))


def test_dates_are_uniform_and_have_both_ends(drawn: Printed) -> None:
    days = Counter(drawn("{date: [2024-02-28, 2024-03-02]}"))
    assert sorted(days) == ["'2024-02-28'", "'2024-02-29'", "'2024-03-01'", "'2024-03-02'"]
    seconds = Counter(drawn("{datetime: [1969-12-31 23:59:58, 1970-01-01T00:00:01]}"))
    assert sorted(seconds) == [
        "'1969-12-31 23:59:58'",
        "'1969-12-31 23:59:59'",
        "'1970-01-01 00:00:00'",
        "'1970-01-01 00:00:01'",
    ]
    assert all(is_share(count, 1 / 4) for count in [*days.values(), *seconds.values()])
    for rule in ("{date: [1000-01-01, 9999-12-31]}", "{datetime: [1000-01-01, 9999-12-31]}"):
        years = [datetime.fromisoformat(text[1:-1]).year for text in drawn(rule)]
        assert min(years) < 1050
        assert max(years) > 9950


def test_decimals_are_uniform_and_have_the_digits_of_their_bounds(drawn: Printed) -> None:
    few = Counter(drawn("{decimal: [-0.02, 0.02]}"))
    assert set(few) == {"'-0.02'", "'-0.01'", "'0.00'", "'0.01'", "'0.02'"}
    assert all(is_share(count, 1 / 5) for count in few.values())
    assert set(drawn("{decimal: [5, 7]}")) == {"'5'", "'6'", "'7'"}
    prices = drawn("{decimal: [0.00, 999.90]}")
    assert all(re.fullmatch(r"'\d{1,3}\.\d\d'", price) for price in prices)
    assert is_share(sum(price[-2] == "0" for price in prices), 1 / 10)
    assert is_share(sum(float(price[1:-1]) < 100 for price in prices), 1 / 10)
    long = [text[1:-1] for text in drawn("{decimal: [0, 999999999999.999]}")]
    assert all(re.fullmatch(r"\d{1,12}\.\d{3}", text) for text in long)
    assert is_share(sum(float(text) > 5e11 for text in long), 1 / 2)


@pytest.mark.parametrize(
    "rule",
    [
        "{row: true, null: 0.1}",
        "{words: 2, null: 0.1}",
        "{date: [2024-01-01, 2024-01-01], null: 0.1}",
    ],
)
def test_a_share_of_any_value_is_null(drawn: Printed, rule: str) -> None:
    assert is_share(drawn(rule).count("NULL"), 0.1)


def test_a_uuid_is_of_version_4_and_never_the_same(drawn: Printed) -> None:
    texts = [text[1:-1] for text in drawn("uuid")]
    numbers = [uuid.UUID(text) for text in texts]
    assert [str(number) for number in numbers] == texts
    assert {(number.version, number.variant) for number in numbers} == {(4, uuid.RFC_4122)}
    assert len(set(texts)) == ROWS
    assert all(is_share(sum(n.int >> bit & 1 for n in numbers), 1 / 2) for bit in (0, 61, 80, 127))


def test_words_are_plain_some_are_frequent_and_they_compress_like_text(drawn: Printed) -> None:
    texts = [text[1:-1] for text in drawn("{words: [3, 8]}")]
    lengths = Counter(len(text.split(" ")) for text in texts)
    assert sorted(lengths) == [3, 4, 5, 6, 7, 8]
    assert all(is_share(count, 1 / 6) for count in lengths.values())
    words = Counter(word for text in texts for word in text.split(" "))
    assert len(words) > 250
    assert all(re.fullmatch("[a-z]+", word) for word in words)
    assert max(map(len, words)) == WORD_LENGTH_MAX
    assert max(words.values()) > 3 * words.total() / len(words)
    letters = [text[1:-1] for text in drawn("{text: [20, 50]}")]
    shares = [
        len(zlib.compress(whole)) / len(whole)
        for whole in ("\n".join(lines).encode() for lines in (texts, letters))
    ]
    assert 0.2 < shares[0] < 0.5 < shares[1]


OBJECT = """{json: {
  id: row, "a key": {choice: [it's, b]}, price: {decimal: [1.50, 2.50]},
  deep: {json: {day: {date: [2024-01-01, 2024-01-31]}, gone: {uniform: [1, 2], null: 0.5}}}}}"""


def test_an_object_has_its_members_as_json_writes_them(drawn: Printed) -> None:
    texts = [text[1:-1].replace("''", "'") for text in drawn(OBJECT.replace("\n", " "))]
    assert re.fullmatch(r'\{"id": 1, "a key": ".*", "price": \d\.\d\d, "deep": \{.*\}\}', texts[0])
    objects = [json.loads(text) for text in texts]
    assert [one["id"] for one in objects] == list(range(1, ROWS + 1))
    assert {one["a key"] for one in objects} == {"it's", "b"}
    assert all(1.5 <= one["price"] <= 2.5 for one in objects)
    assert {date.fromisoformat(one["deep"]["day"]).month for one in objects} == {1}
    assert {one["deep"]["gone"] for one in objects} == {1, 2, None}
    assert is_share(sum(one["deep"]["gone"] is None for one in objects), 1 / 2)


@pytest.mark.parametrize("rule", [OBJECT, "uuid", "{words: 9, null: 0.5}", "{decimal: [0.0, 9.9]}"])
def test_rows_are_the_same_again_and_on_every_product(drawn: Printed, rule: str) -> None:
    rows = drawn(rule.replace("\n", " "))
    assert rows == drawn(rule.replace("\n", " ")) == drawn(rule.replace("\n", " "), PGSQL)


def event(draw: object, *statements: object) -> str:
    """A template with one event on a table of ten rows."""
    columns = {"id": {"type": "INTEGER PRIMARY KEY", "value": "row"}}
    tables = {"jobs": {"rows": 10, "columns": columns}}
    events = {"one": {"draw": draw, "statements": statements}}
    return json.dumps({"tables": tables, "events": events})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"date": ["2024-02-30", "2024-03-01"]}, "2024-02-30 does not exist"),
        ({"date": ["2024-1-1", "2024-03-01"]}, "must be a date such as 2026-01-31"),
        ({"date": ["2024-03-02", "2024-03-01"]}, "must be from the lesser to the greater, found"),
        ({"datetime": ["2024-03-01 25:00", "2024-03-02"]}, "2024-03-01 25:00 does not exist"),
        ({"decimal": ["1e3", 2000]}, "must be a number such as 0.00 or 999.99, found '1e3'"),
        ({"decimal": [0.5, 0.25]}, "must be from the lesser to the greater, found [0.5, 0.25]"),
        ({"decimal": [0, "9999999999999.999"]}, "must have at most 15 digits"),
        ({"constant": 1, "null": 2}, "must be at most 1"),
        ({"uuid": True, "constant": 1}, "must be row, uuid, or one of uniform"),
        ({"json": {}}, "needs at least one entry"),
        ({"json": {"a": 5}}, "json.a: must be keys with values, found 5"),
        ({"json": {'a"b': "uuid"}}, "has a quotation mark, backslash or control character"),
        ({"json": {"a": "row"}}, "row is for columns; say sequential here"),
        ({"json": {"a": {"sequential": "jobs.number"}}}, "json.a: jobs has no column 'number'"),
        ({"jsn": {"a": {"constant": 1}}}, "is no key of a template; did you mean json?"),
        ({"recent": "jobs.id"}, "needs an INSERT INTO jobs with id, or sequential: jobs.id"),
    ],
)
def test_a_rule_that_cannot_be_is_a_mistake(value: object, said: str) -> None:
    with pytest.raises(PlanError, match=re.escape(said)):
        read(event({"a": value}, "DELETE FROM jobs WHERE id = :a"), "made.yaml")


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ([{"sql": "SELECT :a FROM jobs", "id": "key"}], "statements[0].id: is for INSERT INTO a"),
        ([{"sql": "INSERT INTO jobs VALUES (:a)", "id": "a"}], "there is a value :a already"),
        (["SELECT :key, :a", {"sql": "INSERT INTO jobs VALUES (1)", "id": "key"}], "no value :key"),
    ],
)
def test_a_key_that_leads_nowhere_is_a_mistake(statements: list[object], said: str) -> None:
    with pytest.raises(PlanError, match=re.escape(said)):
        read(event({"a": {"constant": 1}}, *statements), "made.yaml")


def test_rules_are_for_columns_or_for_events() -> None:
    for rule in ("{recent: t.c}", "{json: {a: {sequential: t.c}}}"):
        tables = f"tables: {{t: {{rows: 1, columns: {{c: {{type: TEXT, value: {rule}}}}}}}}}"
        with pytest.raises(PlanError, match="is for events; say row or uniform here"):
            read(f"{tables}\nevents: {{e: {{statements: [SELECT 1]}}}}", "made.yaml")


KEYS = """
tables:
  orders:
    rows: 300
    columns:
      Id: {type: SERIAL PRIMARY KEY, value: row}
      total: {type: DECIMAL(10,2) NOT NULL, value: {decimal: [0.00, 9.99]}}
  items: {rows: 0, columns: {order_id: {type: BIGINT, value: row}}}
events:
  look: {draw: {order: {recent: orders.Id}}, statements: [SELECT 1 FROM orders WHERE id = :order]}
  order:
    transaction: true
    draw: {total: {decimal: [0.00, 9.99]}}
    statements:
      - sql: INSERT INTO orders (total) VALUES (:total) RETURNING id
        id: order
      - {sql: INSERT INTO items(order_id) VALUES (:order), repeat: 2}
      - SELECT total FROM orders WHERE id = :order
  again: {draw: {order: {recent: orders.Id}}, statements: [SELECT 2 FROM orders WHERE id = :order]}
"""


@pytest.mark.parametrize(("driver", "returning"), [(MYSQL, ""), (PGSQL, " RETURNING id")])
def test_later_statements_and_events_know_the_key_of_a_new_row(
    printed: Printed, driver: str, returning: str
) -> None:
    lines = [re.sub(r"'\d\.\d\d'", "TOTAL", line) for line in printed(KEYS, "try", driver)]
    loaded = re.fullmatch(r"  SELECT 1 FROM orders WHERE id = \? with (\d+): .*", lines[1])
    assert loaded is not None
    assert 1 <= int(loaded[1]) <= 300, "no event has inserted a row yet"
    assert [lines[0], *lines[2:11]] == [
        "1: look",
        "2: order",
        "  BEGIN",
        f"  INSERT INTO orders (total) VALUES (?){returning} with TOTAL: 1 row affected, id 1001",
        "  INSERT INTO items(order_id) VALUES (?) with 1001: 1 row affected",
        "  INSERT INTO items(order_id) VALUES (?) with 1001: 1 row affected",
        "  SELECT total FROM orders WHERE id = ? with 1001: 1 row affected",
        "  COMMIT",
        "3: again",
        "  SELECT 2 FROM orders WHERE id = ? with 1001: 1 row affected",
    ]
    assert examples(lua(read(KEYS, "made.yaml"), "made.yaml")) == {
        "look.1": "SELECT 1 FROM orders WHERE id = 150",
        "order.3": "SELECT total FROM orders WHERE id = 301",
        "again.1": "SELECT 2 FROM orders WHERE id = 150",
    }


def test_a_sequence_goes_on_behind_the_loaded_rows(printed: Printed) -> None:
    sequence = "SELECT setval(pg_get_serial_sequence('orders', 'id'), 300)"
    assert printed(KEYS, "prepare", PGSQL)[0] == sequence
    assert sequence not in printed(KEYS, "prepare", MYSQL)


def test_postgresql_needs_returning(printed: Printed) -> None:
    without = KEYS.replace(" RETURNING id", "")
    with pytest.raises(RuntimeError, match="must end with RETURNING and a column on PostgreSQL"):
        printed(without, "try", PGSQL)
    assert printed(without, "try", MYSQL)


def test_drawn_keys_are_recent_as_well(printed: Printed) -> None:
    insert = event({"id": {"sequential": "jobs.id"}}, "INSERT INTO jobs VALUES (:id)")
    whole = json.loads(insert)
    delete = event({"id": {"recent": "jobs.id"}}, "DELETE FROM jobs WHERE id = :id")
    whole["events"]["two"] = json.loads(delete)["events"]["one"]
    lines = printed(json.dumps(whole), "try")
    assert lines[:4] == [
        "1: one",
        "  INSERT INTO jobs VALUES (?) with 2: 1 row affected",
        "2: two",
        "  DELETE FROM jobs WHERE id = ? with 2: 1 row affected",
    ], "the greatest key that this server tells is 1"


def test_each_event_is_tried_in_the_order_of_the_file(printed: Printed) -> None:
    events = {
        f"e{number}": {"weight": 1e9 if number == 4 else 1, "statements": ["SELECT 1"]}
        for number in range(12)
    }
    for count in (2, 12):
        few = dict(list(events.items())[:count])
        lines = printed(json.dumps({"events": few}), "try")
        heads = [line for line in lines if not line.startswith(" ")]
        assert len(heads) == max(count, 10)
        assert heads[:count] == [f"{place}: {name}" for place, name in enumerate(few, 1)]


def test_the_templates_that_the_docs_show_are_templates() -> None:
    for page in ("templates.md", "own-load.md"):
        text = (ROOT / "docs/how-to" / page).read_text()
        shown = re.findall(r"^```yaml\n(tables:.*?)^```", text, re.MULTILINE | re.DOTALL)
        assert shown
        for template in shown:
            assert read(template, page).tables
