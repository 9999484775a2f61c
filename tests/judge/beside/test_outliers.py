"""Odd runs are named and hardly ever invented."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.outliers import outliers, outlying, rosner
from dbdyno.plan.plan import metric_of
from support import making
from support.making import A, B

METRIC = partial(metric_of, making.plan())
EVEN = (1000.0, 1004.0, 997.0, 1008.0, 995.0, 1002.0, 991.0, 1006.0)
ROSNER = """
-0.25 0.68 0.94 1.15 1.20 1.26 1.26 1.34 1.38 1.43 1.49 1.49 1.55 1.56 1.58 1.65 1.69 1.70 1.76
1.77 1.81 1.91 1.94 1.96 1.99 2.06 2.09 2.10 2.14 2.15 2.23 2.24 2.26 2.35 2.37 2.40 2.47 2.54
2.62 2.64 2.90 2.92 2.92 2.93 3.21 3.26 3.30 3.59 3.68 4.30 4.64 5.34 5.42 6.01
"""


def sound(made, blocks=8, threads=(8,)):
    plan = making.plan(blocks=blocks, threads=threads, window_s=2)
    return audit(made, plan).sound


def runs(rates, system=A, threads=8):
    return [
        making.measurement(
            system, block, threads, rate, window_s=2, histograms=False, sequence=block
        )
        for block, rate in enumerate(rates)
    ]


def test_rosners_own_example():
    # 54 values, up to ten outliers, 5 %: only the third step is beyond its bound (3.179 > 3.144),
    # so three are named (Rosner 1983; NIST/SEMATECH handbook 1.3.5.17.3)
    values = [float(value) for value in ROSNER.split()]
    assert sorted(rosner(values, 10, 0.05)) == [51, 52, 53]
    assert rosner(values, 2, 0.05) == set()


def test_one_slow_run_is_named_with_how_far_it_is_off():
    (found,) = outliers(sound(runs((*EVEN[:3], 720.0, *EVEN[4:]))), 0.02, METRIC)
    assert (found.system, found.block, found.runs) == (A, 3, 8)
    assert found.trial == "3/mysql:5.7.22/oltp_read_write/threads=8/default"
    assert found.ratio == pytest.approx(0.72, abs=0.005)
    made = sound(runs((*EVEN[:7], 1400.0)))
    assert [one.block for one in outliers(made, 0.02, METRIC)] == [7]


NEARLY = (1000, 1000.1, 999.9, 1000.2, 1015, 999.8, 1000.1)


@pytest.mark.parametrize(
    ("rates", "margin", "places"),
    [
        ((1000.0, 703.0, *EVEN[2:6], 713.0, 1006.0), 0.02, [1, 6]),  # two do not hide each other
        (NEARLY, 0.02, []),
        (NEARLY, 0.01, [4]),
        ((), 0.02, []),
        ((1.0,) * 4, 0.02, []),
        ((1.0, 1.0, 1.0, 148.0), 0.02, []),
        ((1.0,) * 9, 0.02, []),
        ((1.0, 1.0, 1.0, 1.0, 0.67), 0.02, [4]),
    ],
)
def test_runs_apart_by_more_than_the_margin_are_named_among_five_or_more(rates, margin, places):
    assert sorted(outlying([math.log(rate) for rate in rates], margin)) == places


@pytest.mark.parametrize("count", [5, 8, 12])
def test_runs_without_an_outlier_are_seldom_given_one(count):
    random = np.random.default_rng(count)
    samples = random.standard_normal((1000, count)) * 0.015
    assert np.mean([bool(outlying(sample.tolist(), 1e-6)) for sample in samples]) <= 0.065


@pytest.mark.parametrize("count", [5, 8, 12])
def test_a_restart_that_is_thirty_percent_slow_is_hardly_ever_missed(count):
    random = np.random.default_rng(count)
    samples = random.standard_normal((300, count)) * 0.015
    samples[:, 2] += math.log(0.7)
    assert np.mean([2 in outlying(sample.tolist(), 0.02) for sample in samples]) >= 0.97


def test_at_a_fixed_rate_latency_decides():
    # eight connections: half the rate is twice the latency; made p99 are exact to a tenth
    rates = (2000.0, 1990.0, 2005.0, 2010.0, 1000.0, 1995.0)
    made = [
        making.with_trial(making.measurement(A, block, tps=rate), rate_per_s=2000.0)
        for block, rate in enumerate(rates)
    ]
    usable = audit(made, making.plan(systems=(A,), blocks=6)).sound
    found = outliers(usable, 0.2, METRIC)
    assert [(one.block, one.metric) for one in found] == [(4, "latency_ms_p99")]
    assert found[0].ratio == pytest.approx(1.8, abs=0.2)


def test_runs_are_held_against_those_of_their_system_and_machine():
    of_two = runs(EVEN, A) + runs([rate * 0.7 for rate in EVEN], B)
    assert outliers(sound(of_two), 0.02, METRIC) == []
    made = runs((*EVEN, *EVEN, *(0.8 * rate for rate in EVEN[:5])))
    names = ("a",) * 8 + ("b",) * 8 + ("slow",) * 5
    spread = [making.changed(one, machine=name) for one, name in zip(made, names, strict=True)]
    assert len(outliers(sound(made, blocks=21), 0.02, METRIC)) == 5
    assert outliers(sound(spread, blocks=21), 0.02, METRIC) == []
