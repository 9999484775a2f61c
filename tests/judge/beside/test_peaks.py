"""Peaks are compared within blocks, where both systems have one."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.scalability import peak_ratios, scalability
from support import making
from support.made_ladders import FLAT, LEVELS, PEAKING, law, noisy, trials
from support.making import A, B

PLAN = making.plan(threads=LEVELS, window_s=2)
THREADS = np.array(LEVELS, dtype=float)


def compared(of_a, of_b):
    audited = audit([*trials(A, of_a), *trials(B, of_b)], PLAN)
    return peak_ratios(scalability(audited.sound, audited.findings, PLAN), A, PLAN.design)


def test_a_drift_that_both_share_leaves_the_ratio_alone():
    drift = np.exp(np.linspace(0, -0.3, 5))[:, None]
    random = np.random.default_rng(1)
    of_a = law(THREADS, *PEAKING) * drift * np.exp(random.standard_normal((5, 8)) * 0.002)
    of_b = 1.2 * law(THREADS, 0.03, 0.0001) * drift
    of_b = of_b * np.exp(random.standard_normal((5, 8)) * 0.002)
    (found,) = compared(of_a, of_b)
    assert (found.baseline, found.system, found.threads.blocks) == (A, B, 5)
    # N* goes with 1/√κ; X(N*) of both follows from their laws
    assert found.threads.low < 2.0 < found.threads.high
    high = law(np.array([98.49]), 0.03, 0.0001)[0] * 1.2 / law(np.array([49.24]), *PEAKING)[0]
    assert found.per_s.low < high < found.per_s.high
    assert found.per_s.high / found.per_s.low == pytest.approx(1, abs=0.02)


def test_a_system_without_a_peak_is_compared_with_nobody():
    random = np.random.default_rng(2)
    of_a, of_b = (noisy(LEVELS, truth, (5,), random) for truth in (PEAKING, FLAT))
    assert compared(of_a, of_b) == []


def test_only_blocks_that_both_have_count():
    random = np.random.default_rng(3)
    of_a, of_b = (noisy(LEVELS, PEAKING, (count,), random) for count in (5, 4))
    (found,) = compared(of_a, of_b)
    assert found.threads.blocks == 4
    assert found.threads.low < 1 < found.threads.high
