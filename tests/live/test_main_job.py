"""The main job as a user types it: `dbdyno compare` on real servers, and what can befall it.

Ctrl-C, kill -9 of a server; kills of the lab are in `test_unattended`.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess, Popen

import pytest

from dbdyno import api
from dbdyno.measurement.measurement import Measurement, kinds_of
from dbdyno.measurement.metric import KIND, NOPM
from dbdyno.report.formats import html
from dbdyno.store.store import Store
from support import lab_process
from support.lab_process import (
    engines,
    feed,
    finished,
    processes_of,
    servers_of,
    started,
    stored,
    under_load,
    until,
)
from support.real_server import CROWDED, SMALL_REDO, SMALL_REDO_TYPED
from support.source import ROOT

pytestmark = pytest.mark.live
TPCC = ROOT / "workloads" / "tpcc.lua"
AT_ONCE_S = 20
"""Far more than an interrupt takes on a busy machine, far less than what would go on without it."""
PASSWORD = re.compile(r"\b[0-9a-f]{48}\b")
"""The form of those that the lab draws."""
SMALL = ["--tables", "1", "--table-size", "1000", *SMALL_REDO_TYPED]
TINY = [*SMALL, *CROWDED, "--warmup", "0", "--window", "1"]
PAIR = ["compare", "a=mysql:5.7.22", "b=mysql:5.7.22", "--threads", "2", "--blocks", "3", *TINY]


@pytest.fixture(scope="module")
def compared() -> Iterator[tuple[Path, CompletedProcess[str]]]:
    """A built-in workload, a script with options and a template that rests, on two versions."""
    with lab_process.workspace() as folder:
        rests = folder.parent / "timeseries.yaml"
        whole = (ROOT / "workloads" / "timeseries.yaml").read_text()
        whole = whole.replace("rows: 50000", "rows: 5000")
        rests.write_text(whole.replace("  newest:\n", "  newest:\n    think_time: 20ms\n"))
        ended = finished(
            folder,
            *("compare", "mysql:5.7.22", "mysql:8.0.15", "--threads", "4", "--blocks", "3"),
            *("--workload", "oltp_read_write", "--workload", str(rests)),
            *("--workload", f"{TPCC} --warehouses=1 --items=100 --customers=30", *TINY),
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        yield folder, ended


@pytest.fixture(scope="module")
def run(compared: tuple[Path, CompletedProcess[str]]) -> api.Run:
    return api.load("latest", compared[0])


def test_a_comparison_ends_with_verdicts_and_a_report_in_three_forms(
    compared: tuple[Path, CompletedProcess[str]],
) -> None:
    folder, ended = compared
    assert len(re.findall(r"(?m)^\S+, 4 threads: ", ended.stdout)) == 3
    paths = re.findall(r"\S+report\.(?:html|md)", ended.stdout)
    assert [Path(path).suffix for path in paths] == [".html", ".md"]
    page = Path(paths[0]).read_text()
    assert "<script src" not in page
    assert "uniform" in page
    for word in ("block 1", "block 3", "TPS", "QPS", "p95", "left"):
        assert word in ended.stderr
    assert len(stored(folder)) == 18
    assert processes_of(folder) == []
    again = finished(folder, "report", "latest", "--output", "json")
    document = json.loads(again.stdout)
    assert again.returncode == 0
    assert len(document["verdicts"]) == 3
    colours = set(PASSWORD.findall(html.program()))  # the chart program's, one after the other
    for text in (page, Path(paths[1]).read_text(), again.stdout, ended.stdout, ended.stderr):
        assert not set(PASSWORD.findall(text)) - colours, "a password of the lab's form"


def of_workload(run: api.Run, name: str) -> list[Measurement]:
    measured = [one for one in run.trials if one.trial.cell.workload == name]
    assert [one.failure for one in measured] == [None] * 6
    assert len({one.dataset for one in measured}) == 1
    return measured


def test_tpcc_is_compared_and_its_rows_are_checked(run: api.Run) -> None:
    for one in of_workload(run, "tpcc"):
        assert one.evidence.script_check == "holds"
        assert one.events > 10
        kinds = {kind: one.histogram(KIND + kind).count() for kind in kinds_of([one])}
        assert sum(kinds.values()) == one.events
        assert {"new_order", "payment"} <= set(kinds)
        # Ten of 23 cards are new orders, and the ends of four decks may be far from that. Who meets
        # a deadlock draws another card.
        dealt = kinds["new_order"] + kinds.get("new_order_rolled_back", 0)
        redrawn = sum(interval.restarts for interval in one.intervals)
        assert abs(dealt - one.events * 10 / 23) <= 4 * 10 * 13 / 23 + redrawn
        assert one.value(NOPM) == pytest.approx(kinds["new_order"] * 60 / one.window_s, rel=0.01)
    assert NOPM.name in run.estimates()["metric"].to_list()


def test_a_template_is_compared_and_its_rests_are_no_fault(run: api.Run) -> None:
    assert "little-law" not in set(run.findings()["check"])
    plans = [one.evidence.query_plans for one in of_workload(run, "timeseries")]
    assert all("ref points_1" in plan["timeseries.newest.1"] for plan in plans)


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
    with Store.open(workspace) as store:
        (kept,) = store.measurements(store.run_ids()[0])
    assert kept.failure == "interrupted by the user"
    assert kept.events == sum(one.events for one in kept.measured) > 0
    assert kept.histogram().count() == kept.events
    assert processes_of(workspace) == []
    with started(workspace, "resume", "latest") as lab:
        until(lambda: feed(workspace)[-1]["kind"] == "interval", "a load again")
        interrupt_beside_halted_servers(lab, workspace)


def test_ctrl_c_wins_while_a_server_has_stopped_answering_a_load(workspace: Path) -> None:
    with started(workspace, *PAIR, "--table-size", "2000000") as lab:
        assert lab.stderr is not None
        assert any("loading rows" in line for line in lab.stderr)
        until(engines, "the child that loads")
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
    with started(workspace, *PAIR, "--window", "2", "--blocks", "1") as lab:
        until(under_load(workspace, trials=1), "the second trial's load")
        servers_of(workspace)[0].kill()
        output, errors = lab.communicate(timeout=300)
    assert lab.returncode == 1
    assert "Traceback" not in output + errors
    rows = stored(workspace)
    failed = [row for row in rows if row["failure"]]
    assert len(rows) == 2
    assert len(failed) == 1
    assert processes_of(workspace) == []
    ended = finished(workspace, "resume", rows[0]["run_id"])
    assert ended.returncode == 0, ended.stderr
    assert len(stored(workspace)) == 3
