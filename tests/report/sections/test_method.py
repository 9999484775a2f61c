from __future__ import annotations

import pytest

from dbdyno.judge.judgement import judge
from dbdyno.measurement import measurement, replication
from dbdyno.measurement.parts import Step
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DistributionPlan, NetworkPlan, Plan, ProcedurePlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import TopologyPlan
from dbdyno.plan.template import lua, read
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.parts import Code, Items, Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections import method
from dbdyno.report.sections.method import asked_design, asked_replicas
from dbdyno.report.tell.measured import cell_title
from support import making
from support.made_run import Run, facts


def test_systems_workloads_and_procedure_are_told(made: Run) -> None:
    plan = making.plan(options={"range_selects": False, "tables": 4})
    systems, workloads, items = method.how_measured(plan, made.measurements).parts
    assert systems.rows[1] == (making.B, making.B, "8.0.15", "—")
    assert workloads.rows[0][2] == "range_selects=off, tables=4"
    text = "\n".join(items.items)
    for words in ("uniform", "seed 1", "at saturation", "never averaged", "epoll", "5 blocks"):
        assert words in text


def test_a_system_that_never_ran_is_listed_as_such() -> None:
    systems = method.how_measured(making.plan(), []).parts[0]
    assert systems.rows[0][2] == "(never ran)"


def test_a_run_without_its_command_is_repeated_from_its_bundle(made: Run) -> None:
    code = method.repeat(made.plan, made.facts).parts[1]
    assert code == Code("dbdyno compare mysql:5.7.22 mysql:8.0.15 --threads 1,8")
    bare = facts(made.plan).model_copy(update={"command": ""})
    (typed,) = (p for p in method.repeat(made.plan, bare).parts if isinstance(p, Code))
    assert typed.text.startswith("dbdyno bundle 20261121-060000-made\n")


def test_trials_of_a_pilot_have_neither_a_number_nor_a_block() -> None:
    before = making.measurement(block=-1, sequence=-100_000)
    pilot = before.trial.model_copy(update={"is_pilot": True})
    trials = [making.changed(before, trial=pilot), *making.pairs((0.7, 0.7))]
    judged = judge(trials, making.plan())
    (order,) = method.trial_order(attempts(trials, judged), judged.known).parts
    assert isinstance(order, Table)
    places = [row[:2] for row in order.rows]
    assert places == [("—", "pilot"), ("1", "1"), ("2", "1"), ("3", "2"), ("4", "2")]


def planned(**changed: object) -> Plan:
    return making.plan(blocks=4).model_copy(update=changed)


def test_the_default_distribution_of_sysbench_is_told_from_others() -> None:
    special = planned(distribution=DistributionPlan(name="special"))
    assert (
        "Rows are chosen by sysbench's special distribution, the default of its 1.0."
        in asked_design(special)
    )
    assert any(
        "not special, the default of its 1.0: numbers" in line for line in asked_design(planned())
    )


def test_what_is_set_on_every_system_is_told_from_what_is_varied() -> None:
    lines = asked_design(
        planned(settings=SettingsPlan(durability=("0/2",), thread_pool=("off", "on")))
    )
    assert "On every system: durability 0/2." in lines
    assert "Varied on every system: thread_pool (off, on)." in lines


def test_a_scale_and_a_budget_are_told() -> None:
    design = planned().design.model_copy(update={"budget_s": 5400.0})
    lines = asked_design(planned(scale="small", design=design))
    assert lines[0] == "This is the scale small of its plan file."
    assert any(i.startswith("4 blocks, as many as fit into 1.5 h by forecast: ") for i in lines)
    assert not any("scale" in line or "forecast" in line for line in asked_design(planned()))


@pytest.mark.parametrize(
    ("restart", "sentence"),
    [
        ("block", "A freshly started server for each arm of a block; its load levels"),
        ("cell", "A freshly started server for every cell."),
    ],
)
def test_how_often_a_server_is_new_is_told(restart: str, sentence: str) -> None:
    procedure = ProcedurePlan.model_validate({"restart": restart})
    lines = asked_design(planned(procedure=procedure))
    assert [line.startswith("A freshly") for line in lines].count(True) == 1
    assert any(line.startswith(sentence) for line in lines)


def test_open_and_closed_loops_are_told_one_by_one() -> None:
    both = planned(load=LoadPlan(threads=(1, 8), rates=("50%", "400"), connections=64))
    loads = [line for line in asked_design(both) if line.startswith("Load: ")]
    assert loads == [
        "Load: closed loop of 1, 8 connections, without pauses, prepared statements.",
        "Load: open loop of 50%, 400 events/s over 64 connections, prepared statements.",
    ]


@pytest.mark.parametrize(
    ("rest", "told"),
    [("0ms", "without pauses"), ("5ms", "which may rest between events of people")],
)
def test_think_times_of_a_template_are_no_load_without_pauses(rest: str, told: str) -> None:
    text = f"events: {{look: {{statements: [SELECT 1], think_time: {rest}}}}}"
    script = lua(read(text, "people.yaml"), "people.yaml")
    resting = planned(workloads=(WorkloadPlan(name="people.yaml", script=script),))
    loads = [line for line in asked_design(resting) if line.startswith("Load: ")]
    assert loads == [f"Load: closed loop of 8 connections, {told}, prepared statements."]


RESTORE = Step(name="restore", seconds=1.0)
SLOW = Step(name="restore", seconds=3.0)
UNDONE = Step(name="drop caches", seconds=0.5, done=False, detail="refused")


