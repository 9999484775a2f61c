"""Templates on real servers: their rows, their load, twice in a row, and as people try them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
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


def does(server: Server, workload: WorkloadPlan, command: str, threads: int) -> dict[str, Any]:
    spec = script_spec(making.plan(), workload, server, command, threads)
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
