from __future__ import annotations

import pytest

from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DistributionPlan, Plan, ProcedurePlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.report.parts import Items
from dbdyno.report.sections.method import asked_design, how_measured
from support import making


def planned(**changed: object) -> Plan:
    return making.plan(blocks=4).model_copy(update=changed)


def test_the_section_on_the_method_begins_with_what_was_asked() -> None:
    items = how_measured(planned(), []).parts[2]
    assert isinstance(items, Items)
    assert list(items.items[: len(asked_design(planned()))]) == asked_design(planned())


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
    told = asked_design(
        planned(settings=SettingsPlan(durability=("0/2",), thread_pool=("off", "on")))
    )
    assert "On every system: durability 0/2." in told
    assert "Varied on every system: thread_pool (off, on)." in told


def test_a_scale_and_a_budget_are_told() -> None:
    design = planned().design.model_copy(update={"budget_s": 5400.0})
    told = asked_design(planned(scale="small", design=design))
    assert told[0] == "This is the scale small of its plan file."
    assert any(i.startswith("4 blocks, as many as fit into 1.5 h by forecast: ") for i in told)
    assert not any("scale" in line or "forecast" in line for line in asked_design(planned()))


@pytest.mark.parametrize(
    ("restart", "fresh_data", "told"),
    [
        ("block", "start", "A freshly started server on a restored dataset for each arm of"),
        ("block", "once", "A freshly started server for each arm of a block; its load levels"),
        ("cell", "start", "A freshly started server on a restored dataset for every cell."),
        ("cell", "once", "A freshly started server for every cell."),
    ],
)
def test_how_often_a_server_is_new_is_told(restart: str, fresh_data: str, told: str) -> None:
    procedure = ProcedurePlan.model_validate({"restart": restart, "fresh_data": fresh_data})
    assert sum(line.startswith(told) for line in asked_design(planned(procedure=procedure))) == 1


def test_open_and_closed_loops_are_told_one_by_one() -> None:
    both = planned(load=LoadPlan(threads=(1, 8), rates=("50%", "400"), connections=64))
    loads = [line for line in asked_design(both) if line.startswith("Load: ")]
    assert loads == [
        "Load: closed loop of 1, 8 connections, without pauses, prepared statements.",
        "Load: open loop of 50%, 400 events/s over 64 connections, prepared statements.",
    ]
