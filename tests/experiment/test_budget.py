"""Blocks that fit into a budget: known times, the edges, and a budget too short for any."""

import pytest

from dbdyno.errors import UsageError
from dbdyno.experiment.forecast import blocks_that_fit, fitted, seconds_expected
from support import making

PLAN = making.plan(threads=(1, 8), blocks=10, window_s=60, warmup_s=15)


def with_design(**values):
    return PLAN.model_copy(update={"design": PLAN.design.model_copy(update=values)})


@pytest.mark.parametrize("blocks", [1, 4, 10])
def test_so_many_blocks_fit_into_exactly_their_time(blocks):
    budget_s = seconds_expected(with_design(blocks=blocks))
    assert blocks_that_fit(PLAN, budget_s) == blocks
    assert blocks_that_fit(PLAN, budget_s - 1) == blocks - 1


def test_there_are_never_more_blocks_than_planned():
    assert blocks_that_fit(PLAN, 1e9) == 10
    assert blocks_that_fit(PLAN, 1) == 0


def test_a_plan_without_a_budget_is_left_alone():
    assert fitted(PLAN) is PLAN


def test_a_plan_with_a_budget_has_the_blocks_that_fit_and_is_otherwise_the_same():
    asked = with_design(budget_s=seconds_expected(with_design(blocks=3)) + 5)
    made = fitted(asked)
    assert made.design.blocks == 3
    assert made == asked.model_copy(update={"design": made.design})
    assert fitted(made) == made


def test_a_budget_too_short_for_one_block_says_what_one_takes():
    with pytest.raises(UsageError, match="too short for a single block") as caught:
        fitted(with_design(budget_s=60))
    assert caught.value.found == "1.0 min"
    assert f"{seconds_expected(with_design(blocks=1)) / 60:.1f} min" in str(caught.value)


def test_with_fewer_than_five_blocks_the_controls_go_too():
    controlled = making.plan(threads=(1, 8), blocks=10, window_s=60, warmup_s=15, controls=True)
    for blocks in (4, 5, 9):
        design = controlled.design.model_copy(update={"blocks": blocks})
        budget_s = seconds_expected(controlled.model_copy(update={"design": design}))
        assert blocks_that_fit(controlled, budget_s) == blocks
        assert blocks_that_fit(controlled, budget_s - 1) == blocks - 1
