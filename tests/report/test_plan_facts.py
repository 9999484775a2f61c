"""Facts of a plan, which `plan show`, the report and the list of a stranger's risks share."""

from __future__ import annotations

import pytest

from dbdyno.cli.plan import described
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DistributionPlan, NetworkPlan, Plan, ProcedurePlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.plan.template import lua, read
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.parts import Table
from dbdyno.report.sections import method, settings
from dbdyno.report.tell.plan import facts_of
from dbdyno.servers.programs.catalog import CATALOG
from support import making
from support.made_run import facts


def planned(**changed: object) -> Plan:
    return making.plan(blocks=4).model_copy(update=changed)


def texts(plan: Plan, topic: str) -> list[str]:
    return [fact.text for fact in facts_of(plan) if fact.topic == topic]


def risks(plan: Plan) -> list[str]:
    return [fact.text for fact in facts_of(plan) if fact.risk]


def test_plan_show_method_and_summary_have_the_same_words() -> None:
    steps = ProcedurePlan(drop_caches=True, purge_binlogs=True, settle_cap_s=60, fresh_data="once")
    mine = WorkloadPlan(name="mine.lua", script="function event() end")
    plan = planned(
        procedure=steps,
        network=NetworkPlan(client_ms=0.8),
        workloads=(*planned().workloads, mine),
        settings=SettingsPlan(durability=("0/2",)),
    )
    told = facts_of(plan)
    shown = " ".join(described(plan).split())
    assert [one.text for one in told if " ".join(one.text.split()) not in shown] == []
    table = method.how_measured(plan, []).parts[0]
    assert isinstance(table, Table)
    assert table.rows == tuple((one.topic, one.text) for one in told)
    box = settings.tested(plan, making.pairs((1.0, 1.0)), facts(plan))
    for topic in ("workloads", "data", "network", "settings", "procedure"):
        row = "load" if topic == "workloads" else topic
        assert box[row].startswith("; ".join(texts(plan, topic)))
    assert box["load"].endswith("; ".join(texts(plan, "load")))


def test_the_default_distribution_of_sysbench_is_told_from_others() -> None:
    special = planned(distribution=DistributionPlan(name="special"))
    assert texts(special, "row choice") == ["special, the default of sysbench 1.0"]
    assert texts(planned(), "row choice")[0].startswith("uniform: results are not comparable with")


def test_a_scale_and_a_budget_are_told() -> None:
    design = planned().design.model_copy(update={"budget_s": 5400.0})
    plan = planned(scale="small", design=design)
    assert texts(plan, "scale") == ["small"]
    fitted = "4 blocks, as many as are expected to fit into 1 h 30 min"
    assert texts(plan, "blocks")[0].startswith(fitted)
    assert texts(planned(), "scale") == []
    assert "expected" not in texts(planned(), "blocks")[0]


@pytest.mark.parametrize(
    ("restart", "text"),
    [
        ("block", "server restarted for each system and setting of a block"),
        ("cell", "server restarted for every cell"),
    ],
)
def test_restarts_are_told(restart: str, text: str) -> None:
    procedure = ProcedurePlan.model_validate({"restart": restart})
    assert texts(planned(procedure=procedure), "procedure")[0].startswith(text)


def test_planned_steps_are_told_and_no_others() -> None:
    steps = ProcedurePlan(fresh_data="once", drop_caches=True, purge_binlogs=True, settle_cap_s=60)
    assert texts(planned(), "procedure")[1:] == ["dataset restored before each start"]
    told = texts(planned(procedure=steps), "procedure")[1:]
    assert len(told) == 4
    assert "60 s" in told[3]
    assert not any("restored before each start" in step for step in told)


def test_open_and_closed_loops_are_told_apart() -> None:
    both = LoadPlan(threads=(1, 8), rates=("50%", "400"), connections=64)
    assert texts(planned(load=both), "load") == [
        "closed loop of 1, 8 connections, without pauses",
        "open loop of 50% of what the slower system sustains, 400 transactions/s, over 64 "
        "connections",
        "prepared statements",
    ]


