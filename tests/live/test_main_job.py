"""The main job as a user types it: `dbdyno compare` on real servers, and what can befall it.

Ctrl-C, kill -9 of a server, mistakes in what was typed; kills of the lab are in `test_unattended`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from pathlib import Path
from subprocess import Popen

import pytest

from dbdyno.report.formats import html
from support.lab_process import (
    engines,
    finished,
    processes_of,
    servers_of,
    started,
    stored,
    under_load,
    until,
)
from support.real_server import CROWDED, SMALL_REDO, SMALL_REDO_TYPED

pytestmark = pytest.mark.live
AT_ONCE_S = 20
"""Far more than an interrupt takes on a busy machine, far less than what would go on without it."""
PASSWORD = re.compile(r"\b[0-9a-f]{48}\b")
"""The form of those that the lab draws."""
SMALL = ["--tables", "1", "--table-size", "1000", *SMALL_REDO_TYPED]
TINY = [*SMALL, *CROWDED, "--warmup", "0", "--window", "1"]
PAIR = ["compare", "a=mysql:5.7.22", "b=mysql:5.7.22", "--threads", "2", "--blocks", "3", *TINY]


def test_a_comparison_ends_with_verdicts_and_a_report_in_three_forms(workspace: Path) -> None:
    systems = ["mysql:5.7.22", "mysql:8.0.15"]
    ended = finished(workspace, "compare", *systems, "--threads", "1,4", "--blocks", "3", *TINY)
    assert ended.returncode == 0, ended.stderr
    assert (
        len(re.findall(r"against mysql:5.7.22 is|than mysql:5.7.22|equivalent", ended.stdout)) >= 2
    )
    paths = re.findall(r"\S+report\.(?:html|md)", ended.stdout)
    assert [Path(path).suffix for path in paths] == [".html", ".md"]
    page = Path(paths[0]).read_text()
    assert "<script src" not in page
    assert "uniform" in page
    for word in ("block 1/3", "block 3/3", "TPS", "QPS", "p95", "left"):
        assert word in ended.stderr
    rows = stored(workspace)
    assert len(rows) == 12
    assert processes_of(workspace) == []
    again = finished(workspace, "report", "latest", "--output", "json")
    document = json.loads(again.stdout)
    assert again.returncode == 0
    assert len(document["verdicts"]) == 2
    colours = set(PASSWORD.findall(html.program()))  # the chart program's, one after the other
    for text in (page, Path(paths[1]).read_text(), again.stdout, ended.stdout, ended.stderr):
        assert not set(PASSWORD.findall(text)) - colours, "a password of the lab's form"


def test_ctrl_c_stops_at_once_and_keeps_what_was_measured(workspace: Path) -> None:
    with started(workspace, *PAIR, "--window", "60") as lab:
        until(under_load(workspace), "a load")
        assert len(engines()) == 1
        os.kill(lab.pid, signal.SIGINT)
        until(lambda: engines() == [], "the engine's end", AT_ONCE_S)
        output, errors = lab.communicate(timeout=60)
    assert lab.returncode == 1
    assert "dbdyno resume " in errors
    assert "Traceback" not in output + errors
    (row,) = stored(workspace)
    assert "interrupted" in json.dumps(row, default=str)
    assert processes_of(workspace) == []


@pytest.mark.parametrize("moment", ["loading", "measuring"])
def test_ctrl_c_wins_while_a_server_has_stopped_answering(workspace: Path, moment: str) -> None:
    rows = "2000000" if moment == "loading" else "1000"
    with started(workspace, *PAIR, "--window", "60", "--table-size", rows) as lab:
        if moment == "loading":
            assert lab.stderr is not None
            assert any("loading table" in line for line in lab.stderr)
            until(engines, "the child that loads")
        else:
            until(under_load(workspace), "a load")
        interrupt_beside_halted_servers(lab, workspace)


def interrupt_beside_halted_servers(lab: Popen[str], workspace: Path) -> None:
    for server in servers_of(workspace):
        server.suspend()
    os.kill(lab.pid, signal.SIGINT)
    until(lambda: servers_of(workspace) == [], "the servers' end", AT_ONCE_S)
    _, errors = lab.communicate(timeout=60)
    assert lab.returncode == 1
    assert "Traceback" not in errors
    assert processes_of(workspace) == []


SETTLED = f"""
systems: [{{label: a, reference: "mysql:5.7.22", settings: {SMALL_REDO}}}]
workloads: [oltp_write_only]
dataset: {{tables: 1, rows: 1000}}
load: {{threads: [1, 2]}}
trial: {{warmup: 0, window: 1s}}
procedure: {{settle_cap: 60s}}
"""


def test_ctrl_c_wins_while_a_server_stops_on_its_way_to_rest(workspace: Path) -> None:
    plan = workspace.parent / "plan.yaml"
    plan.write_text(SETTLED)
    with started(workspace, "run", str(plan)) as lab:
        assert lab.stderr is not None
        for line in lab.stderr:
            if "waiting until the server is at rest" in line:
                break
        interrupt_beside_halted_servers(lab, workspace)
    assert len(stored(workspace)) == 1


def test_a_server_that_dies_in_a_window_costs_that_trial_only(workspace: Path) -> None:
    with started(workspace, *PAIR, "--window", "3", "--blocks", "2") as lab:
        until(under_load(workspace, trials=1), "the second trial's load")
        servers_of(workspace)[0].kill()
        output, errors = lab.communicate(timeout=300)
    assert lab.returncode == 1
    assert "Traceback" not in output + errors
    rows = stored(workspace)
    failed = [row for row in rows if row["failure"]]
    assert len(rows) == 4
    assert len(failed) == 1
    assert processes_of(workspace) == []
    ended = finished(workspace, "resume", rows[0]["run_id"])
    assert ended.returncode == 0, ended.stderr
    assert len(stored(workspace)) == 5


def test_a_port_that_is_taken_is_told_with_its_holder(workspace: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        ended = finished(workspace, *PAIR, "--set", f"port={port}")
    assert ended.returncode == 1
    assert f"a: its settings want port {port}, which is taken" in ended.stderr
    assert f"(pid {os.getpid()})" in ended.stderr
    assert "leave port out" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert processes_of(workspace) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "mysql:5.7.22", "mysql:5.7.99"], ["mysql:5.7.99", "mysql:8.0.15"]),
        (["compare", "oracle:23", "mysql:8.0.15"], ["oracle:23", "mysql:8.0.15"]),
        (
            [
                "compare",
                "mysql:5.7.22",
                "--workload",
                "oltp_raed",
                "--threads",
                "0",
                "--blocks",
                "x",
            ],
            ["SYSTEM", "oltp_raed", "--threads", "--blocks"],
        ),
        (["run", "no-such-plan.yaml"], ["no-such-plan.yaml"]),
    ],
    ids=["version", "product", "all at once", "no file"],
)
def test_mistakes_are_told_before_anything_is_done(
    workspace: Path, arguments: list[str], words: list[str]
) -> None:
    ended = finished(workspace, *arguments)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    for word in words:
        assert word in ended.stderr
    assert stored(workspace) == []


def test_a_plan_file_with_mistakes_names_their_lines(workspace: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("systems: [mysql:5.7.22, mysql:9.9.9]\nworkloads: [oltp_x]\nlaod: {}\n")
    ended = finished(workspace, "run", str(plan))
    assert ended.returncode == 2
    for words in ("line 1", "line 2", "line 3", "9.9.9", "mysql:8.0.15", "oltp_x", "laod"):
        assert words in ended.stderr
