"""Templates: every mistake at once with its line, and events that send what they say."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.errors import PlanError
from dbdyno.experiment.engine.spec import script_spec
from dbdyno.plan.template import Template, examples, lua, read, take_script
from dbdyno.plan.workload import SCRIPT_LENGTH_MAX, WorkloadPlan
from dbdyno.servers.base import Credentials, Endpoint
from support import making
from support.source import ROOT

EXAMPLES = sorted((ROOT / "workloads").glob("*.yaml"))


class Nobody:
    driver = "mysql"
    endpoint = Endpoint("127.0.0.1", 1, None)
    credentials = Credentials("load", "")
    database = "sbtest"


def template(**event: object) -> Template:
    """One event on a table of ten rows."""
    columns = {"id": {"type": "INTEGER PRIMARY KEY", "value": "row"}}
    whole = {"tables": {"jobs": {"rows": 10, "columns": columns}}, "events": {"one": event}}
    return read(json.dumps(whole), "made.yaml")


def dry(script: str, threads: int = 2, events: int = 200) -> list[dict[str, Any]]:
    """The intervals of a run in which a server would say OK to everything."""
    workload = WorkloadPlan(name="made.yaml", script=script)
    made = script_spec(making.plan(), workload, Nobody(), "run", threads)
    made["database"]["dry_run"] = True
    spec = {
        **{name: made["database"][name] for name in ("endpoint", "user", "password", "database")},
        **{"connections": threads, "window_s": 0, "events": events, "seed": 1, "script": made},
        "workload": {"name": "script"},
        "dry_run": True,
    }
    record = _engine.run(spec, None, _engine.Stop())
    assert record["failure"] is None
    return record["intervals"]


MISTAKEN = """\
tables:
  jobs:
    rows: -1
    columns:
      id: {type: BIGINT, value: row}
      state: {type: TEXT, value: {choice: [a, b], weights: [1]}}
    indexes: [sate]
  empty: {rows: 0, columns: {id: {type: INTEGER, value: row}}}
events:
  take:
    wieght: 3
    statements: []
"""


def test_all_mistakes_of_shape_come_at_once_with_their_lines() -> None:
    with pytest.raises(PlanError) as caught:
        read(MISTAKEN, "made.yaml")
    assert str(caught.value).splitlines() == [
        "made.yaml: 4 mistakes",
        "  line 3: tables.jobs.rows: must be at least 0, found -1",
        "  line 6: tables.jobs.columns.state.value: needs as many weights as there are choices",
        "  line 11: events.take.wieght: is no key of a template; did you mean weight?",
        "  line 12: events.take.statements: needs at least one entry, found []",
    ]


MEANT_OTHERWISE = """\
tables:
  jobs:
    rows: 5
    columns:
      id: {type: BIGINT, value: row}
      note: {type: TEXT, value: {constant: 'a\\b'}}
    indexes: [sate]
  empty: {rows: 0, columns: {id: {type: INTEGER, value: row}}}
events:
  take:
    draw:
      id: {uniform: job}
      gone: {uniform: empty}
      next: {sequential: jobs.number}
      spare: row
    statements:
      - SELECT * FROM jbos WHERE id = :id AND other = :idd AND at > '2026-01-01 10:00'::timestamp
      - UPDATE jobs SET state = ? WHERE id = :gone OR id = :next
      - DELETE FROM other_schema.jobs WHERE EXTRACT(YEAR FROM at) = 2020
"""


TYPES = """\
tables:
  jobs:
    rows: 1
    columns:
      a: {type: DECIMAL(10,2) NOT NULL, value: row}
      b: {value: row, type: DOUBLE PRECISION CHECK (abs(1, (2, 3)) > 0) NULL}
