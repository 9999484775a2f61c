"""From audited trials to a law and a peak, or to the reason why there is none."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.scalability import NoFit, scalability
from support import making
from support.made_ladders import FLAT, LEVELS, PEAK_THREADS, PEAKING, law, noisy, trials
from support.making import A

PLAN = making.plan(systems=(A,), threads=LEVELS, window_s=2)


def rates(truth=PEAKING, blocks=5, seed=5):
    return noisy(LEVELS, truth, (blocks,), np.random.default_rng(seed))


def judged(measurements, plan=PLAN):
    audited = audit(measurements, plan)
    return scalability(audited.sound, audited.findings, plan)


def test_a_peak_comes_with_its_law_and_the_points_beside_it():
    (found,) = judged(trials(A, rates()))
    assert (found.workload, found.setting, found.system) == ("oltp_read_write", "default", A)
    assert (found.refusal, found.why) == (None, "")
    assert found.peak.threads.low < PEAK_THREADS < found.peak.threads.high
    truth = float(law(np.array([PEAK_THREADS]), *PEAKING)[0])
    assert found.peak.per_s.low < truth < found.peak.per_s.high
    assert found.law.sigma.value == pytest.approx(PEAKING[0], abs=0.01)
    assert [point.threads for point in found.points] == list(LEVELS)
    assert all(abs(point.off) < 0.03 for point in found.points)


def test_the_curve_goes_from_the_first_level_to_the_last_within_its_band():
    (found,) = judged(trials(A, rates()))
    curve = found.law.curve
    assert (curve[0].threads, curve[-1].threads) == (1, pytest.approx(128))
    assert all(point.low < point.per_s < point.high for point in curve)
    highest = max(curve, key=lambda point: point.per_s)
    assert highest.threads == pytest.approx(found.peak.threads.value, rel=0.15)


def test_blocks_keep_their_own_laws():
    made = rates()
    (found,) = judged(trials(A, made))
    assert [one.block for one in found.law.blocks] == [0, 1, 2, 3, 4]
    peaks = [one.peak_threads for one in found.law.blocks]
    assert np.exp(np.mean(np.log(peaks))) == pytest.approx(found.peak.threads.value)


def test_a_block_without_one_of_its_levels_is_left_out():
    made = trials(A, rates())
    del made[11]  # block 2, 8 threads
    (found,) = judged(made)
    assert [one.block for one in found.law.blocks] == [0, 2, 3, 4]
    assert [point.per_s.blocks for point in found.points] == [5, 5, 5, 4, 5, 5, 5, 5]


def test_a_level_that_never_was_sound_refuses_the_fit_and_keeps_the_points():
    made = [m for m in trials(A, rates()) if m.trial.cell.threads != 128]
    (found,) = judged(made)
    assert found.refusal is NoFit.FEW_BLOCKS
    assert found.why.startswith("0 of 5 blocks")
    assert found.why.endswith("(some have none at 128 threads)")
    assert (found.law, found.peak, len(found.points)) == (None, None, 7)


def test_a_level_where_the_generator_was_the_limit_refuses_the_fit():
    made = trials(A, rates())
    engine = made[7].engine.model_copy(update={"cpu_share_max": 0.99})
    made[7] = making.changed(made[7], engine=engine)
    (found,) = judged(made)
    assert found.refusal is NoFit.CLIENT_BOUND
    assert "at 128 threads" in found.why


def test_no_peak_leaves_the_law_that_describes_the_points():
    (found,) = judged(trials(A, rates(FLAT)))
    assert (found.refusal, found.peak) == (NoFit.NO_PEAK, None)
    assert found.why == "no peak up to 128 threads"
    assert found.law.sigma.low < 0.05 < found.law.sigma.high


def test_from_five_levels_on_there_is_a_law():
    for count in (4, 5):
        levels = LEVELS[:count]
        plan = making.plan(systems=(A,), threads=levels, window_s=2)
        found = judged(trials(A, rates()[:, :count], levels=levels), plan)
        assert [one.law is not None for one in found] == [True] * (count - 4)


def test_fixed_rates_are_no_ladder_of_threads():
    made = trials(A, rates()[:1])
    cells = [m.trial.cell.model_copy(update={"rate_per_s": 100.0}) for m in made]
    open_loop = [
        making.changed(m, trial=m.trial.model_copy(update={"cell": cell}))
        for m, cell in zip(made, cells, strict=True)
    ]
    assert judged(open_loop) == []
