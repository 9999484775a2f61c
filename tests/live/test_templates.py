"""Templates on real servers: their rows, their load, twice in a row, and as people try them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.experiment import evidence
from dbdyno.experiment.data.dataset import quoted_table
from dbdyno.experiment.engine.spec import script_spec
from dbdyno.plan.template import examples, lua, read
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import PGSQL, Server
from support import making
from support.real_server import login
from support.shared_servers import SharedServers
from support.source import ROOT

pytestmark = pytest.mark.live
EXAMPLES = sorted((ROOT / "workloads").glob("*.yaml"))


@pytest.fixture(scope="module", params=["mysql:8.0.15", "postgres:18.6"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


def does(
    server: Server, workload: WorkloadPlan, command: str, threads: int, is_prepared: bool = True
) -> dict[str, Any]:
    spec = script_spec(making.plan(), workload, server, command, threads, is_prepared)
    if command != "run":
        script = _engine.Script(spec)
        script.options()
        script.set_options(spec["options"])
        if script.command(command) is None:
            script.call(command)
        else:
            script.run_command(command, threads)
        return {}
    asked = {
        **{**login(server), "driver": server.driver, "script": spec},
        **{"connections": threads, "window_s": 100, "events": 300, "seed": 1},
        "workload": {"name": "script"},
        "ignore_errors": [1213, 1205, "40P01", "40001"],
    }
    return _engine.run(asked, None, _engine.Stop())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_loaded_and_runs_twice_on_its_rows(server: Server, path: Path) -> None:
    template = read(path.read_text(), path.name)
    workload = WorkloadPlan(name=path.name, script=lua(template, path.name))
    does(server, workload, "prepare", 4)
    try:
        for name, table in template.tables.items():
            rows = server.ask(f"SELECT COUNT(*) FROM {quoted_table(server, name)}")
            assert rows == [(str(table.rows),)]
        for _ in range(2):
            record = does(server, workload, "run", 4)
            assert record["failure"] is None
            assert sum(one["events"] for one in record["intervals"]) > 50
        plan = making.plan().model_copy(update={"workloads": (workload,)})
        explained = evidence.explain_plans(plan, server)
        assert list(explained) == [f"{path.stem}.{one}" for one in examples(workload.script or "")]
    finally:
        does(server, workload, "cleanup", 1)


PURCHASES = """
tables:
  purchases:
    rows: 2000
    columns:
      id: {type: SERIAL PRIMARY KEY, value: row}
      token: {type: CHAR(36) NOT NULL, value: uuid}
      placed_at: {type: MOMENT NOT NULL, value: {datetime: [2020-01-01, 2026-12-31 23:59:59]}}
      paid_on: {type: DATE, value: {date: [2020-01-01, 2026-12-31], null: 0.1}}
      total: {type: DECIMAL(10,2) NOT NULL, value: {decimal: [0.00, 999.99]}}
      note: {type: VARCHAR(80) NOT NULL, value: {words: [3, 8]}}
      details:
        type: JSON NOT NULL
        value:
          json: {state: {choice: [new, "it's paid"]}, fee: {decimal: [0.00, 9.99], null: 0.5}}
    indexes: [placed_at, total]
events:
  buy:
    transaction: true
    draw:
      token: uuid
      placed_at: {datetime: [2020-01-01, 2026-12-31 23:59:59]}
      paid_on: {date: [2020-01-01, 2026-12-31], null: 0.5}
      total: {decimal: [0.00, 999.99]}
      note: {words: [3, 8]}
      details: {json: {state: {constant: new}, gone: {uniform: [1, 2], null: 0.5}}}
    statements:
      - sql: >-
          INSERT INTO purchases (token, placed_at, paid_on, total, note, details)
          VALUES (:token, :placed_at, :paid_on, :total, :note, :details) RETURNING id
        id: purchase
      - UPDATE purchases SET note = 'seen' WHERE id = :purchase
  look:
    draw: {purchase: {recent: purchases.id}}
    statements:
      - SELECT total, details FROM purchases WHERE id = :purchase
  cheap:
    draw:
      most: {decimal: [1.00, 999.99]}
      day: {date: [2020-01-01, 2026-12-31]}
    statements:
      - SELECT COUNT(*) FROM purchases WHERE total <= :most AND paid_on >= :day