events: {look: {statements: [SELECT 1]}}
"""


def test_a_type_may_have_commas_in_parentheses_also_within_braces() -> None:
    columns = read(TYPES, "made.yaml").tables["jobs"].columns
    assert {name: column.type for name, column in columns.items()} == {
        "a": "DECIMAL(10,2) NOT NULL",
        "b": "DOUBLE PRECISION CHECK (abs(1,(2,3)) > 0) NULL",
    }


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (TYPES.replace("NOT NULL, value", "NOT NULL: 5, value"), r"columns\.a\.2\) NOT NULL"),
        (TYPES.replace("[SELECT 1]", "[{sql: SELECT f(1, 2) + 1}]"), r"statements\[0\]\.2\) \+ 1"),
    ],
)
def test_another_comma_within_braces_needs_quotes(typed: str, key: str) -> None:
    with pytest.raises(PlanError, match=f"{key}: follows a comma within braces; write"):
        read(typed, "made.yaml")


def test_so_do_names_that_lead_nowhere() -> None:
    with pytest.raises(PlanError) as caught:
        read(MEANT_OTHERWISE, "made.yaml")
    assert str(caught.value).splitlines()[1:] == [
        "  line 6: tables.jobs.columns.note: has a backslash, which MySQL and PostgreSQL read in "
        "different ways",
        "  line 7: tables.jobs.indexes[0]: there is no column 'sate'; there are id, note",
        "  line 12: events.take.draw.id: there is no table 'job'; did you mean jobs?",
        "  line 13: events.take.draw.gone: empty has no rows to draw from",
        "  line 14: events.take.draw.next: jobs has no column 'number'; there are id, note",
        "  line 15: events.take.draw.spare: row is for columns; say sequential here",
        "  line 15: events.take.draw.spare: is used by no statement",
        "  line 17: events.take.statements[0]: there is no value :idd in draw; did you mean id?",
        "  line 17: events.take.statements[0]: there is no table 'jbos'; did you mean jobs?",
        "  line 18: events.take.statements[1]: has a ?; write :name for a value that is drawn",
    ]


def test_a_value_is_one_kind_and_goes_upwards() -> None:
    for value, said in (
        ({"uniform": [1, 2], "text": 3}, "must be row, uuid, or one of uniform"),
        ({}, "must be row, uuid, or one of uniform"),
        ({"uniform": [5, 2]}, "must be from the lesser to the greater, found [5, 2]"),
        ({"choice": [1, "a"]}, "must choose among texts or among numbers, not both"),
        ({"sequential": "jobs"}, "must be the name of a table and of its column, such as jobs.id"),
        ({"uniform": 5}, "must be a list, found 5"),
        ({"zipfian": [0, 2**32 - 1]}, "must be at most 4294967294, found 4294967295"),
        ({"constant": 2**53 + 1}, "has a whole number beyond 2^53, which Lua would round"),
    ):
        with pytest.raises(PlanError) as caught:
            template(statements=["DELETE FROM jobs WHERE id = :a"], draw={"a": value})
        assert said in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO jobs (id) VALUES (:id) ON DUPLICATE KEY UPDATE id = id + 1",
        "WITH few AS (SELECT id FROM jobs WHERE id > :id) SELECT COUNT(*) FROM few",
        "WITH RECURSIVE a AS (SELECT :id), b (x) AS MATERIALIZED (SELECT 1 FROM a) TABLE b",
        "SELECT id FROM jobs WHERE id IS DISTINCT FROM id AND id = :id",
        "UPDATE LOW_PRIORITY jobs SET id = :id",
        "UPDATE ONLY jobs SET id = :id",
        "SELECT :id FROM DUAL",
        "SELECT id FROM jobs WHERE id = :id FOR NO KEY UPDATE",
        "SELECT /* it's :other, from nowhere? */ id FROM jobs WHERE id = :id",
    ],
)
def test_what_only_looks_like_a_table_is_none(sql: str) -> None:
    template(statements=[sql], draw={"id": {"uniform": "jobs"}})


@pytest.mark.parametrize(
    "sql",
    [
        "WITH few AS (SELECT id FROM jbos WHERE id > :id) SELECT COUNT(*) FROM few",
        "UPDATE jbos SET id = :id",
        "UPDATE IGNORE jbos SET id = :id",
        "SELECT DISTINCT id FROM jbos WHERE id = :id",
    ],
)
def test_a_table_that_is_not_there_is_still_found(sql: str) -> None:
    with pytest.raises(PlanError, match="there is no table 'jbos'"):
        template(statements=[sql], draw={"id": {"uniform": "jobs"}})


def test_a_weight_beside_which_others_vanish_is_refused() -> None:
    with pytest.raises(PlanError, match="weight"):
        template(statements=["SELECT 1"], weight=1e308)


def test_a_question_mark_is_refused_also_in_quotes() -> None:
    """Who writes numbers or values in its place looks at no quotes: PostgreSQL's $1, and texts."""
    with pytest.raises(PlanError, match=r"has a \?; write :name for a value that is drawn"):
        template(statements=["SELECT 'why?'"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_run(path: Path) -> None:
    intervals = dry(lua(read(path.read_text(), path.name), path.name))
    assert sum(one["events"] for one in intervals) == 200


def test_an_event_has_the_statements_that_it_says() -> None:
    made = template(
        transaction=True,
        draw={"id": {"uniform": "jobs"}, "text": {"format": "it's @#"}, "end": {"constant": 1.5}},
        statements=[
            {"sql": "UPDATE jobs SET a = :text, b = ':text' WHERE id = :id", "repeat": 3},
            "SELECT :end",
        ],
    )
    intervals = dry(lua(made, "made.yaml"), threads=1, events=10)
    assert sum(one["others"] for one in intervals) == 10 * (3 + 1 + 2)


REFUSED = """
for _, one in ipairs(EVENTS) do
  local run, begun = one.run, 0
  one.run = function()
    begun = begun + 1
    if one.name == "often" and begun % 4 > 0 then
      error({ errcode = sysbench.error.RESTART_EVENT }, 0)
    end
    run()
  end
end
"""
"""Most events of this name end as after a deadlock."""


@pytest.mark.parametrize("rest", ["0ms", "1ms"])
def test_events_that_begin_again_are_counted_and_keep_their_share(rest: str) -> None:
    """Whether the standard loop runs them or that of templates whose events rest."""
    events = {
        "often": {"statements": ["SELECT 1"]},
        "seldom": {"statements": ["SELECT 2"], "think_time": rest},
    }
    made = lua(read(json.dumps({"events": events}), "made.yaml"), "made.yaml")
    intervals = dry(made + REFUSED, events=400)
    assert sum(one["events"] for one in intervals) == 400
    assert sum(one["restarts"] for one in intervals) > 300
    blobs = [one["histograms"].get("event_kind_often") for one in intervals]
    often = sum(_engine.Histogram.decode(b64decode(blob)).count() for blob in blobs if blob)
    assert 150 < often < 250, "half of the events, however often they begin again"


def tried(made: Template, capfd: pytest.CaptureFixture[str]) -> str:
    """What ten of its events print."""
    workload = WorkloadPlan(name="made.yaml", script=lua(made, "made.yaml"))
    spec = script_spec(making.plan(), workload, Nobody(), "try", 1)
    spec["database"]["dry_run"] = True
    script = _engine.Script(spec)
    script.options()
    script.set_options(spec["options"])
    script.run_command("try", 1)
    return capfd.readouterr().out


def test_numbers_reach_sql_with_all_their_digits(capfd: pytest.CaptureFixture[str]) -> None:
    numbers = {"at": 1700000123456789, "pi": 3.141592653589793, "few": 0.1}
    draw = {name: {"constant": number} for name, number in numbers.items()}
    shown = "  SELECT ?, ?, ? with 1700000123456789, 3.1415926535897931, 0.1: 0 rows affected\n"
    assert shown in tried(template(draw=draw, statements=["SELECT :at, :pi, :few"]), capfd)


def test_repetitions_draw_values_of_their_own_and_leave_the_events_as_they_are(
    capfd: pytest.CaptureFixture[str],
) -> None:
    repeated = {"sql": "SELECT :id, 2", "repeat": 2}
    statements = ["SELECT :id, 1", repeated, "SELECT :id, 3"]
    made = template(draw={"id": {"uniform": [1, 10**9]}}, statements=statements)
    drawn = re.findall(r"SELECT \?, ([123]) with ([0-9]+)", tried(made, capfd))
    assert [place for place, _ in drawn[:4]] == ["1", "2", "2", "3"]
    first, second, third, last = (value for _, value in drawn[:4])
    assert first == last
    assert len({first, second, third}) == 3


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_template_has_more_values_and_columns_than_a_function_of_lua_has_variables(
    repeat: int,
) -> None:
    names = [f"v{number}" for number in range(300)]
    column = {"type": "INTEGER", "value": "row"}
    marks = ", ".join(f":{name}" for name in names)
    event = {
        "draw": {name: {"uniform": "wide"} for name in names},
        "statements": [{"sql": f"INSERT INTO wide VALUES ({marks})", "repeat": repeat}],
    }
    wide = {"rows": 10, "columns": dict.fromkeys(names, column)}
    made = read(json.dumps({"tables": {"wide": wide}, "events": {"one": event}}), "made.yaml")
    intervals = dry(lua(made, "made.yaml"), threads=1, events=3)
    assert sum(one["others"] for one in intervals) == 3 * repeat


def test_statements_with_query_plans_are_told_with_values_from_the_middle() -> None:
    made = template(
        draw={
            "id": {"uniform": "jobs"},
            "low": {"uniform": [10, 20]},
            "word": {"text": [2, 6]},
            "code": {"format": "it's @#"},
            "state": {"choice": ["new", "done"], "weights": [1, 9]},
            "next": {"sequential": "jobs.id"},
            "end": {"constant": 1.5},
        },
        statements=[
            "SELECT id FROM jobs WHERE id = :id AND a::int > :low AND b = ':low'",
            {"sql": "update jobs SET id = :next\nWHERE a = :word OR a = :code", "repeat": 2},
            "INSERT INTO jobs VALUES (:next)",
            "SELECT 1; DELETE FROM jobs",
            "DELETE FROM jobs WHERE a = :state AND b < :end",
            "SELECT id FROM jobs WHERE id = :id AND a::int > :low AND b = ':low'",
        ],
    )
    assert examples(lua(made, "made.yaml")) == {
        "one.1": "SELECT id FROM jobs WHERE id = 5 AND a::int > 15 AND b = ':low'",
        "one.2": "update jobs SET id = 11 WHERE a = 'mmmm' OR a = 'it''s m5'",
        "one.5": "DELETE FROM jobs WHERE a = 'done' AND b < 1.5",
    }
    assert examples("-- Statements with values: {") == examples("function event() end") == {}


def test_a_statement_on_one_line_keeps_its_quoted_texts_and_loses_its_comments() -> None:
    sql = "SELECT 'a  b' -- isn't it :low?, FROM yesterday\n  FROM jobs\nWHERE id = :id -- done"
    script = lua(template(draw={"id": {"uniform": "jobs"}}, statements=[sql]), "made.yaml")
    assert "\"SELECT 'a  b' FROM jobs WHERE id = ?\"" in script
    assert examples(script) == {"one.1": "SELECT 'a  b' FROM jobs WHERE id = 5"}
    half = "DELETE FROM jobs --old ones\nWHERE id < :id # all\nAND id > 3"
    script = lua(template(draw={"id": {"uniform": "jobs"}}, statements=[half]), "made.yaml")
    kept = '"DELETE FROM jobs --old ones\\010WHERE id < ? # all\\010AND id > 3"'
    assert kept in script, "comments of one server alone end with their lines"


def test_a_tables_options_end_its_create_table() -> None:
    table = {"rows": 1, "columns": {"id": {"type": "BIGINT", "value": "row"}}}
    events = {"one": {"statements": ["SELECT 1"]}}
    for options, end in (({}, ""), ({"options": "SHARD_ROW_ID_BITS=4"}, " SHARD_ROW_ID_BITS=4")):
        whole = {"tables": {"jobs": {**table, **options}}, "events": events}
        script = lua(read(json.dumps(whole), "made.yaml"), "made.yaml")
        assert f'"CREATE TABLE jobs (id BIGINT){end}"' in script


def test_what_a_template_says_reaches_lua_byte_for_byte() -> None:
    text = 'Ünï "quoted"\n]] %s'
    made = template(draw={"a": {"constant": text}}, statements=["SELECT :a"])
    assert "\\195\\156n\\195\\175 \\034quoted\\034\\010]] %s" in lua(made, "made.yaml")
    assert dry(lua(made, "made.yaml"), events=1)


def test_a_template_is_a_workload_and_its_mistakes_are_the_plans(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(MISTAKEN)
    workload: dict[str, object] = {"name": "wrong.yaml"}
    said = take_script(workload, tmp_path)
    assert "line 11: events.take.wieght" in said
    with_options = {"name": str(EXAMPLES[0]), "options": {"rows": 5}}
    assert "has no options" in str(take_script(with_options, tmp_path))
    for path in EXAMPLES:
        workload = {"name": str(path)}
        assert take_script(workload, tmp_path) is None
        assert workload["name"] == path.name
        assert WorkloadPlan.model_validate(workload).label == path.stem


GONE = "cannot be read: No such file or directory"


def test_a_file_that_is_no_text_of_a_workload_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary.lua").write_bytes(b"\xff")
    (tmp_path / "long.lua").write_text("-" * (SCRIPT_LENGTH_MAX + 1))
    for name, said in {
        "none.lua": f"{GONE}; it was looked for in {tmp_path}; dbdyno has queue.yaml, shop.yaml,",
        "yscb.lua": f"{GONE}; did you mean ycsb.lua?",
        "binry.lua": f"{GONE}; did you mean {tmp_path / 'binary.lua'}?",
        "oltp_read_only.lua": f"{GONE}; oltp_read_only is built in: leave .lua out",
        "binary.lua": "cannot be read: 'utf-8' codec",
        "with\0null.lua": "cannot be read: embedded null byte",
        "long.lua": "is longer than 1,000,000 characters",
    }.items():
        shown = str(tmp_path / name).replace("\0", " ")
        assert f"{shown} {said}" in str(take_script({"name": name}, tmp_path))
