"""Rates, limits, and what stands for what in a plan's load."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.plan.load import LoadPlan, PilotFound, SloPlan, rate_per_s
from dbdyno.plan.plan import Plan, cells
from dbdyno.plan.spelling import share_of
from dbdyno.plan.workload import WorkloadPlan
from support import making

FOUND = PilotFound(
    workload="oltp_read_write",
    setting="default",
    sustained_per_s={"a": 1000.0},
    rates_per_s=(700.0, 500.0),
)


def test_a_rate_is_a_number_or_a_share() -> None:
    assert (rate_per_s("500"), share_of("500")) == (500.0, None)
    assert (rate_per_s("12.5"), share_of("70 %")) == (12.5, 0.7)


@pytest.mark.parametrize("text", ["", "0", "fast", "-5", "0%", "201%", "1e5", "50%%"])
def test_anything_else_is_no_rate(text: str) -> None:
    with pytest.raises(ValidationError, match="events a second such as 500"):
        LoadPlan(rates=(text,))


@pytest.mark.parametrize(
    ("asked", "threads"),
    [
        ({}, (1, 8)),
        ({"rates": ["50%"]}, ()),
        ({"slo": {"limit_ms": 20}}, ()),
        ({"rates": ["50%"], "threads": [4]}, (4,)),
    ],
)
def test_rates_take_the_place_of_the_usual_threads(
    asked: dict[str, object], threads: tuple[int, ...]
) -> None:
    load = LoadPlan.model_validate(asked)
    assert load.threads == threads
    assert LoadPlan.model_validate_json(load.model_dump_json(), strict=True) == load


def test_a_load_without_any_level_is_a_mistake() -> None:
    with pytest.raises(ValidationError, match="needs at least one level"):
        LoadPlan(threads=())
    with pytest.raises(ValidationError, match="each level once"):
        LoadPlan(rates=("50%", "50%"))


@pytest.mark.parametrize(
    ("load", "needs", "seeks"),
    [
        (LoadPlan(), False, False),
        (LoadPlan(rates=("500",)), False, False),
        (LoadPlan(rates=("500", "70%")), True, False),
        (LoadPlan(slo=SloPlan(limit_ms=20)), True, True),
        (LoadPlan(slo=SloPlan(limit_ms=20), rates=("500",)), False, False),
    ],
)
def test_a_pilot_is_needed_for_what_depends_on_the_machine(
    load: LoadPlan, needs: bool, seeks: bool
) -> None:
    assert (load.needs_pilot, load.seeks_rates) == (needs, seeks)
    assert load.is_rung(500.0) == seeks
    assert not load.is_rung(None)


def test_cells_have_rates_once_they_are_known() -> None:
    load = LoadPlan(rates=("50%", "500", "70%"), threads=(8,), connections=16)
    asked = making.plan(load=load)
    assert [cell.key for cell in cells(asked)] == [
        "oltp_read_write/threads=8/default",
        "oltp_read_write/threads=16/rate=500/default",
    ]
    known = making.plan(load=load.model_copy(update={"pilot": (FOUND,)}))
    rates = [cell.rate_per_s for cell in cells(known)]
    assert rates == [None, 500.0, 700.0], "500 stands once"
    assert known.hash() == asked.hash(), "what was found was not asked for"


@pytest.mark.parametrize(("metric", "quantile"), [("p50", 0.5), ("p95", 0.95), ("p999", 0.999)])
def test_a_percentile_is_a_quantile(metric: str, quantile: float) -> None:
    assert SloPlan.model_validate({"metric": metric, "limit_ms": 1}).quantile == quantile


def test_each_generator_needs_a_connection_and_scripts_have_one() -> None:
    assert LoadPlan(threads=(4, 16), generators=4).generators == 4
    with pytest.raises(ValidationError, match="5 generators, but a level of 4"):
        LoadPlan(threads=(4, 16), generators=5)
    script = WorkloadPlan(name="a.lua", label="a", script="function event() end")
    asked = {**making.plan().model_dump(), "workloads": (script,), "load": {"generators": 1}}
    Plan.model_validate(asked)
    asked["load"] = {"generators": 2, "threads": (8,)}
    with pytest.raises(ValidationError, match="a script's threads share one process"):
        Plan.model_validate(asked)
