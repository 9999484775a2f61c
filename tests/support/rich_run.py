"""A made run in which a report has all its sections and charts to fill, for tests of languages.

Two workloads on a ladder of six levels, a setting for all, a published experiment,
replicas, dips, an outlying run, void and failed trials. The numbers mean nothing.
"""

from __future__ import annotations

import random

from dbdyno.judge.judgement import judge
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Step
from dbdyno.plan.plan import NetworkPlan, Plan, ProcedurePlan
from dbdyno.plan.publication import PublishedPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import TopologyPlan
from support import making
from support.made_run import Run, facts

LEVELS = {1: 1000.0, 2: 1800.0, 4: 3000.0, 8: 4200.0, 16: 4300.0, 32: 3400.0}
WORKLOADS = ("oltp_read_write", "oltp_read_only")
BLOCKS = 6
FACTORS = {making.A: 1.0, making.B: 0.93}
SETTING = "default"
THREADS = {
    making.A: {"connection": 0.85, "ib_log_writer": 0.05, "unnamed": 0.1},
    making.B: {"connection": 0.8, "ib_log_writer": 0.15, "unnamed": 0.05},
}


def plan() -> Plan:
    made = making.plan(workloads=WORKLOADS, threads=tuple(LEVELS), blocks=BLOCKS)
    topologies = (TopologyPlan(replicas=2, replication="semisync"), TopologyPlan(replicas=1))
    return made.model_copy(
        update={
            "systems": tuple(
                system.model_copy(update={"topology": topology})
                for system, topology in zip(made.systems, topologies, strict=True)
            ),
            "design": made.design.model_copy(update={"stop": "decided", "budget_s": 7200.0}),
            "settings": SettingsPlan(durability=("double-1",)),
            "network": NetworkPlan(client_ms=0.5, replica_ms=0.8),
            "procedure": ProcedurePlan(
                drop_caches=True, purge_binlogs=True, settle_cap_s=30, prepared_statements=False
            ),
            "published": PublishedPlan(source="某公司，2022", setup={"disk": "NVMe"}),
            "scale": "small",
        }
    )


def whole() -> Run:
    asked, chance = plan(), random.Random(7)
    made = _ladders(chance)
    numbered = [_numbered(one, number) for number, one in enumerate(made)]
    numbered[5] = making.changed(numbered[5], failure="server gone")
    environment = {
        "cpu": "EPYC",
        "cores": "4 logical, 2 usable",
        "virtualisation": "virtual machine (KVM), container",
        "governor": "unknown",
        "filesystem": "ext4",
    }
    told = facts(asked, complete=False, environment=environment)
    return Run(asked, numbered, judge(numbered, asked), told)


def _ladders(chance: random.Random) -> list[Measurement]:
    return [
        _trial(chance, system, block, position, workload, threads)
        for block in range(BLOCKS)
        for position, system in enumerate(FACTORS)
        for workload in WORKLOADS
        for threads in LEVELS
    ]


def _trial(
    chance: random.Random,
    system: str,
    block: int,
    position: int,
    workload: str,
    threads: int,
) -> Measurement:
    rate = LEVELS[threads] * FACTORS[system] * chance.gauss(1, 0.01)
    if (system, block, threads) == (making.B, 3, 8):
        rate *= 0.7  # an outlying run
    seconds = [rate * chance.gauss(1, 0.02) for _ in range(12)]
    seconds[5] = rate * 0.4  # a dip
    one = making.measurement(
        system,
        block,
        threads,
        rate,
        workload=workload,
        setting=SETTING,
        position=position,
        window_s=12,
        rates=tuple(seconds),
        cpu_share_max=0.99 if (block, threads) == (2, 32) else 0.2,
        steal=0.3 if block == 4 else 0.0,
        errors={"1213": 3} if block == 1 else None,
    )
    steps = (
        Step(name="restore", seconds=2.0),
        Step(name="drop caches", seconds=0.1, done=block != 1),
        Step(name="purge binary logs", seconds=0.1),
        Step(name="settle", seconds=3.0),
    )
    one = making.with_threads(one, THREADS[system])
    no_flushes = tuple(s.model_copy(update={"disk_flushes_per_s": 0.0}) for s in one.watch)
    return _replicated(making.changed(one, procedure=steps, watch=no_flushes))


def _replicated(one: Measurement) -> Measurement:
    """With what was seen of its replicas."""
    trial = one.trial
    seen = {
        replication.REPLICAS_RUNNING: 2.0,
        replication.SEMISYNC_ON: 1.0,
        replication.TRANSACTIONS_BEHIND: 2.0,
        replication.COMMITS_ACKNOWLEDGED: 20_000.0,
        replication.COMMITS_NOT_ACKNOWLEDGED: 0.0,
    }
    if trial.system == making.B:
        seen |= {replication.REPLICAS_RUNNING: 1.0, replication.SEMISYNC_ON: 0.0}
    settings = {**one.server.settings, "sync_binlog": str(trial.block % 2)}
    server = one.server.model_copy(update={"replication": seen, "settings": settings})
    return making.with_replicas(making.changed(one, server=server), cpu=2.0 / one.window_s)


def _numbered(one: Measurement, number: int) -> Measurement:
    return making.changed(one, trial=one.trial.model_copy(update={"sequence": number}))
