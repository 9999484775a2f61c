"""Both kinds of noise come out as they were planted, and with them the best window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests import making
from tests.judge.made_seconds import alike, trial
from tests.making import A

from dbdyno.judge.audit import audit
from dbdyno.judge.within_run import within_runs
from dbdyno.measurement import Step


def noise_of(made):
    return within_runs(audit(made, making.plan(systems=(A,), window_s=60)).sound)


def blocks(count: int, restart_cv: float, rho: float = 0.6, window_s: int = 60):
    random = np.random.default_rng(11)
    restarts = np.exp(stats.norm.ppf((np.arange(count) + 0.5) / count) * restart_cv)
    return [
        trial(tuple((alike(random, window_s, rho) * slow).tolist()), A, block, workload="none")
        for block, slow in enumerate(restarts)
    ]


def test_planted_noise_is_told_apart():
    (found,) = noise_of(blocks(40, 0.015))
    assert found.trials == 40
    assert found.rho1 == pytest.approx(0.6, abs=0.06)
    assert found.seconds_effective == pytest.approx(15, abs=3)
    # 3 % a second, worth 15 seconds of 60
    assert found.within_sd == pytest.approx(0.03 / math.sqrt(15), rel=0.2)
    assert found.restart_sd == pytest.approx(0.015, rel=0.25)
    assert found.variance_ratio == pytest.approx((found.restart_sd / found.within_sd) ** 2)


def test_best_window_is_that_of_method_1_a_6():
    # overhead 120 s, restarts 1.5 %, seconds 3 % with ρ 0.6: 44 s
    made = [
        making.changed(m, procedure=(Step(name="restore", seconds=118),)) for m in blocks(40, 0.015)
    ]
    (found,) = noise_of(made)
    assert found.overhead_s == 120  # and 2 s of warm-up
    assert found.window_s_best == pytest.approx(44, rel=0.25)


def test_restarts_that_do_not_differ_ask_for_longer_windows():
    made = [trial(m, A, block, workload="none") for block, m in enumerate(_same_means(6))]
    (found,) = noise_of(made)
    assert (found.restart_sd, found.window_s_best) == (0, None)


def _same_means(count: int) -> list[tuple[float, ...]]:
    random = np.random.default_rng(12)
    series = [alike(random, 30, 0.0) for _ in range(count)]
    return [tuple((1000 * one / one.mean()).tolist()) for one in series]


def test_equal_seconds_have_no_noise_and_no_ratio():
    (found,) = noise_of([trial((1000.0,) * 20, A, block) for block in range(3)])
    assert (found.rho1, found.within_sd, found.variance_ratio) == (0, 0, None)
    assert found.seconds_effective == 20


def test_two_trials_or_short_windows_say_nothing():
    assert noise_of([trial((1000.0,) * 20, A, block) for block in range(2)]) == []
    assert noise_of([trial((1000.0,) * 9, A, block) for block in range(5)]) == []
