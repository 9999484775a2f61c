from __future__ import annotations

from tests import making
from tests.report.made_run import Run, facts

from dbdyno.plan_parts import DistributionPlan
from dbdyno.plan_settings import SettingsPlan
from dbdyno.report import sections_method
from dbdyno.report.parts import Code, Items, Table
from dbdyno.report.trials import attempts


def test_systems_workloads_and_procedure_are_told(made: Run) -> None:
    plan = making.plan(options={"range_selects": False, "tables": 4})
    systems, workloads, items = sections_method.how_measured(plan, made.measurements).parts
    assert isinstance(systems, Table)
    assert systems.rows[1] == (making.B, making.B, "8.0.15", "—")
    assert isinstance(workloads, Table)
    assert workloads.rows[0][2] == "range_selects=off, tables=4"
    assert isinstance(items, Items)
    text = "\n".join(items.items)
    for words in ("uniform", "seed 1", "at saturation", "never averaged", "epoll", "5 blocks"):
        assert words in text


def test_the_default_distribution_of_sysbench_is_told_from_others() -> None:
    plan = making.plan().model_copy(update={"distribution": DistributionPlan(name="special")})
    items = sections_method.how_measured(plan, []).parts[2]
    assert isinstance(items, Items)
    assert (
        "Rows are chosen by sysbench's special distribution, the default of its 1.0." in items.items
    )


def test_what_is_set_on_every_system_is_told_from_what_is_varied() -> None:
    axes = SettingsPlan(durability=("0/2",), thread_pool=("off", "on"))
    plan = making.plan().model_copy(update={"settings": axes})
    items = sections_method.how_measured(plan, []).parts[2]
    assert isinstance(items, Items)
    assert "On every system: durability 0/2." in items.items
    assert "Varied on every system: thread_pool (off, on)." in items.items


def test_a_scale_and_a_budget_are_told() -> None:
    plan = making.plan(blocks=4)
    design = plan.design.model_copy(update={"budget_s": 5400.0})
    small = plan.model_copy(update={"scale": "small", "design": design})
    items = sections_method.how_measured(small, []).parts[2]
    assert isinstance(items, Items)
    assert items.items[0] == "This is the scale small of its plan file."
    assert any(
        i.startswith("4 blocks, as many as fit into 1.5 h by forecast: ") for i in items.items
    )
    plain = sections_method.how_measured(plan, []).parts[2]
    assert isinstance(plain, Items)
    assert not any("scale" in item or "forecast" in item for item in plain.items)


def test_a_system_that_never_ran_is_listed_as_such() -> None:
    systems = sections_method.how_measured(making.plan(), []).parts[0]
    assert isinstance(systems, Table)
    assert systems.rows[0][2] == "(never ran)"


def test_every_attempt_has_a_row(made: Run) -> None:
    listed = attempts(made.measurements, made.judgement)
    (table,) = sections_method.trial_order(listed).parts
    assert isinstance(table, Table)
    assert len(table.rows) == 21
    assert table.rows[6][-1] == "failed: the server went away | <died>"
    assert table.rows[8][-1] == "void: client-bound"


def test_a_run_can_be_repeated_even_without_its_command(made: Run) -> None:
    code = sections_method.repeat(made.plan, made.facts).parts[1]
    assert code == Code("dbdyno compare mysql:5.7.22 mysql:8.0.15 --threads 1,8")
    bare = facts(made.plan).model_copy(update={"command": ""})
    assert sections_method.repeat(made.plan, bare).parts[1] == Code(
        "dbdyno report 20261121-060000-made"
    )
