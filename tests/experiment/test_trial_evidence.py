"""Each piece of evidence is taken when it disturbs nobody, and once where that is enough."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import evidence, runner
from dbdyno.experiment.engine.spec import prepared
from dbdyno.experiment.watch import probe
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.template import lua, read
from dbdyno.plan.workload import MIXES, WorkloadPlan, known_workloads
from support import making
from support.fakes import Progress
from support.world import World


@pytest.fixture
def ran(store):
    """Everything that a small run over two fakes stored."""
    plan = making.plan(threads=(1, 8), blocks=2, window_s=2, warmup_s=0)
    world = World()
    asked = []

    def ceiling(of, trial, driver):
        asked.append((trial.cell.workload, [i.server is not None for i in world.instances]))
        return 10_000.0

    world.makers = replace(world.makers, ceiling=ceiling)
    return store.measurements(run(store, plan, world=world).run_id), asked


def test_the_ceiling_is_taken_once_for_a_workload(ran):
    measured, asked = ran
    assert [workload for workload, _ in asked] == ["oltp_read_write"]
    assert {m.evidence.ceiling_per_s for m in measured} == {10_000.0}
    assert {m.evidence.ceiling_threads for m in measured} == {64}


def test_a_load_without_prepared_statements_has_a_ceiling_of_its_own(store):
    plan = making.plan(threads=(1,), blocks=1, window_s=2, warmup_s=0)
    varied = SettingsPlan(prepared_statements=("on", "off"))
    plan, world = plan.model_copy(update={"settings": varied}), World()
    per_s = {True: 10_000.0, False: 7_000.0}

    def ceiling(of, trial, driver):
        return per_s[prepared(of, trial.cell)]

    world.makers = replace(world.makers, ceiling=ceiling)
    measured = store.measurements(run(store, plan, world=world).run_id)
    told = {(prepared(plan, m.trial.cell), m.evidence.ceiling_per_s) for m in measured}
    assert told == set(per_s.items())


def test_each_arm_has_a_probe_of_its_own(ran):
    measured, _ = ran
    arms = {(m.trial.system, m.trial.block): m.evidence.probe for m in measured}
    assert len(arms) == 4
    assert all(probe is not None and probe.cpu_ms > 0 for probe in arms.values())
    for m in measured:
        assert m.evidence.probe == arms[m.trial.system, m.trial.block]


def test_rows_are_counted_after_the_last_trial_of_a_system_only(ran):
    measured, _ = ran
    counted = [m for m in measured if m.evidence.rows_after]
    assert sorted(m.trial.system for m in counted) == sorted({m.trial.system for m in measured})
    for system in {m.trial.system for m in measured}:
        last = [m for m in measured if m.trial.system == system][-1]
        assert last in counted
        assert set(last.evidence.rows_after.values()) == {100_000}
        assert last.evidence.dataset_after == last.dataset != ""


def test_a_run_that_may_end_early_counts_rows_from_its_third_block_on(store):
    plan = small(threads=(1,), blocks=4, window_s=1, design={"stop": "decided"})
    measured = store.measurements(run(store, plan).run_id)
    counted = [m.trial.block for m in measured if m.evidence.rows_after]
    assert sorted(counted) == [2, 2, 3, 3]


def test_a_scripts_own_check_of_its_rows_is_kept_with_the_trial(store):
    script = WorkloadPlan(name="own.lua", script="function event() end")
    plan = small(threads=(1,), window_s=2).model_copy(update={"workloads": (script,)})
    measured = store.measurements(run(store, plan).run_id)
    assert [m.evidence.script_check for m in measured] == [evidence.HOLDS] * 2


def test_a_server_that_does_not_answer_ends_no_run(store, monkeypatch):
    def silent(plan, server):
        raise ServerError("gone")

    monkeypatch.setattr("dbdyno.experiment.data.dataset.tables", silent)
    stored = run(store, small(threads=(1,), window_s=2))
    measured = store.measurements(stored.run_id)
    assert [m.failure for m in measured] == [None, None]
    assert all(m.evidence.rows_after == {} for m in measured)


# The machine's speed is taken in a moment, and a disk that cannot be asked is none.


def test_arithmetic_and_syncs_take_some_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PIECES", 1)
    began_s = time.monotonic()
    taken = probe.probe_speed(tmp_path)
    assert 0.1 < taken.cpu_ms < 1000
    assert taken.sync_ms is not None
    assert 0 < taken.sync_ms < 5000
    assert time.monotonic() - began_s < 10
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_slow_is_asked_fewer_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = 0

    def slow(descriptor: int) -> None:
        nonlocal syncs
        syncs += 1

    monkeypatch.setattr(probe.os, "fdatasync", slow)
    monkeypatch.setattr(probe.time, "perf_counter", lambda: 0.04 * syncs)
    assert probe.probe_speed(tmp_path).sync_ms == pytest.approx(40)
    assert syncs == 3


def test_without_a_folder_only_the_arithmetic_is_reported(tmp_path: Path) -> None:
    assert probe.probe_speed(None).sync_ms is None
    assert probe.probe_speed(tmp_path / "missing").sync_ms is None


# Ways through the tables as servers explain them, in the words of old and new versions.


MARIADB = ("1", "SIMPLE", "sbtest1", "range", "PRIMARY", "PRIMARY", "4", "", "99",
           "Using where; Using filesort")  # fmt: skip
MYSQL = ("1", "SIMPLE", "sbtest1", "", "range", "PRIMARY", "PRIMARY", "4", "", "99", "100.00",
         "Using filesort; Using where")  # fmt: skip
WHOLE = ("1", "SIMPLE", "sbtest1", "", "ALL", "", "", "", "", "99", "100.00", "")


@dataclass
class Server:
    row: tuple[str, ...]
    driver: str = "mysql"
    database: str = "sbtest"
    asked: list[str] = field(default_factory=list)

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        self.asked.append(sql)
        if not self.row:
            raise ServerError("no such privilege")
        return [self.row]


@pytest.mark.parametrize(
    ("row", "way"),
    [
        (MARIADB, "range PRIMARY, Using filesort, Using where"),
        (MYSQL, "range PRIMARY, Using filesort, Using where"),
        (WHOLE, "ALL no index"),
    ],
)
def test_versions_with_other_columns_tell_the_same(row, way):
    server = Server(row)
    plan = making.plan(workloads=("oltp_point_select",))
    assert evidence.explain_plans(plan, server) == {"point_selects": way}
    explain = "EXPLAIN FORMAT=TRADITIONAL SELECT c FROM `sbtest`.`sbtest1` WHERE id = 101"
    assert server.asked == ["USE `sbtest`", explain]


class OfOldTidb(Server):
    """Knows one form of EXPLAIN, with four columns."""

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        super().ask(sql)
        if "FORMAT=TRADITIONAL" in sql:
            raise ServerError("You have an error in your SQL syntax")
        rows = [("IndexLookUp_10", "4.00", "root", ""), ("├─IndexScan_8", "4.00", "cop", "k")]
        return rows if "EXPLAIN" in sql else []


def test_a_form_that_is_refused_is_asked_for_once():
    server = OfOldTidb(WHOLE)
    plan = making.plan(workloads=("oltp_point_select", "oltp_delete"))
    taken = evidence.explain_plans(plan, server)
    assert taken == dict.fromkeys(("point_selects", "deletes"), "IndexLookUp; IndexScan")
    assert sum("TRADITIONAL" in sql for sql in server.asked) == 1


def test_each_kind_is_asked_once_for_all_workloads():
    server = Server(MYSQL)
    plan = making.plan(workloads=("oltp_read_write", "oltp_read_only", "oltp_delete"))
    taken = evidence.explain_plans(plan, server)
    assert len(server.asked) - 1 == len(taken) == 8


@pytest.mark.parametrize("row", [(), ("one", "two"), ("-> Rows fetched before execution",)])
def test_what_cannot_be_asked_or_read_is_left_out(row):
    assert evidence.explain_plans(making.plan(), Server(row)) == {}


TEMPLATE = """
tables:
  jobs: {rows: 100, columns: {id: {type: BIGINT PRIMARY KEY, value: row}}}
