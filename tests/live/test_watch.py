"""A small run on two real servers: what is stored is what the servers did, by other witnesses.

A MySQL and a MariaDB, 16 connections, 3 s: the numbers say nothing about the servers. That the
engine's counts agree with the servers' and the system's own says that the lab tells the truth.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from dbdyno import __main__
from dbdyno.experiment import runner
from dbdyno.export.tables import TABLES
from dbdyno.judge.checks import durability, work
from dbdyno.measurement.cost import COSTS, per_event, source_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.parts import Phase
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.store.store import Store
from support.fakes import Progress
from support.real_server import small

pytestmark = [pytest.mark.live, pytest.mark.alone]
WINDOW_S = 3
CONNECTIONS = 16
SYSTEMS = ("mysql:8.0.15", "mariadb:11.4.5")
EVENT_STATEMENTS = 20
"""Of one oltp_read_write event: 14 reads, 4 writes, BEGIN, COMMIT."""
PLAN = Plan(
    systems=small(*SYSTEMS),
    workloads=(WorkloadPlan(name="oltp_read_write"),),
    dataset=DatasetPlan(tables=2, rows=1000),
    load=LoadPlan(threads=(CONNECTIONS,)),
    trial=TrialPlan(warmup_s=1, window_s=WINDOW_S),
    design=DesignPlan(blocks=1, disturbance_max=1.0),
)


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """A folder open to the user the servers run as, with one whole run."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-watch-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Store.open(folder) as store:
            run = store.create_run(PLAN, "dbdyno compare", {}, 2)
            runner.run(store, run, folder, Progress())
            assert store.run(run.run_id).finished_at is not None
        yield folder


@pytest.fixture(scope="module")
def measured(workspace: Path) -> list[Measurement]:
    with Store.open(workspace) as store:
        return store.measurements(store.runs()[0].run_id)


def test_every_trial_ran_to_its_end(measured: list[Measurement]) -> None:
    assert sorted(one.trial.system for one in measured) == sorted(SYSTEMS)
    for one in measured:
        assert one.failure is None
        assert one.window_s == pytest.approx(WINDOW_S, abs=0.1)
        phases = [interval.phase for interval in one.intervals]
        assert phases[: 1 + WINDOW_S] == [Phase.WARMUP, *[Phase.MEASURED] * WINDOW_S]
        assert one.trial.system.partition(":")[2] in one.server.version
        assert one.server.settings["innodb_flush_log_at_trx_commit"] == "1"


def test_the_servers_counters_agree_with_the_load(measured: list[Measurement]) -> None:
    for one in measured:
        failed = sum(one.errors.values())
        assert one.queries == pytest.approx(EVENT_STATEMENTS * one.events, rel=0.1)
        edges = 0.2 * one.queries  # both readings together may be half a second off
        assert one.server.status["Questions"] == pytest.approx(one.queries + failed, abs=edges)
        assert 0 < one.server.cpu_s < one.window_s * (os.cpu_count() or 1) * 1.2


def test_latency_and_throughput_obey_littles_law(measured: list[Measurement]) -> None:
    for one in measured:
        rate = one.value(BY_NAME["transactions_per_s"])
        latency_ms = one.value(BY_NAME["latency_ms_avg"])
        assert rate is not None
        assert latency_ms is not None
        assert rate * latency_ms / 1e3 == pytest.approx(CONNECTIONS, rel=0.15)
        assert one.histogram().count() == one.events


def cost(name: str, measurement: Measurement) -> float:
    (row,) = [row for row in COSTS if row.name == name]
    source = source_of(row, [measurement])
    assert source is not None, name
    value = per_event(source, [measurement])
    assert value is not None
    return value


def test_every_cost_of_a_transaction_is_told_and_is_plausible(measured: list[Measurement]) -> None:
    assert len(measured) == 2
    for one in measured:
        assert one.failure is None
        # 10 points and 4 ranges of 100 in tables of 1000 rows, 4 writes that look for their row;
        # the readings at the window's edges may be late on a busy machine.
        assert cost("rows_read", one) == pytest.approx(400, rel=0.35)
        assert cost("rows_changed", one) == pytest.approx(4, rel=0.35)
        assert 100 < cost("server_cpu_us", one) < 50_000
        assert cost("written_kb", one) > 0.5
        assert cost("storage_written_kb", one) > 0.5
        assert 0.01 < cost("syncs", one) < 10
        assert 1 < cost("switches", one) < 5_000
        assert cost("replies_kb", one) == pytest.approx(40, rel=0.5)


