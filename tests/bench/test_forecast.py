"""Time left: the plan's own times plus what starts have cost so far."""

import pytest
from tests import making

from dbdyno.bench import seconds_expected, trials_of
from dbdyno.bench.forecast import DATASET_S, ROWS_PER_S, START_S, TRIAL_S, Forecast

PLAN = making.plan(threads=(1, 8), blocks=3, window_s=60, warmup_s=15)  # 12 trials, 6 arms
TRIALS = trials_of(PLAN, "r")


def test_a_plan_takes_its_datasets_its_arms_and_its_trials():
    datasets = 2 * (DATASET_S + 400_000 / ROWS_PER_S)
    assert seconds_expected(PLAN) == pytest.approx(datasets + 6 * START_S + 12 * (75 + TRIAL_S))


def test_a_forecast_learns_what_starts_cost_here():
    forecast = Forecast(PLAN)
    for _ in range(2):
        forecast.started(20)
        forecast.stopped(5)
    assert forecast.seconds_left(TRIALS) == pytest.approx(6 * 25 + 12 * (75 + TRIAL_S))


def test_time_within_a_trial_counts_down_and_never_below_nothing():
    forecast = Forecast(PLAN)
    last = TRIALS[-1:]
    assert forecast.seconds_left(last, into_s=30, running=1) == pytest.approx(45 + TRIAL_S)
    assert forecast.seconds_left(last, into_s=500, running=1) == 0.0
    assert forecast.seconds_left([]) == 0.0


def test_a_restart_for_each_cell_is_counted():
    procedure = PLAN.procedure.model_copy(update={"restart": "cell"})
    per_cell = Forecast(PLAN.model_copy(update={"procedure": procedure}))
    assert per_cell.seconds_left(TRIALS) == pytest.approx(12 * (START_S + 75 + TRIAL_S))
