"""Time left: the plan's own times plus what starts have cost so far."""

import math

import pytest

from dbdyno.errors import UsageError
from dbdyno.experiment.schedule.forecast import (
    DATASET_S,
    PURGE_S,
    ROWS_PER_S,
    SETTLE_S,
    START_S,
    Forecast,
    blocks_that_fit,
    fitted,
    load_s,
    outlook_of,
)
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.plan.settings import SettingsPlan
from dbdyno.stats.design import TRIAL_S
from support import making

PLAN = making.plan(threads=(1, 8), blocks=3, window_s=60, warmup_s=15)  # 12 trials, 6 arms
TRIALS = trials_of(PLAN, "r")


def test_a_plan_takes_its_datasets_its_arms_and_its_trials():
    datasets = 2 * (DATASET_S + 400_000 / ROWS_PER_S)
    loads_s = 12 * (75 + TRIAL_S)
    assert outlook_of(PLAN).seconds == pytest.approx(datasets + 6 * START_S + loads_s)


def test_machines_beside_each_other_take_the_time_of_their_rounds():
    loads_s = Forecast(PLAN).loads_s
    blocks_s = outlook_of(PLAN).seconds - loads_s
    assert outlook_of(PLAN, 2).seconds == pytest.approx(loads_s + blocks_s * 2 / 3)
    assert outlook_of(PLAN, 8).seconds == pytest.approx(loads_s + blocks_s / 3)
    timed = making.with_parts(PLAN, design={"time_s": 600.0})
    assert outlook_of(timed, 8).seconds == loads_s + 600


@pytest.mark.parametrize(("loads", "further"), [(2, 1), (3, 2), (9, 2)])
def test_further_loads_that_a_plan_names_are_expected(loads, further):
    more = making.with_parts(PLAN, dataset={"loads": loads})
    whole_s = outlook_of(PLAN).seconds + further * 2 * load_s(PLAN.dataset)
    assert outlook_of(more).seconds == pytest.approx(whole_s)
    first = [trial for trial in TRIALS if trial.block == 0]
    assert Forecast(more).seconds_left(first) == Forecast(PLAN).seconds_left(first)


def test_a_forecast_learns_what_starts_cost_here():
    forecast = Forecast(PLAN)
    for _ in range(2):
        forecast.started(20)
        forecast.added(5)
    assert forecast.seconds_left(TRIALS) == pytest.approx(6 * 25 + 12 * (75 + TRIAL_S))


def test_time_within_a_trial_counts_down_and_never_below_nothing():
    forecast = Forecast(PLAN)
    last = [trial for trial in TRIALS if trial.system == making.B][-1:]
    assert forecast.seconds_left(last, into_s=30, running=1) == pytest.approx(45 + TRIAL_S)
    assert forecast.seconds_left(last, into_s=500, running=1) == 0.0
    assert forecast.seconds_left([]) == 0.0


def test_a_restart_for_each_cell_is_counted():
    per_cell = Forecast(making.with_parts(PLAN, procedure={"restart": "cell"}))
    loads_s = 12 * (START_S + 75 + TRIAL_S)
    assert per_cell.seconds_left(TRIALS) == pytest.approx(loads_s)


def test_what_comes_before_each_trials_load_is_expected():
    resting = making.with_parts(PLAN, procedure={"settle_cap_s": 30.0, "purge_binlogs": True})
    more_s = 12 * (SETTLE_S + PURGE_S)
    assert outlook_of(resting).seconds == pytest.approx(outlook_of(PLAN).seconds + more_s)


def test_a_forecast_learns_what_comes_before_a_trial():
    forecast = Forecast(PLAN)
    forecast.prepared(200)
    forecast.prepared(100)
    loads_s = 12 * (150 + 75 + TRIAL_S)
    assert forecast.seconds_left(TRIALS) == pytest.approx(6 * START_S + loads_s)


def test_a_setting_is_a_start_of_its_own():
    varied = PLAN.model_copy(update={"settings": SettingsPlan(durability=("double-1", "0/2"))})
    assert Forecast(varied).seconds_left(trials_of(varied, "r")) == pytest.approx(
        12 * START_S + 24 * (75 + TRIAL_S)
    )


# Blocks that fit into a budget: known times, the edges, and a budget too short for any.

TEN_BLOCKS = making.plan(threads=(1, 8), blocks=10, window_s=60, warmup_s=15)


def with_design(**values):
    return making.with_parts(TEN_BLOCKS, design=values)


@pytest.mark.parametrize("blocks", [1, 4, 10])
def test_so_many_blocks_fit_into_exactly_their_time(blocks):
    budget_s = outlook_of(with_design(blocks=blocks)).seconds
    assert blocks_that_fit(TEN_BLOCKS, budget_s) == blocks
    assert blocks_that_fit(TEN_BLOCKS, budget_s - 1) == blocks - 1


def test_machines_beside_each_other_fit_whole_rounds_into_their_time():
    for blocks, machines in ((3, 3), (6, 3), (9, 3), (10, 4)):
        budget_s = outlook_of(with_design(blocks=blocks), machines).seconds
        rounds = math.ceil(blocks / machines)
        assert blocks_that_fit(TEN_BLOCKS, budget_s, machines) == blocks
        if rounds > 1:
            assert blocks_that_fit(TEN_BLOCKS, budget_s - 1, machines) == (rounds - 1) * machines
    one_s = outlook_of(with_design(blocks=1)).seconds
    assert 1 <= blocks_that_fit(TEN_BLOCKS, one_s, 3) <= 3


def test_there_are_never_more_blocks_than_planned():
    assert blocks_that_fit(TEN_BLOCKS, 1e9) == 10
    assert blocks_that_fit(TEN_BLOCKS, 1) == 0


def test_a_plan_without_a_budget_is_left_alone():
    assert fitted(TEN_BLOCKS) is TEN_BLOCKS


def test_a_plan_with_a_budget_has_the_blocks_that_fit_and_is_otherwise_the_same():
    asked = with_design(budget_s=outlook_of(with_design(blocks=3)).seconds + 5)
    made = fitted(asked)
    assert made.design.blocks == 3
    assert made == asked.model_copy(update={"design": made.design})
    assert fitted(made) == made


def test_a_budget_too_short_for_one_block_says_what_one_takes():
    with pytest.raises(UsageError, match="too short for a single block") as caught:
        fitted(with_design(budget_s=60))
    assert caught.value.found == "1.0 min"
    assert f"{outlook_of(with_design(blocks=1)).seconds / 60:.1f} min" in str(caught.value)