def test_two_products_are_compared_by_the_same_counters(measured: list[Measurement]) -> None:
    by_name = {row.name: source_of(row, measured) for row in COSTS}
    assert [name for name, source in by_name.items() if source is None] == []
    for name in ("rows_read", "rows_changed"):
        mysql, mariadb = (cost(name, one) for one in measured)
        assert mysql == pytest.approx(mariadb, rel=0.35), name


def test_seconds_have_machine_server_and_devices(measured: list[Measurement]) -> None:
    for one in measured:
        samples = one.watch_measured
        assert 1 <= len(samples) <= WINDOW_S + 1
        assert max(s.server_switches_per_s or 0 for s in samples) > 10
        assert max(s.server_threads or 0 for s in samples) > 16
        assert any("lo" in s.networks for s in samples)
        traffic = max(s.networks["lo"].sent_bytes_per_s for s in samples)
        assert traffic > 1000
        assert all(s.length_s < 5 for s in samples)
        assert max(s.server_cpu for s in samples) > 0
        assert max(s.server_rss_bytes for s in samples) > 10_000_000
        assert max(s.generator_cpu for s in samples) > 0
        assert 0 < one.engine.cpu_share_max <= 1.05


def test_evidence_is_collected_around_the_trials(measured: list[Measurement]) -> None:
    for one in measured:
        evidence = one.evidence
        assert evidence.probe is not None
        assert evidence.probe.sync_ms is not None
        assert (evidence.ceiling_per_s or 0) > 10
        assert len(evidence.query_plans) == 8
        assert evidence.query_plans["point_selects"] == "const PRIMARY"
        assert set(evidence.rows_after.values()) == {1000}
        assert evidence.dataset_after != one.dataset
        assert [f.check for f in work.rows_not_kept([one], PLAN)] == []
    ways = [one.evidence.query_plans for one in measured]
    assert ways[0] == ways[1]


def test_commits_waited_for_their_flushes(measured: list[Measurement]) -> None:
    by_system = {one.trial.system: one for one in measured}
    mysql, mariadb = (by_system[name] for name in SYSTEMS)
    assert durability.counted_syncs(mariadb) is None  # it does not count them
    assert (durability.counted_syncs(mysql) or 0) > 0
    assert durability.commits_unflushed(mysql, PLAN) is None


def test_the_servers_counters_are_read_each_second_at_a_known_cost(
    measured: list[Measurement],
) -> None:
    for one in measured:
        series = one.status_seconds
        assert series is not None
        assert series.trouble is None
        assert 2 <= len(series.at_s) <= WINDOW_S + 5
        questions = [value for value in series.counters["Questions"] if value is not None]
        assert questions == sorted(questions)
        assert questions[-1] - questions[0] > 0.2 * one.queries
        assert max(value or 0 for value in series.counters["Threads_connected"]) >= 17
        assert series.server_cpu_ms is not None
        assert series.server_cpu_ms < 50


def test_the_run_is_exported(
    workspace: Path, measured: list[Measurement], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = workspace / "tables"
    arguments = ["export", "latest", "--parquet", str(folder), "--workspace", str(workspace)]
    assert __main__.main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TABLES)
    trials = polars.read_parquet(folder / "trials.parquet")
    assert trials["events"].sort().to_list() == sorted(one.events for one in measured)
    assert polars.read_parquet(folder / "procedure.parquet")["seconds"].min() >= 0
    settings = polars.read_parquet(folder / "settings.parquet")
    assert settings.filter(name="innodb_flush_log_at_trx_commit")["value"].unique().to_list() == [
        "1"
    ]
    assert polars.read_parquet(folder / "costs.parquet")["cost"].n_unique() == len(COSTS)