events:
  take:
    draw: {id: {zipfian: jobs}}
    statements:
      - SELECT id FROM jobs WHERE id = :id FOR UPDATE
      - UPDATE jobs SET id = -id WHERE id = :id
  drop:
    statements:
      - DELETE FROM jobs WHERE id < 0
"""


COSTLESS = "EXPLAIN (COSTS OFF)"


class Refusing(Server):
    def ask(self, sql: str) -> list[tuple[str, ...]]:
        answer = super().ask(sql)
        if "UPDATE jobs" in sql:
            raise ServerError("no such operator")
        return answer


@pytest.mark.parametrize(
    ("driver", "row", "ready", "explain", "way"),
    [
        ("mysql", WHOLE, "USE `sbtest`", "EXPLAIN FORMAT=TRADITIONAL", "ALL no index"),
        ("pgsql", ("  ->  Seq Scan on jobs",), "SELECT 1", COSTLESS, "Seq Scan on jobs"),
    ],
)
def test_each_statement_of_a_template_is_explained_and_none_of_a_script(
    driver, row, ready, explain, way
):
    script = lua(read(TEMPLATE, "jobs.yaml"), "jobs.yaml")
    workloads = (
        WorkloadPlan(name="jobs.yaml", script=script),
        WorkloadPlan(name="own.lua", script="function event() end"),
    )
    plan = making.plan().model_copy(update={"workloads": workloads})
    server = Refusing(row, driver)
    taken = evidence.explain_plans(plan, server)
    assert taken == {"jobs.take.1": way, "jobs.drop.1": way}
    assert server.asked == [
        ready,
        f"{explain} SELECT id FROM jobs WHERE id = 50 FOR UPDATE",
        f"{explain} UPDATE jobs SET id = -id WHERE id = 50",
        ready,
        f"{explain} DELETE FROM jobs WHERE id < 0",
    ]


def test_workloads_are_those_of_the_engine():
    assert set(MIXES) <= set(known_workloads())
    kinds = {kind for mix in MIXES.values() for kind in mix}
    assert kinds - {"inserts"} == set(evidence.STATEMENTS)


# An interrupt while evidence is collected costs no trial.


def small(**facts):
    return making.plan(**{"threads": (1, 8), "blocks": 1, "warmup_s": 0, **facts})


def run(store, plan, progress=None, stored=None, world=None):
    """Runs a plan in a world; its stored run."""
    stored, world = stored or store.create_run(plan, "command", {}, 0), world or World()
    progress = progress or Progress()
    with world.lab():
        runner.run(store, stored, store.path.parent, progress, world.makers)
    assert world.running() == []
    return stored


def test_ctrl_c_while_rows_are_counted_keeps_the_trial(store):
    class Pressing(Progress):
        def stage(self, text):
            super().stage(text)
            if "counting the rows" in text:
                raise KeyboardInterrupt

    plan = small(systems=(making.A,))
    stored = store.create_run(plan, "command", {}, 2)
    with pytest.raises(KeyboardInterrupt):
        run(store, plan, Pressing(), stored)
    assert [m.failure for m in store.measurements(stored.run_id)] == [None, None]


def test_ctrl_c_while_query_plans_are_asked_keeps_the_trial_and_ends_the_run(store, monkeypatch):
    def press(plan, server):
        raise KeyboardInterrupt

    monkeypatch.setattr(evidence, "explain_plans", press)
    plan = small(systems=(making.A,))
    stored = store.create_run(plan, "command", {}, 2)
    with pytest.raises(KeyboardInterrupt):
        run(store, plan, stored=stored)
    (kept,) = store.measurements(stored.run_id)
    assert (kept.failure, kept.evidence.query_plans) == (None, {})
    assert kept.evidence.ceiling_per_s == 10_000.0
