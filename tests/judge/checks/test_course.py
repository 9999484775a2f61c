"""Did the trial run its course, and from where does its window count?"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import course
from dbdyno.judge.checks.course import (
    from_second,
    later_cut,
    later_cuts,
    own_cut_s,
    rates_of,
    whole_seconds,
)
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.measurement.parts import Phase, WarmUp
from support import making
from support.made_seconds import trial
from support.making import A, B

PLAN = making.plan()


def test_failed_trial_is_void_and_says_why():
    found = course.trial_failed(making.measurement(failure="the server died"), PLAN)
    assert found.level is Level.VOID
    assert found.evidence == "after 10.0 s of the window: the server died"
    assert found.trial == "0/mysql:5.7.22/oltp_read_write/threads=8/default"
    assert course.trial_failed(making.measurement(), PLAN) is None


@pytest.mark.parametrize(
    ("uptime_s", "level"),
    [
        (3, Level.VOID),
        (-500, Level.VOID),
        (8, None),
        (10, None),
        (17, None),
        (18, Level.DOUBTFUL),
        (math.nan, None),
    ],
)
def test_uptime_must_have_grown_by_the_window(uptime_s, level):
    made = making.measurement(window_s=10, warmup_s=2, status={"Uptime": uptime_s})
    found = course.server_restarted(made, PLAN)
    assert (found and found.level) == level
    if found:
        assert f"grew by {uptime_s} s over a window of 10.0 s" in found.evidence


def test_second_without_events_is_a_stall():
    made = making.measurement(rates=(1000,) * 4 + (0,) + (1000,) * 5)
    found = course.stall(made, PLAN)
    assert found.level is Level.DOUBTFUL
    assert "no event in 1 of 10 measured seconds, at 900.0 events/s" in found.evidence
    assert found.evidence.endswith("seconds since the load began: 6")


def silent(silence_s: float, tps: float = 1000.0):
    """A trial that answers in every second, and in its sixth breaks a silence."""
    made = making.measurement(tps=tps)
    sixth = made.intervals[5].model_copy(update={"silence_ns_max": int(silence_s * 1e9)})
    intervals = (*made.intervals[:5], sixth, *made.intervals[6:])
    return made.model_copy(update={"intervals": intervals})


def test_silence_across_two_seconds_is_a_stall():
    found = course.stall(silent(0.9), PLAN)
    assert found.level is Level.DOUBTFUL
    assert found.evidence == (
        "no statement was answered for up to 0.90 s while events ran, at 1000.0 events/s on "
        "average; seconds since the load began: 5"
    )


def test_short_silences_and_those_of_slow_loads_are_no_stalls():
    assert course.stall(silent(0.4), PLAN) is None
    assert course.stall(silent(0.9, tps=5.0), PLAN) is None


def test_slow_load_has_no_stalls():
    made = making.measurement(tps=0.5, rates=(1, 0) * 5, threads=1)
    assert course.stall(made, PLAN) is None
    assert course.stall(making.measurement(), PLAN) is None


def rates(seconds: int, change: float) -> tuple[float, ...]:
    """A line with a small saw upon it, so that it is not perfect."""
    return tuple(
        1000 * (1 + change * second / seconds) + 20 * (second % 3 - 1) for second in range(seconds)
    )


@pytest.mark.parametrize(("seconds", "batch_s"), [(60, 10), (30, 5), (120, 10)])
@pytest.mark.parametrize("change", [0.08, -0.08])
def test_drift_is_doubtful(seconds, batch_s, change):
    made = making.measurement(window_s=seconds, rates=rates(seconds, change), histograms=False)
    found = course.drift(made, PLAN)
    assert found.level is Level.DOUBTFUL
    assert f"means of {batch_s} s" in found.evidence
    assert f"{change:+.0%}"[0] in found.evidence.split("first ")[1]


@pytest.mark.parametrize(
    ("seconds", "change"), [(60, 0.0), (60, 0.01), (11, 0.5)], ids=["flat", "small", "short"]
)
def test_no_drift(seconds, change):
    made = making.measurement(window_s=seconds, rates=rates(seconds, change), histograms=False)
    assert course.drift(made, PLAN) is None


# The seconds of a trial and their rates.


def test_the_piece_at_the_windows_end_is_no_second():
    made = trial((100.0,) * 10)
    piece = made.intervals[-1].model_copy(update={"start_s": 12.0, "end_s": 12.2, "events": 30})
    made = making.changed(made, intervals=(*made.intervals, piece), window_s=10.2)
    assert len(whole_seconds(made)) == 10
    assert rates_of(made).tolist() == [100.0] * 10


def test_a_slow_clock_does_not_change_the_rate():
    made = trial((100.0,) * 10)
    late = made.intervals[5].model_copy(update={"end_s": made.intervals[5].start_s + 1.25})
    made = making.changed(made, intervals=(*made.intervals[:5], late, *made.intervals[6:]))
    assert rates_of(made)[3] == pytest.approx(80.0)


ONE_BLOCK = making.plan(blocks=1, window_s=120, warmup_s=10)
CPU = BY_NAME["server_cpu_us_per_query"]


def slow_start(slow_s: int, level: float = 100.0, slow: float = 0.6) -> tuple[float, ...]:
    """Events of each second of a window whose first seconds are slower, with some noise."""
    noise = np.random.default_rng(slow_s).normal(1, 0.01, 120)
    return tuple(
        float(level * (slow if second < slow_s else 1.0) * noise[second]) for second in range(120)
    )


def begun(system: str = A, slow_s: int = 0, block: int = 0, **same: object):
    return making.measurement(
        system,
        block,
        tps=60.0 if slow_s else 100.0,
        rates=slow_start(slow_s),
        window_s=120,
        warmup_s=10,
        spread=0.05,
        **same,
    )


def test_a_trial_that_is_slow_at_first_is_cut_where_it_became_steady():
    assert own_cut_s(begun(slow_s=20)) == pytest.approx(68, abs=8)
    assert own_cut_s(begun()) is None


@pytest.mark.parametrize(
    "kept",
    [
        {"failure": "it died"},
        {"until_steady": WarmUp(seconds=120, cut_s=20, why="steady")},
    ],
)
def test_failed_trials_and_those_that_waited_before_are_not_cut(kept):
    assert own_cut_s(making.changed(begun(slow_s=20), **kept)) is None


def test_short_windows_are_not_cut():
    assert own_cut_s(making.measurement(rates=(10.0,) * 30 + (100.0,) * 30, window_s=60)) is None


def test_both_arms_of_a_block_begin_at_the_later_cut_and_other_blocks_do_not():
    trials = [begun(A), begun(B, slow_s=20), begun(A, block=1), begun(B, block=1)]
    cuts = later_cuts(trials)
    assert [block for block, _ in cuts] == [0]
    one, other, *rest = audit(trials, ONE_BLOCK).sound
    assert one.condensed.window_s == other.condensed.window_s == pytest.approx(62, abs=8)
    assert {sound.condensed.window_s for sound in rest} == {120}
    assert other.value(PRIMARY) == pytest.approx(100, rel=0.01)
    assert other.measurement.value(PRIMARY) == pytest.approx(93.3, rel=0.02)


def test_cpu_per_query_stays_that_of_the_whole_window():
    slow = begun(B, slow_s=20)
    (sound,) = audit([slow], ONE_BLOCK).sound
    assert sound.value(CPU) == slow.value(CPU)


def test_what_is_cut_is_reported_with_the_system_it_is_about():
    (finding,) = later_cut([begun(A), begun(B, slow_s=20)], ONE_BLOCK)
    assert finding.level is Level.NOTE
    assert finding.check == "later-cut"
    assert re.match(
        f"block 1: {B} became steady after (6[0-9]|7[0-5]) s of load, which is (5[0-9]|6[0-5]) s "
        "into the window; the windows of all systems of the block count from there",
        finding.evidence,
    )
    assert finding.cell is not None


def test_the_verdict_is_about_the_steady_part():
    trials = [
        one
        for block in range(3)
        for one in (begun(A, block=block), begun(B, slow_s=20, block=block))
    ]
    plan = making.with_parts(ONE_BLOCK, design={"blocks": 3})
    judged = judge(trials, plan)
    assert judged.verdicts[0].estimate.ratio == pytest.approx(1.0, abs=0.01)
    assert judged.verdicts[0].reasons == ("few blocks: 3 (5 or more are good)",)


def test_cutting_keeps_every_second_and_only_changes_what_it_counts_as():
    whole = begun()
    late = from_second(whole, 50.0)
    assert len(late.intervals) == len(whole.intervals)
    assert sum(one.phase is Phase.WARMUP for one in late.intervals) == 50
    assert (late.warmup_s, late.window_s) == (50, 80)
    assert late.events == sum(one.events for one in whole.intervals[50:])
    assert from_second(whole, None) is whole
    assert from_second(whole, 1000.0) is whole
