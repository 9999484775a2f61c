"""Estimates with answers known beforehand; one number for each block, from sound trials only."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.audit import Sound, audit
from dbdyno.judge.estimate import Estimate, Pairs, estimates, system_values
from dbdyno.judge.interval import FIXED, interval
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY, TABLE
from dbdyno.plan.plan import cells
from support import making
from support.made_estimates import CELL, estimate_from
from support.making import A, B

PLAN = making.plan()


def sound(trials: list[Measurement]) -> tuple[Sound, ...]:
    return audit(trials, PLAN).sound


def pairs_of(trials) -> Pairs:
    return Pairs(sound(trials))


def primary(trials: list[Measurement]) -> Estimate:
    return estimates(pairs_of(trials), [CELL], A, B)[0]


def test_interval_of_students_own_example():
    # extra hours of sleep, Student 1908; the interval is the one that R's t.test prints
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    found = interval(sleep, FIXED)
    assert found.mean == pytest.approx(1.58)
    assert found.mean - found.half == pytest.approx(0.7001142)
    assert found.mean + found.half == pytest.approx(2.4598858)


def test_many_samples_at_once_are_as_each_alone():
    samples = np.random.default_rng(3).normal(size=(7, 4))
    together = interval(samples, FIXED)
    for row, half in zip(samples, together.half, strict=True):
        assert interval(row, FIXED).half == pytest.approx(half)


def test_estimate_is_the_exponential_of_the_log_interval():
    # mean 0.02, s 0.01, t(0.975, 2) = 4.302653 from a printed table: half 4.302653 · 0.01 / √3
    found = estimate_from([0.01, 0.02, 0.03])
    assert found.ratio == pytest.approx(math.exp(0.02))
    assert found.low == pytest.approx(math.exp(0.02 - 0.0248414), rel=1e-6)
    assert found.high == pytest.approx(math.exp(0.02 + 0.0248414), rel=1e-6)
    assert found.log_sd == pytest.approx(0.01)
    assert (found.baseline, found.system, found.blocks) == (A, B, 3)


@pytest.mark.parametrize(
    ("logs", "ratio", "log_sd"),
    [([], None, None), ([0.1], 1.10517, None), ([0.1, 0.3], 1.22140, 0.141421)],
)
def test_below_three_blocks_there_is_no_interval(logs, ratio, log_sd):
    found = estimate_from(logs)
    assert (found.low, found.high, found.blocks) == (None, None, len(logs))
    assert found.ratio == (ratio and pytest.approx(ratio, abs=1e-5))
    assert found.log_sd == (log_sd and pytest.approx(log_sd, abs=1e-6))


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=12))
def test_swapping_the_systems_inverts_the_ratio(logs):
    there, back = estimate_from(logs), estimate_from([-log for log in logs])
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert (back.low, back.high) == (pytest.approx(1 / there.high), pytest.approx(1 / there.low))
    assert back.log_sd == pytest.approx(there.log_sd)
    assert there.low <= there.ratio * (1 + 1e-12)
    assert there.ratio <= there.high * (1 + 1e-12)


def test_pairs_are_within_blocks():
    # the machine halves its speed from block to block; within each block B is 10 % faster
    trials = []
    for block, tps in enumerate((2000, 1000, 500)):
        trials.append(making.measurement(A, block, tps=tps))
        trials.append(making.measurement(B, block, tps=tps * 1.1))
    found = primary(trials)
    assert found.ratio == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1, abs=1e-5)
    assert found.high == pytest.approx(1.1, abs=1e-5)


def test_every_metric_is_estimated_in_the_tables_order():
    found = estimates(pairs_of(making.pairs((0.8,) * 3)), [CELL], A, B)
    assert [one.metric for one in found] == [metric.name for metric in TABLE]
    by_name = {one.metric: one for one in found}
    assert by_name["queries_per_s"].ratio == pytest.approx(0.8)
    assert by_name["latency_ms_avg"].ratio == pytest.approx(1.25)
    assert by_name["latency_ms_p99"].ratio is None  # too few requests beyond it
    other = Cell(workload="oltp_read_only", threads=1)
    found = estimates(pairs_of(making.pairs((1.0,) * 3)), [other], A, B)
    assert [(one.ratio, one.blocks) for one in found] == [(None, 0)] * len(TABLE)


def test_value_is_merged_and_its_interval_is_of_the_blocks():
    trials = [making.measurement(A, block, tps=tps) for block, tps in enumerate((900, 1000, 1100))]
    tps = system_values(sound(trials), cells(PLAN))[0]
    assert (tps.system, tps.metric, tps.blocks) == (A, PRIMARY.name, 3)
    assert tps.value == pytest.approx(1000)
    logs = interval(np.log([900, 1000, 1100]), FIXED)
    assert tps.low == pytest.approx(math.exp(logs.mean - logs.half))
    assert tps.high == pytest.approx(math.exp(logs.mean + logs.half))


def test_quantile_of_several_trials_is_read_off_the_added_counts():
    # 1000 requests around 8 ms and 9000 around 0.9 ms: the median of all is a fast one
    trials = [making.measurement(A, 0, tps=1000), making.measurement(A, 1, tps=9000)]
    values = {one.metric: one for one in system_values(sound(trials), [CELL])}
    median = values["latency_ms_p50"].value
    slow, fast = (trial.value(BY_NAME["latency_ms_p50"]) for trial in trials)
    assert fast < median < 1.2 * fast < (slow + fast) / 2


def test_a_ratio_needs_both_systems_of_its_block_and_a_metric_that_was_seen():
    trials = making.pairs((1.1, 1.2, 1.3))
    del trials[3]
    pairs = pairs_of(trials[::-1])
    found = pairs.log_ratios(CELL, A, B, PRIMARY)
    assert list(found) == [0, 2], "in the order of blocks"
    assert list(found.values()) == pytest.approx([math.log(1.1), math.log(1.3)])
    assert pairs.log_ratios(CELL, A, B, BY_NAME["latency_ms_p999"]) == {}
    assert pairs.logs(Cell(workload="other", threads=1), A, PRIMARY) == {}
