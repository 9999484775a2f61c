"""What a report says of servers that others run, beside those that the lab starts."""

from __future__ import annotations

from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import TrialEvidence
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.formats import markdown
from dbdyno.report.parts import Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections import settings
from dbdyno.report.sections.costs import flushes
from dbdyno.report.sections.limits import limits
from dbdyno.report.story import story_of
from support import making
from support.made_run import facts, run

PROCEDURE = {"drop_caches": True, "purge_binlogs": True, "settle_cap_s": 60}


def report(*references: str) -> list[str]:
    """The lines of the report of a run in which nothing lies apart, with two load levels."""
    systems = tuple(
        SystemPlan(label=label, reference=reference)
        for label, reference in zip("AB", references, strict=True)
    )
    plan = making.plan(threads=(1, 8), procedure=PROCEDURE, systems=("A", "B"))
    plan = plan.model_copy(update={"systems": systems})
    trials = [
        trial
        for threads in (1, 8)
        for trial in making.pairs((1.0,) * 5, systems=("A", "B"), threads=threads)
    ]
    made = run(plan, trials)
    story = story_of(plan, trials, made.judgement, made.facts)
    return markdown.render(story).splitlines()


def test_beside_servers_of_the_lab_those_of_others_are_told_apart() -> None:
    lines = report("mysql:8.0.15", "mysql://u@b:3306/sbtest")
    assert any(line.startswith("- 5 starts of A are too few to detect rare") for line in lines)
    procedures = [line for line in lines if line.startswith("| procedure | ")]
    assert any("server restarted for each system" in line for line in procedures)
    others = "dbdyno does not control the servers of B: it does not restart"
    assert any(others in line for line in procedures)


TOLD = {
    "tidb_txn_mode": "pessimistic",
    "tidb_version.go_version": "1.21",
    "tidb_version.git_commit_hash": "7d16cc79",
    "cluster.tidb": "3 × 7.5.1",
    "cluster.tikv": "3 × 7.5.1",
}
PLANS = {"point_selects": "const PRIMARY"}


def without_innodb(made: Measurement) -> Measurement:
    """The trial of a server that tells nothing of InnoDB, as a TiDB."""
    version = "5.7.25-TiDB-v7.5.1"
    server = made.server.model_copy(update={"settings": TOLD, "version": version})
    return making.changed(making.unseen(made), server=server)


PLAN = making.plan(blocks=3, systems=(making.A, "tidb"))
TRIALS = [
    making.changed(one, evidence=TrialEvidence(query_plans=PLANS))
    if one.trial.system == making.A
    else without_innodb(one)
    for one in making.pairs((1.0,) * 3, systems=(making.A, "tidb"))
]


def test_what_innodb_promises_and_caches_is_unknown_of_a_server_without_it() -> None:
    told = settings.tested(PLAN, TRIALS, facts(PLAN))
    assert str(told["durability"]).endswith("tidb: unknown")
    alone = settings.tested(
        PLAN, [one for one in TRIALS if one.trial.system == "tidb"], facts(PLAN)
    )
    assert str(alone["durability"]) == "unknown"
    _, table = flushes(PLAN, attempts(TRIALS, judge(TRIALS, PLAN))).parts
    assert isinstance(table, Table)
    assert {row[1]: row[2] for row in table.rows} == {making.A: "yes", "tidb": "unknown"}
    (size,) = [line for line in limits(PLAN, TRIALS, judge(TRIALS, PLAN)) if "cache of" in line]
    assert "fits into the cache of tidb is unknown" in size


def test_the_nodes_of_a_cluster_stand_beside_its_version() -> None:
    systems = str(settings.tested(PLAN, TRIALS, facts(PLAN))["systems"])
    nodes = "git commit hash 7d16cc79, tidb 3 × 7.5.1, tikv 3 × 7.5.1"
    assert f"tidb (5.7.25-TiDB-v7.5.1, {nodes})" in systems


def test_systems_of_unknown_query_plans_are_named() -> None:
    (unknown,) = [line for line in limits(PLAN, TRIALS, judge(TRIALS, PLAN)) if "EXPLAIN" in line]
    assert unknown.startswith("Query plans of tidb are unknown")


def test_of_an_endpoint_it_is_not_promised_that_others_cpu_voids_trials() -> None:
    lines = report("mysql:8.0.15", "mysql://u@b:3306/sbtest")
    (promise,) = [line for line in lines if line.startswith("| disturbance | for ")]
    assert "for B only the hypervisor's part counts" in promise
    own = report("mysql:5.7.22", "mysql:8.0.15")
    assert not [line for line in own if "only the hypervisor's part counts" in line]
