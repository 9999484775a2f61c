"""What a judgement says beside its verdicts, whole: planted shapes of two systems come out."""

from __future__ import annotations

import numpy as np

from dbdyno.judge.audit import audit
from dbdyno.judge.judgement import Judgement, judge, shape
from support import making
from support.made_ladders import LEVELS, PEAKING, noisy, trials
from support.making import A, B

PLAN = making.plan(threads=LEVELS, window_s=2, blocks=6)


def made():
    random = np.random.default_rng(8)
    of_a, of_b = (noisy(LEVELS, PEAKING, (6,), random) for _ in range(2))
    of_b[4] *= 0.6  # one restart was bad
    return [*trials(A, of_a), *trials(B, 1.3 * of_b)]


def test_a_judgement_has_the_shape_of_its_sound_trials():
    judged = judge(made(), PLAN)
    assert [one.system for one in judged.scalability if one.peak] == [A, B]
    (ratio,) = judged.peaks
    assert ratio.per_s.low < 1.3 < ratio.per_s.high
    assert len(judged.stability) == 6 * 2 * len(LEVELS)
    assert {(one.system, one.block) for one in judged.outliers} == {(B, 4)}
    assert [(one.system, one.bad, one.restarts) for one in judged.bad_restarts] == [
        (A, 0, 6),
        (B, 1, 6),
    ]


def test_it_comes_back_from_json_to_the_last_digit():
    judged = judge(made(), PLAN)
    assert Judgement.model_validate_json(judged.model_dump_json()) == judged


def test_it_is_ordered_by_cells_systems_and_blocks_however_trials_ran():
    judged = judge(made()[::-1], PLAN)
    places = [(one.cell.threads, one.system, one.block) for one in judged.stability]
    assert places == [(n, system, block) for n in LEVELS for system in (A, B) for block in range(6)]
    assert [one.system for one in judged.scalability] == [A, B]


def test_nothing_sound_gives_nothing_and_no_error():
    found = shape(audit([], PLAN), PLAN)
    assert set(found) <= set(Judgement.model_fields)
    assert all(part == () for part in found.values())


def test_one_system_has_a_shape_and_no_comparison():
    plan = making.plan(systems=(A,), threads=LEVELS, window_s=2)
    rates = noisy(LEVELS, PEAKING, (5,), np.random.default_rng(1))
    found = shape(audit(trials(A, rates), plan), plan)
    assert len(found["scalability"]) == 1
    assert (found["peaks"], found["stability_counts"]) == ((), ())