@pytest.mark.parametrize(
    ("rest", "told"),
    [("0ms", "without pauses"), ("5ms", "which may pause between transactions of people")],
)
def test_think_times_of_a_template_are_no_load_without_pauses(rest: str, told: str) -> None:
    text = f"events: {{look: {{statements: [SELECT 1], think_time: {rest}}}}}"
    script = lua(read(text, "people.yaml"), "people.yaml")
    resting = planned(workloads=(WorkloadPlan(name="people.yaml", script=script),))
    assert texts(resting, "load")[0] == f"closed loop of 8 connections, {told}"


def test_replicas_are_told_by_their_kind() -> None:
    kinds = (
        TopologyPlan(replicas=2, replication="semisync", timeout_s=1.5),
        TopologyPlan(replicas=1),
        TopologyPlan(replicas=2, replication="group"),
    )
    systems = (
        SystemPlan(label=label, reference=making.B, topology=kind)
        for label, kind in zip("abc", kinds, strict=True)
    )
    told = texts(planned(systems=tuple(systems)), "systems")
    assert told[1].startswith("a: 2 replicas, semi-synchronous: a commit waits until one replica")
    assert told[1].endswith("(in MySQL and MariaDB after sync, 1.5 s at most)")
    assert told[3] == "b: 1 replica, asynchronous: no commit waits for them"
    assert told[5] == "c: 2 replicas in a group: a commit waits until a majority agrees"


def test_settings_of_all_systems_are_told_once() -> None:
    both = {"sync_binlog": 1, "plugin_dir": "/x"}
    systems = (
        SystemPlan(label="a", reference=making.A, settings=both),
        SystemPlan(label="b", reference=making.B, settings={**both, "back_log": 9}),
    )
    told = texts(planned(systems=systems), "systems")
    assert told == [
        "every system: sync_binlog=1",
        "every system: plugin_dir=/x",
        f"a = {making.A}, the baseline",
        f"b = {making.B}",
        "b: back_log=9",
    ]


def with_system(**values: object) -> Plan:
    system = {"label": "a", "reference": "mysql:8.0.15", **values}
    return planned(systems=(SystemPlan.model_validate(system),))


def test_servers_of_the_catalog_are_no_risk() -> None:
    for entry in CATALOG:
        assert risks(with_system(reference=entry.reference)) == []


@pytest.mark.parametrize(
    "reference",
    [
        "path:/opt/mysql",
        "tarball:https://example.org/x.tar.gz#sha256=00",
        "mysql://root@db.example.org:3306/prod",
        "docker:mysql:8",
        "MYSQL://x@y/z",
    ],
)
def test_programs_and_machines_of_others_are_a_risk(reference: str) -> None:
    assert reference in risks(with_system(reference=reference))[0]


def test_a_password_that_would_be_sent_is_a_risk() -> None:
    sent = with_system(reference="mysql://x@y:1/z", password_env="AWS_SECRET")
    assert "AWS_SECRET" in risks(sent)[1]
    assert "~/.my.cnf" in risks(with_system(reference="mysql://x@y:1/z"))[1]
    assert "~/.pgpass" in risks(with_system(reference="postgres://x@y:1/z"))[1]


def test_statements_programs_and_far_reaching_settings_are_a_risk_wherever_they_stand() -> None:
    reaching = {"init_file": "/etc/passwd", "back_log": 9}
    plan = with_system(
        settings=reaching, workload_settings={"w": reaching}, after_start=["SELECT 1"]
    )
    mine = WorkloadPlan(name="mine.lua", script="function event() end")
    axis = SettingsPlan(own={"axis": {"v": reaching}})
    assert risks(plan.model_copy(update={"workloads": (mine,), "settings": axis})) == [
        "a: init_file=/etc/passwd",
        "a: for w: init_file=/etc/passwd",
        "a: after the start: SELECT 1",
        "axis v: init_file=/etc/passwd",
        "mine = mine.lua",
    ]
