"""Two systems' evenness: planted differences are found, equal systems seldom differ."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import making
from tests.judge.made_seconds import alike, trial
from tests.making import A, B

from dbdyno.judge.audit import audit
from dbdyno.judge.sequential import FIXED
from dbdyno.judge.stability import stability
from dbdyno.judge.stability_pairs import DIPS, JITTER, STALLS, counts, ratios, sign_flip


def evenness(made):
    return stability(audit(made, making.plan(window_s=60, blocks=8)).sound)


def rough(seed: int, scatter: float) -> tuple[float, ...]:
    return tuple(alike(np.random.default_rng(seed), 60, 0.0, scatter).tolist())


def test_twice_the_jitter_is_a_ratio_of_two():
    made = [trial(rough(block, 0.02), A, block) for block in range(8)]
    made += [trial(rough(50 + block, 0.04), B, block) for block in range(8)]
    (found,) = ratios(evenness(made), A, [B], FIXED)
    assert (found.baseline, found.system, found.measure, found.ratio.blocks) == (A, B, JITTER, 8)
    assert found.ratio.low < 2 < found.ratio.high
    assert found.ratio.low > 1.5
    assert found.baseline_typical == pytest.approx(0.02, rel=0.2)
    assert found.system_typical == pytest.approx(0.04, rel=0.2)


def test_a_system_that_stalls_in_each_block_differs_from_one_that_never_does():
    flat = (1000.0,) * 20
    made = [trial(flat, A, block) for block in range(8)]
    made += [trial(flat, B, block, {5: 0.4, 9: 0.3}) for block in range(8)]
    found = {one.what: one for one in counts(evenness(made), A, [B])}
    stalls = found[STALLS]
    assert (stalls.baseline_total, stalls.system_total, stalls.blocks) == (0, 16, 8)
    assert stalls.p == pytest.approx(2 / 2**8)
    assert (found[DIPS].system_total, found[DIPS].p) == (0, 1)


def test_blocks_of_one_system_only_are_not_counted():
    flat = (1000.0,) * 20
    made = [trial(flat, A, block, {3: 0.5}) for block in range(3)]
    made += [trial(flat, B, block) for block in (1, 2, 3)]
    stalls = counts(evenness(made), A, [B])[0]
    assert (stalls.what, stalls.blocks, stalls.baseline_total) == (STALLS, 2, 2)


def test_unheard_stalls_are_not_compared():
    made = [making.measurement(s, b, histograms=False) for s in (A, B) for b in range(3)]
    assert [one.what for one in counts(evenness(made), A, [B])] == [DIPS]


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1.0),
        ([0, 0, 0], 1.0),
        ([1, 1, 1, 1, 1, 1], 2 / 64),
        ([3, -3], 1.0),
        ([5, 1], 0.5),
    ],
)
def test_sign_flip_on_known_cases(differences, p):
    assert sign_flip(differences) == pytest.approx(p)


@given(st.lists(st.integers(-20, 20), max_size=9))
def test_sign_flip_is_what_all_turnings_give(differences):
    seen = abs(sum(differences))
    sums = [
        abs(sum(sign * size for sign, size in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    assert sign_flip(differences) == pytest.approx(sum(s >= seen for s in sums) / len(sums))


def test_sign_flip_bears_many_blocks():
    assert sign_flip([1] * 300) < 1e-50