"""
COLUMNS = "id, token, CAST(placed_at AS CHAR(19)), CAST(paid_on AS CHAR(10)), total, note, details"


def test_every_value_is_loaded_alike_and_every_event_runs_on_every_product(
    shared_servers: SharedServers, capfd: pytest.CaptureFixture[str]
) -> None:
    loaded = []
    for reference in ("mysql:8.0.15", "mariadb:11.4.5", "postgres:18.6"):
        with shared_servers.lent(reference) as server:
            moment = "TIMESTAMP" if server.driver == PGSQL else "DATETIME"
            template = read(PURCHASES.replace("MOMENT", moment), "purchases.yaml")
            workload = WorkloadPlan(name="purchases.yaml", script=lua(template, "purchases.yaml"))
            table = quoted_table(server, "purchases")
            does(server, workload, "prepare", 4)
            try:
                rows = server.ask(f"SELECT {COLUMNS} FROM {table} ORDER BY id")
                loaded.append([(*row[:-1], json.loads(row[-1])) for row in rows])
                capfd.readouterr()
                does(server, workload, "try", 1)
                _check_tried(capfd.readouterr().out)
                for is_prepared in (True, False):
                    record = does(server, workload, "run", 4, is_prepared)
                    assert record["failure"] is None
                    _check_keys(server, table)
            finally:
                does(server, workload, "cleanup", 1)
    assert loaded[0] == loaded[1] == loaded[2]
    _check_loaded(loaded[0])


def _check_tried(printed: str) -> None:
    """Each event ran, and its statements tell their rows and the key above the loaded ones."""
    lines = printed.splitlines()
    assert lines[:2] == ["1: buy", "  BEGIN"]
    inserted = re.fullmatch(r"  INSERT .*: 1 row affected, id (\d+)", lines[2])
    assert inserted is not None, lines[2]
    key = inserted[1]
    assert int(key) > 2000
    assert lines[3].endswith(f" with {key}: 1 row affected")
    assert lines[4:6] == ["  COMMIT", "2: look"]
    assert lines[6].endswith(f" with {key}: 1 row")
    assert lines[7] == "3: cheap"
    assert lines[8].endswith(": 1 row")


def _check_keys(server: Server, table: str) -> None:
    """The events changed the rows that they had inserted, and no loaded one."""
    seen = f"SELECT COUNT(*), MIN(id) FROM {table} WHERE note = 'seen'"
    unseen = f"SELECT COUNT(*) FROM {table} WHERE id > 2000 AND note <> 'seen'"
    ((count, first),) = server.ask(seen)
    assert int(count) > 20
    assert int(first) > 2000
    assert server.ask(unseen) == [("0",)]


def _check_loaded(rows: list[Any]) -> None:
    keys, tokens, moments, days, totals, notes, details = zip(*rows, strict=True)
    assert [int(key) for key in keys] == list(range(1, 2001))
    assert len(set(tokens)) == 2000
    assert all("2020-01-01 00:00:00" <= moment <= "2026-12-31 23:59:59" for moment in moments)
    for count, share in (
        (days.count(""), 0.1),
        (sum(one["fee"] is None for one in details), 0.5),
        (sum(one["state"] == "it's paid" for one in details), 0.5),
        (sum(float(total) < 250 for total in totals), 0.25),
    ):
        assert abs(count - 2000 * share) < 6 * sqrt(2000 * share * (1 - share))
    assert {len(note.split()) for note in notes} == {3, 4, 5, 6, 7, 8}


def test_a_table_that_cannot_be_made_ends_all_loading_threads(server: Server) -> None:
    columns = {"id": {"type": "NONSENSE", "value": "row"}}
    whole = {
        "tables": {"broken": {"rows": 10, "columns": columns}},
        "events": {"look": {"statements": ["SELECT 1"]}},
    }
    script = lua(read(json.dumps(whole), "broken.yaml"), "broken.yaml")
    with pytest.raises(RuntimeError, match=r"(?i)nonsense"):
        does(server, WorkloadPlan(name="broken.yaml", script=script), "prepare", 3)


def test_a_second_prepare_adds_no_rows(server: Server) -> None:
    columns = {"number": {"type": "INTEGER", "value": "row"}}
    whole = {
        "tables": {"kept": {"rows": 40, "columns": columns}},
        "events": {"look": {"statements": ["SELECT 1"]}},
    }
    workload = WorkloadPlan(name="kept.yaml", script=lua(read(json.dumps(whole), ""), ""))
    does(server, workload, "prepare", 4)
    try:
        with pytest.raises(RuntimeError, match="already exists"):
            does(server, workload, "prepare", 4)
        assert server.ask(f"SELECT COUNT(*) FROM {quoted_table(server, 'kept')}") == [("40",)]
    finally:
        does(server, workload, "cleanup", 1)


def test_a_table_may_have_capital_letters(server: Server) -> None:
    columns = {"Id": {"type": "INTEGER PRIMARY KEY", "value": "row"}}
    look = {"draw": {"id": {"uniform": "Jobs"}}, "statements": ["SELECT 1 FROM Jobs WHERE :id = 1"]}
    whole = {"tables": {"Jobs": {"rows": 10, "columns": columns}}, "events": {"look": look}}
    workload = WorkloadPlan(name="jobs.yaml", script=lua(read(json.dumps(whole), "jobs.yaml"), ""))
    does(server, workload, "prepare", 2)
    try:
        assert does(server, workload, "run", 2)["failure"] is None
    finally:
        does(server, workload, "cleanup", 1)


def test_a_template_is_tried_on_an_endpoint_and_drops_its_tables(
    server: Server, tmp_path: Path
) -> None:
    who, port = server.credentials, server.endpoint.port
    scheme, owner = (
        ("postgresql", f" OWNER {who.user}") if server.driver == PGSQL else ("mysql", "")
    )
    server.ask(f"CREATE DATABASE tried{owner}")
    reference = f"{scheme}://{who.user}@127.0.0.1:{port}/tried"
    env = {**os.environ, "MYSQL_PWD": who.password, "PGPASSWORD": who.password}
    wrong = tmp_path / "wrong.yaml"
    tables = {
        name: {"rows": 2, "columns": {"id": {"type": kind, "value": "row"}}}
        for name, kind in (("first", "INTEGER"), ("second", "NOTYPE"))
    }
    wrong.write_text(json.dumps({"tables": tables, "events": {"x": {"statements": ["SELECT 1"]}}}))
    queue = ROOT / "workloads/queue.yaml"
    ended = [
        subprocess.run(
            [sys.executable, "-m", "dbdyno", "workload", "try", str(file), reference],
            capture_output=True,
            text=True,
            check=False,
            env=env,
        )
        for file in (queue, wrong, queue)
    ]
    assert [one.returncode for one in ended] == [0, 1, 0], [one.stderr for one in ended]
    assert ended[2].stdout.count("\n10: ") == 1
    server.ask("DROP DATABASE tried")


def test_a_template_is_tried_and_a_wrong_table_is_the_servers_word(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("events: {look: {statements: [SELECT * FROM nowhere]}}\n")
    command = [sys.executable, "-m", "dbdyno", "workload", "try"]
    good = [*command, str(ROOT / "workloads/queue.yaml"), "postgres:18.6"]
    tried = subprocess.run(good, capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.count("\n10: ") == 1
    bad = subprocess.run(
        [*command, str(own), "postgres:18.6"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 1
    assert 'relation "nowhere" does not exist' in bad.stdout + bad.stderr
