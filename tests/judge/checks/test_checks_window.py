"""Both systems of a block count from the later of their cuts, and a person is told."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks.course import from_second, later_cut, later_cuts, own_cut_s
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.measurement.parts import Phase, WarmUp
from support import making
from support.making import A, B

PLAN = making.plan(blocks=1, window_s=120, warmup_s=10)
CPU = BY_NAME["server_cpu_us_per_query"]


def rates(slow_s: int, level: float = 100.0, slow: float = 0.6) -> tuple[float, ...]:
    """Events of each second of a window whose first seconds are slower, with some noise."""
    noise = np.random.default_rng(slow_s).normal(1, 0.01, 120)
    return tuple(
        float(level * (slow if second < slow_s else 1.0) * noise[second]) for second in range(120)
    )


def trial(system: str = A, slow_s: int = 0, block: int = 0, **same: object):
    return making.measurement(
        system,
        block,
        tps=60.0 if slow_s else 100.0,
        rates=rates(slow_s),
        window_s=120,
        warmup_s=10,
        spread=0.05,
        **same,
    )


def test_a_trial_that_is_slow_at_first_is_cut_where_it_became_steady():
    assert own_cut_s(trial(slow_s=20)) == pytest.approx(68, abs=8)
    assert own_cut_s(trial()) is None


@pytest.mark.parametrize(
    "kept",
    [
        {"failure": "it died"},
        {"until_steady": WarmUp(seconds=120, cut_s=20, why="steady")},
    ],
)
def test_failed_trials_and_those_that_waited_before_are_not_cut(kept):
    assert own_cut_s(making.changed(trial(slow_s=20), **kept)) is None


def test_short_windows_are_not_cut():
    assert own_cut_s(making.measurement(rates=(10.0,) * 30 + (100.0,) * 30, window_s=60)) is None


def test_both_arms_of_a_block_begin_at_the_later_cut_and_other_blocks_do_not():
    trials = [trial(A), trial(B, slow_s=20), trial(A, block=1), trial(B, block=1)]
    cuts = later_cuts(trials)
    assert [block for block, _ in cuts] == [0]
    one, other, *rest = audit(trials, PLAN).sound
    assert one.condensed.window_s == other.condensed.window_s == pytest.approx(62, abs=8)
    assert {sound.condensed.window_s for sound in rest} == {120}
    assert other.value(PRIMARY) == pytest.approx(100, rel=0.01)
    assert other.measurement.value(PRIMARY) == pytest.approx(93.3, rel=0.02)


def test_cpu_per_query_stays_that_of_the_whole_window():
    slow = trial(B, slow_s=20)
    (sound,) = audit([slow], PLAN).sound
    assert sound.value(CPU) == slow.value(CPU)


def test_what_is_cut_is_told_with_the_system_it_is_about():
    (finding,) = later_cut([trial(A), trial(B, slow_s=20)], PLAN)
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
        for one in (trial(A, block=block), trial(B, slow_s=20, block=block))
    ]
    plan = PLAN.model_copy(update={"design": PLAN.design.model_copy(update={"blocks": 3})})
    judged = judge(trials, plan)
    assert judged.verdicts[0].estimate.ratio == pytest.approx(1.0, abs=0.01)
    assert judged.verdicts[0].reasons == ("few blocks: 3 (5 or more are good)",)


def test_cutting_keeps_every_second_and_only_changes_what_it_counts_as():
    whole = trial()
    late = from_second(whole, 50.0)
    assert len(late.intervals) == len(whole.intervals)
    assert sum(one.phase is Phase.WARMUP for one in late.intervals) == 50
    assert (late.warmup_s, late.window_s) == (50, 80)
    assert late.events == sum(one.events for one in whole.intervals[50:])
    assert from_second(whole, None) is whole
    assert from_second(whole, 1000.0) is whole
