"""A whole run on two nodes of a scripted TiDB: loaded, analysed, counted once, and reported."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dbdyno.experiment import runner
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.sections.limits import limits
from dbdyno.store.store import Store
from support.fake_tidb import LoadedTidb, serving
from support.fakes import Progress
from support.rogue_server import Caller

CHOSEN = "SET GLOBAL tidb_txn_mode = 'optimistic'"


class Optimistic(LoadedTidb):
    """A node that refuses every third COMMIT of a load with this error."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code, self.count = code, 0

    def reply(self, caller: Caller, sql: str) -> None:
        self.count += sql.upper() == "COMMIT"
        if sql.upper() == "COMMIT" and CHOSEN in self.asked and self.count % 3 == 0:
            caller.send(b"\xff" + struct.pack("<H", self.code) + b"#HY000Write conflict")
        else:
            super().reply(caller, sql)


def plan(ports: tuple[int, int]) -> Plan:
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    system = SystemPlan(
        label="tidb",
        reference=f"mysql://root@{places}/bench",
        password_env="TIDB",
        after_start=(CHOSEN,),
    )
    return Plan(
        systems=(system,),
        workloads=(WorkloadPlan(name="oltp_read_write"),),
        dataset=DatasetPlan(tables=1, rows=1000, table_options="SHARD_ROW_ID_BITS = 4"),
        load=LoadPlan(threads=(2,)),
        trial=TrialPlan(warmup_s=0, window_s=1),
        design=DesignPlan(blocks=1, disturbance_max=1.0),
        procedure=ProcedurePlan(prepared_statements=False),
    )


def test_a_tidb_is_measured_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDB", "secret-4711")
    first = LoadedTidb()
    second = LoadedTidb(first)
    with serving(first) as a, serving(second) as b, Store.open(tmp_path) as store:
        asked = plan((a.port, b.port))
        run = store.create_run(asked, "a test", {}, 1)
        runner.run(store, run, tmp_path, Progress())
        (trial,) = store.measurements(run.run_id)
    assert (trial.failure, trial.server.balanced) == (None, ())
    assert any("CREATE TABLE" in sql and sql.endswith("BITS = 4") for sql in first.asked)
    assert "ANALYZE TABLE `bench`.`sbtest1`" in first.asked
    assert all(CHOSEN in node.asked for node in (first, second))
    assert trial.server.settings["cluster.tikv"] == "3 × 7.5.1"
    assert trial.server.status["statements_summary.Commit"] >= trial.events - 2 > 0
    assert len(trial.evidence.query_plans) == 8
    judgement = judge([trial], asked)
    wrong = {"commits-at-server", "commits-unflushed", "server-restarted", "unequal-settings"}
    assert not {finding.check for finding in judgement.findings} & wrong
    told = "\n".join(limits(asked, [trial], judgement))
    assert "fits into the cache of tidb is unknown" in told
    assert "buffer pool" not in told


@pytest.mark.parametrize(("code", "own"), [(9007, ()), (8028, ()), (6235, ("6235",))])
def test_a_commit_refused_by_a_conflict_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, own: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TIDB", "secret-4711")
    with serving(Optimistic(code)) as node, Store.open(tmp_path) as store:
        asked = plan((node.port, node.port))
        procedure = asked.procedure.model_copy(update={"retry_errors": own})
        asked = asked.model_copy(update={"procedure": procedure})
        run = store.create_run(asked, "a test", {}, 1)
        runner.run(store, run, tmp_path, Progress())
        (trial,) = store.measurements(run.run_id)
    assert trial.failure is None
    assert sum(second.restarts for second in trial.measured) > 0
    assert set(trial.errors) == {str(code)}
    found = {finding.check: finding.level for finding in judge([trial], asked).findings}
    assert found["retries"] is Level.DOUBTFUL
