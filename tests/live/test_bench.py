"""A whole small run over two real servers: what is stored is what the servers did.

The dataset is tiny and the window two seconds, so the numbers say nothing about the servers; that
they agree with the servers' own counters says that the lab tells the truth.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dbdyno.experiment import runner
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.parts import Phase
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.store.store import Store
from support.lab_process import children
from support.real_server import small_redo

pytestmark = [pytest.mark.live, pytest.mark.alone]
SYSTEMS = ("mysql:5.7.22", "mysql:8.0.15")
EVENT_STATEMENTS = 20
"""Of one oltp_read_write event: 14 reads, 4 writes, BEGIN, COMMIT."""


class Silent:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.intervals: list[Mapping[str, Any]] = []

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        self.stages.append(f"{number} of {total}")

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        self.intervals.append(interval)

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        self.stages.append("end")


def plan(window_s: float = 2) -> Plan:
    return Plan(
        systems=tuple(
            SystemPlan(label=name, reference=name, settings=small_redo(name)) for name in SYSTEMS
        ),
        workloads=(WorkloadPlan(name="oltp_read_write", label="oltp_read_write"),),
        dataset=DatasetPlan(tables=2, rows=1000),
        load=LoadPlan(threads=(4,)),
        trial=TrialPlan(warmup_s=1, window_s=window_s),
        design=DesignPlan(blocks=1, disturbance_max=1.0),
    )


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """A folder open to the user the servers run as; pytest closes its own to all others."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def measured(workspace: Path) -> list[Measurement]:
    with Store.open(workspace) as store:
        run = store.create_run(plan(), "dbdyno compare", {}, 2)
        runner.run(store, run, workspace, Silent())
        assert store.run(run.run_id).finished_at is not None
        return store.measurements(run.run_id)


def test_every_trial_ran_to_its_end(measured: list[Measurement]) -> None:
    assert sorted(m.trial.system for m in measured) == sorted(SYSTEMS)
    for one in measured:
        assert one.failure is None
        assert one.window_s == pytest.approx(2, abs=0.1)
        assert [i.phase for i in one.intervals[:3]] == [Phase.WARMUP, *[Phase.MEASURED] * 2]
        assert one.server.version.startswith(one.trial.system.removeprefix("mysql:"))
        assert one.server.settings["innodb_flush_log_at_trx_commit"] == "1"


def test_the_servers_counters_agree_with_the_load(measured: list[Measurement]) -> None:
    for one in measured:
        failed = sum(one.errors.values())
        assert one.queries == pytest.approx(EVENT_STATEMENTS * one.events, rel=0.1)
        edges = 0.25 * one.queries  # both readings together may be half a second off
        assert one.server.status["Questions"] == pytest.approx(one.queries + failed, abs=edges)
        assert 0 < one.server.cpu_s < one.window_s * (os.cpu_count() or 1) * 1.2


def test_latency_and_throughput_obey_littles_law(measured: list[Measurement]) -> None:
    for one in measured:
        rate = one.value(BY_NAME["transactions_per_s"])
        latency_ms = one.value(BY_NAME["latency_ms_avg"])
        assert rate is not None
        assert latency_ms is not None
        assert rate * latency_ms / 1e3 == pytest.approx(4, rel=0.15)
        assert one.histogram().count() == one.events


def test_host_server_and_generator_were_watched(measured: list[Measurement]) -> None:
    for one in measured:
        inside = [s for s in one.watch if 1 <= s.at_s <= 3]
        assert inside
        assert max(s.server_cpu for s in inside) > 0
        assert max(s.server_rss_bytes for s in inside) > 10_000_000
        assert max(s.generator_cpu for s in inside) > 0
        assert 0 < one.engine.cpu_share_max <= 1.05


def test_ctrl_c_keeps_the_trial_and_leaves_no_process(
    workspace: Path, measured: list[Measurement]
) -> None:
    long = plan(window_s=120)
    progress = Silent()

    def press() -> None:
        while len(progress.intervals) < 3:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    with Store.open(workspace) as store:
        run = store.create_run(long, "dbdyno compare", {}, 2)
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            runner.run(store, run, workspace, progress)
        (kept,) = store.measurements(run.run_id)
    assert kept.failure == "interrupted by the user"
    assert kept.events == sum(i.events for i in kept.measured) > 0
    assert kept.histogram().count() == kept.events
    assert any("the dataset is there already" in text for text in progress.stages)
    assert children() == []
