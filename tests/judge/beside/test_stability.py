"""Planted dips, stalls and recoveries are read off a trial as they were planted."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.stability import DIPS, STALLS, Dip, Stall, counts, stability
from support import making
from support.made_seconds import trial
from support.making import A, B

FLAT = (1000.0,) * 30


def found_in(*measurements):
    plan = making.plan(systems=(A,), window_s=30)
    return stability(audit(measurements, plan).sound)


def with_seconds(changes: dict[int, float]) -> tuple[float, ...]:
    return tuple(changes.get(second, rate) for second, rate in enumerate(FLAT))


def test_an_even_trial_shows_nothing():
    (found,) = found_in(trial(FLAT))
    assert (found.seconds, found.rate_per_s_median) == (30, 1000)
    assert (found.low_share, found.dips, found.stalls) == (0, (), ())
    assert (found.stall_s_longest, found.stall_s_total, found.dip_s_total) == (0, 0, 0)


def test_a_dip_has_its_place_its_depth_and_its_recovery():
    rates = with_seconds({10: 500, 11: 400, 12: 800, 13: 900, 14: 980})
    (found,) = found_in(trial(rates))
    # the warm-up took two seconds; 95 % were reached again in second 14
    assert found.dips == (Dip(start_s=12, end_s=14, least=0.4, recovered_s=5),)
    assert found.low_share == pytest.approx(2 / 30)
    assert found.dip_s_total == 2


def test_a_dip_at_the_end_never_recovers_within_the_window():
    (found,) = found_in(trial(with_seconds({3: 600, 28: 500, 29: 500})))
    first, last = found.dips
    assert (first.recovered_s, last.recovered_s, last.end_s) == (2, None, 32)


def test_few_events_a_second_scatter_and_are_no_dips():
    slow = tuple(16.0 if second % 3 else 10.0 for second in range(30))
    (found,) = found_in(trial(slow))
    assert (found.dips, found.low_share) == ((), 0)
    (found,) = found_in(trial(tuple(rate * 10 for rate in slow)))
    assert len(found.dips) == 10


def test_a_stall_is_named_with_its_length_and_its_end():
    (found,) = found_in(trial(FLAT, silences_s={4: 0.25, 20: 1.3, 21: 0.19}))
    assert found.stalls == (Stall(until_s=7, seconds=0.25), Stall(until_s=23, seconds=1.3))
    assert found.stall_s_longest == 1.3
    assert found.stall_s_total == pytest.approx(1.55)


def test_silence_of_a_slow_load_is_no_stall():
    (found,) = found_in(trial((20.0,) * 30, silences_s={4: 0.4, 9: 0.6}))
    assert [stall.seconds for stall in found.stalls] == [0.6]  # 8 events were due in 0.4 s, 12 here


def test_where_nobody_listened_stalls_are_unknown_and_not_zero():
    (found,) = found_in(making.measurement(A, histograms=False))
    assert found.stalls is None


def test_a_short_window_says_nothing_of_its_course():
    (found,) = found_in(trial((1000.0, 200.0, 1000.0, 1000.0)))
    assert (found.low_share, found.dips) == (None, ())


def test_tail_needs_a_hundred_requests_beyond_p99():
    few = making.measurement(A, 0, tps=900)  # 9 000 events
    many = making.measurement(A, 1, tps=1100)
    without, tail = found_in(few, many)
    assert without.latency_p99_over_p50 is None
    # lognormal with a standard deviation of 0.3: exp(0.3 · 2.326) = 2.01
    assert tail.latency_p99_over_p50 == pytest.approx(2.01, rel=0.05)
    assert tail.latency_ms_p999 is None


# Stalls and dips of two systems are counted over the blocks that both have.


def evenness(made):
    return stability(audit(made, making.plan(window_s=60, blocks=8)).sound)


def test_stalls_of_all_blocks_are_counted_beside_the_baselines():
    flat = (1000.0,) * 20
    made = [trial(flat, A, block) for block in range(8)]
    made += [trial(flat, B, block, {5: 0.4, 9: 0.3}) for block in range(8)]
    found = {one.what: one for one in counts(evenness(made), A, B)}
    stalls = found[STALLS]
    assert (stalls.baseline_total, stalls.system_total, stalls.blocks) == (0, 16, 8)
    assert (found[DIPS].baseline_total, found[DIPS].system_total) == (0, 0)


def test_blocks_of_one_system_only_are_not_counted():
    flat = (1000.0,) * 20
    made = [trial(flat, A, block, {3: 0.5}) for block in range(3)]
    made += [trial(flat, B, block) for block in (1, 2, 3)]
    stalls = counts(evenness(made), A, B)[0]
    assert (stalls.what, stalls.blocks, stalls.baseline_total) == (STALLS, 2, 2)


def test_unheard_stalls_are_not_compared():
    made = [making.measurement(s, b, histograms=False) for s in (A, B) for b in range(3)]
    assert [one.what for one in counts(evenness(made), A, B)] == [DIPS]