def test_steps_are_counted_and_timed_for_each_system() -> None:
    measured = [
        making.measurement(making.A).model_copy(update={"procedure": (RESTORE, UNDONE)}),
        making.measurement(making.A, 1).model_copy(update={"procedure": (SLOW,)}),
        making.measurement(making.B).model_copy(update={"procedure": (RESTORE,)}),
    ]
    table = method.procedure_table(making.plan(), measured)
    assert table.rows == (
        (making.A, "restore", "2", "0", "2.0", "3.0", "4.0"),
        (making.A, "drop caches", "1", "1", "0.500", "0.500", "0.500"),
        (making.B, "restore", "1", "0", "1.0", "1.0", "1.0"),
    )
    shown = method.how_measured(making.plan(), measured).parts
    assert table in shown


def test_without_steps_there_is_no_table() -> None:
    assert method.procedure_table(making.plan(), [making.measurement()]) is None
    parts = method.how_measured(making.plan(), [making.measurement()]).parts
    assert len([part for part in parts if isinstance(part, Table)]) == 2


def test_only_what_the_plan_asks_for_is_said() -> None:
    plain = making.plan()
    assert list(method.asked_procedure(plain)) == ["The dataset is restored before each start."]
    whole = plain.model_copy(
        update={
            "procedure": plain.procedure.model_copy(
                update={
                    "fresh_data": "once",
                    "drop_caches": True,
                    "purge_binlogs": True,
                    "settle_cap_s": 60,
                }
            ),
        }
    )
    lines = list(method.asked_procedure(whole))
    assert len(lines) == 4
    assert "60 s at most" in lines[3]
    (items,) = (p for p in method.how_measured(whole, []).parts if isinstance(p, Items))
    assert set(lines) <= set(items.items)


def test_one_who_restores_once_does_not_say_that_every_start_has_fresh_data() -> None:
    plan = making.plan()
    once = plan.procedure.model_copy(update={"fresh_data": "once"})
    (items,) = (
        part
        for part in method.how_measured(plan.model_copy(update={"procedure": once}), []).parts
        if isinstance(part, Items)
    )
    assert not any("on a restored dataset" in item for item in items.items)


SEEN = {
    replication.COMMITS_ACKNOWLEDGED: 9_990.0,
    replication.COMMITS_NOT_ACKNOWLEDGED: 10.0,
    replication.TRANSACTIONS_BEHIND: 3.0,
}


def measured(system: str, block: int, **changed: float) -> measurement.Measurement:
    made = making.measurement(system, block)
    server = made.server.model_copy(update={"replication": {**SEEN, **changed}})
    return making.with_replicas(making.changed(made, server=server), cpu=2.0 / made.window_s)


def plan(*topologies: TopologyPlan, **more: object) -> Plan:
    made = making.plan()
    systems = tuple(
        system.model_copy(update={"topology": topology})
        for system, topology in zip(made.systems, topologies, strict=True)
    )
    return made.model_copy(update={"systems": systems, **more})


def test_commits_are_counted_by_system_and_cell() -> None:
    trials = [
        measured(making.A, 0),
        measured(making.A, 1, transactions_behind=8.0),
        making.measurement(making.B),
    ]
    table = method.replicas_table(making.plan(), trials)
    title = cell_title(trials[0].trial.cell)
    thin = "\N{NARROW NO-BREAK SPACE}"
    assert table.rows == ((making.A, title, "2", f"19{thin}980", "20", "8", "200.0"),)
    assert table in method.how_measured(making.plan(), trials).parts


def test_what_was_not_counted_is_a_dash_and_nothing_is_no_table() -> None:
    made = making.measurement(making.A)
    server = made.server.model_copy(update={"replication": {replication.REPLICAS_RUNNING: 1.0}})
    table = method.replicas_table(making.plan(), [making.changed(made, server=server)])
    assert table.rows[0][3:] == ("—", "—", "0", "—")
    assert method.replicas_table(making.plan(), [made]) is None


def test_the_plans_words_are_said() -> None:
    semisync = TopologyPlan(replicas=2, replication="semisync", timeout_s=1.5)
    asked = plan(semisync, TopologyPlan(replicas=1))
    lines = list(method.asked_replicas(asked, []))
    assert lines == [
        f"{making.A}: a commit waits (after sync) until one of 2 replicas has it, 1.5 s at most.",
        f"{making.B}: 1 replica, for which no commit waits.",
    ]
    made = making.measurement(making.A)
    server = made.server.model_copy(update={"replication": {replication.SEMISYNC_ON: 1.0}})
    lines = list(method.asked_replicas(asked, [making.changed(made, server=server)]))
    assert lines[0] == f"{making.A}: a commit waits until one of 2 replicas has it."
    group = TopologyPlan(replicas=2, replication="group")
    network = NetworkPlan(client_ms=0.8, replica_ms=2)
    whole = plan(group, TopologyPlan(), network=network)
    lines = list(method.asked_replicas(whole, []))
    assert lines == [
        f"{making.A}: a group of 3; a commit waits until a majority agrees.",
        "Network: 0.8 ms added to a round trip between load and server.",
        "Network: 2 ms added to a round trip between primary and replicas.",
    ]
    (items,) = (p for p in method.how_measured(whole, []).parts if isinstance(p, Items))
    assert set(lines) <= set(items.items)
    assert list(asked_replicas(making.plan(), [])) == []
