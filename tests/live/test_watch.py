"""Real servers under load are watched each second, and what is told agrees with other witnesses.

One run of a MySQL and a MariaDB, 16 connections, 4 s; the engine's counts are the witness.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest
from tests.live.test_bench import Silent
from tests.live.test_bench import plan as small_plan

from dbdyno import __main__
from dbdyno.experiment import runner
from dbdyno.export.tables import TABLES
from dbdyno.judge.checks import durability, work
from dbdyno.measurement.cost import COSTS, per_event, source_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.store.store import Store
from support.real_server import small_redo

pytestmark = [pytest.mark.live, pytest.mark.alone]
WINDOW_S = 3
PLAN = small_plan(WINDOW_S)
SYSTEMS = ("mysql:8.0.15", "mariadb:11.4.5")


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """A folder open to the user the servers run as, with one whole run."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-watch-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        systems = tuple(
            SystemPlan(label=name, reference=name, settings=small_redo(name)) for name in SYSTEMS
        )
        changed = {"load": LoadPlan(threads=(16,)), "systems": systems}
        plan = small_plan(WINDOW_S).model_copy(update=changed)
        with Store.open(folder) as store:
            run = store.create_run(plan, "dbdyno compare", {}, 2)
            runner.run(store, run, folder, Silent())
        yield folder


@pytest.fixture(scope="module")
def measured(workspace: Path) -> list[Measurement]:
    with Store.open(workspace) as store:
        return store.measurements(store.runs()[0].run_id)


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
