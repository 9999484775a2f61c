"""Control trials are set apart, judged as systems are, and held against what is known."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Literal

import pytest

from dbdyno.judge.controls import split_controls
from dbdyno.judge.finding import Level
from dbdyno.judge.interval import interval
from dbdyno.judge.judgement import enough, judge
from dbdyno.language.catalogues import Language, catalogue
from dbdyno.language.words import translated
from dbdyno.measurement.measurement import RATES, Measurement
from dbdyno.report.tell.findings import place
from support import making
from support.made_controls import outcome
from support.making import A, B

PLAN = making.plan(controls=True)
NOISE = (1.0, 1.004, 0.996, 1.002, 0.998)
SLOWER = (0.77, 0.76, 0.78, 0.77, 0.765)


def control(
    kind: Literal["same", "planted"], ratios: tuple[float, ...], **same: object
) -> list[Measurement]:
    """The baseline once more in each block; where it stands still, latency stays as it is."""
    latency_ms = 8.0 if kind == "planted" else None
    return [
        making.measurement(
            A,
            block,
            tps=1000.0 * ratio,
            control=kind,
            latency_ms=latency_ms,
            sequence=100 + block,
            **same,  # type: ignore[arg-type]
        )
        for block, ratio in enumerate(ratios)
    ]


def whole(same: tuple[float, ...] = NOISE, planted: float = 0.98) -> list[Measurement]:
    slowed = tuple(planted * noise for noise in NOISE[::-1])
    return [*making.pairs(SLOWER), *control("same", same), *control("planted", slowed)]


def test_a_tie_and_a_slowdown_are_found_as_they_are_known_to_be() -> None:
    same, planted = judge(whole(), PLAN).controls
    assert (same.kind, same.word, same.held, same.blocks) == ("same", "equivalent", True, 5)
    assert (same.system, same.cell.threads, same.truth) == (A, 8, 1.0)
    assert (planted.kind, planted.word, planted.held) == ("planted", "worse", True)
    assert planted.ratio == pytest.approx(0.98, abs=0.0005)
    assert planted.truth == 0.98


def test_an_instrument_that_sees_differences_that_are_not_there_is_not_held() -> None:
    biased = tuple(0.95 * noise for noise in NOISE)
    same, _ = judge(whole(biased), PLAN).controls
    assert (same.word, same.held, same.different) == ("worse", False, True)
    _, blind = judge(whole(planted=1.0), PLAN).controls
    assert (blind.held, blind.seen_slower) == (False, False)


def test_each_block_s_control_is_held_against_the_baseline_in_its_own_cell() -> None:
    ladder = (1, 8, 8, 1, 8)  # the cell that came first in each block
    both = [
        *making.pairs(SLOWER, threads=8),
        *(making.measurement(A, block, threads=1, tps=300.0) for block in range(5)),
    ]
    same = [
        making.measurement(
            A,
            block,
            threads=threads,
            tps=(300.0 if threads == 1 else 1000.0) * noise,
            control="same",
        )
        for block, (threads, noise) in enumerate(zip(ladder, NOISE, strict=True))
    ]
    (found,) = judge([*both, *same], making.plan(threads=(1, 8), controls=True)).controls
    (one_cell,) = judge([*making.pairs(SLOWER), *control("same", NOISE)], PLAN).controls
    assert (found.cell, found.blocks) == (None, 5)
    assert (found.ratio, found.low) == pytest.approx((one_cell.ratio, one_cell.low))


def test_the_baseline_of_a_block_is_the_mean_of_its_three_trials() -> None:
    uneven = (1.06, 0.95, 1.03, 0.97, 1.01)
    without, with_them = judge(making.pairs(SLOWER), PLAN), judge(whole(uneven), PLAN)
    known = [
        fmean((0.0, math.log(same), math.log(noise)))  # what was planted is taken out
        for same, noise in zip(uneven, NOISE[::-1], strict=True)
    ]
    logs = [math.log(ratio) - below for ratio, below in zip(SLOWER, known, strict=True)]
    (verdict,) = with_them.verdicts
    found = interval(logs, PLAN.design)
    assert verdict.estimate.ratio == pytest.approx(math.exp(found.mean), rel=1e-4)
    assert verdict.estimate.low == pytest.approx(math.exp(found.mean - found.half), rel=1e-4)
    assert with_them.values == without.values
    assert [one for one in with_them.estimates if one.metric not in RATES] == [
        one for one in without.estimates if one.metric not in RATES
    ]
    assert with_them.findings == without.findings
    assert without.controls == ()


def test_what_a_difference_is_made_of_adds_up_with_controls_too() -> None:
    trials = [
        making.measurement(B, 0, tps=800.0, server_cpu_s=20.0),
        making.measurement(A, 0, tps=1000.0, server_cpu_s=20.0),
        making.measurement(A, 0, tps=1000.0 * 0.98, server_cpu_s=20.0 * 0.98, control="planted"),
    ]
    blocks = [
        m.model_copy(update={"trial": m.trial.model_copy(update={"block": block})})
        for m in trials
        for block in range(5)
    ]
    (found,) = judge(blocks, PLAN).accountings
    assert found.ratio == pytest.approx(0.8)
    assert (found.by_work, found.by_use) == pytest.approx((0.8, 1.0))


def test_a_cell_whose_windows_are_cut_is_estimated_without_controls() -> None:
    slow_start = (*(0.5 + 0.05 * second for second in range(10)), *(1.0,) * 20)

    def warming(system: str, block: int, **more: object) -> Measurement:
        rates = tuple(1000 * NOISE[block] * rate for rate in slow_start)
        return making.measurement(system, block, rates=rates, window_s=30, **more)  # type: ignore[arg-type]

    compared = [warming(system, block) for block in range(5) for system in (A, B)]
    controls = [warming(A, block, control="same") for block in range(5)]
    plan = making.plan(controls=True, window_s=30)
    without, with_them = judge(compared, plan), judge([*compared, *controls], plan)
    assert {f.check for f in without.findings} & {"later-cut", "not-steady"}
    assert with_them.estimates == without.estimates
    assert with_them.controls[0].blocks == 5


def test_a_void_control_is_left_out_and_said_under_its_own_name() -> None:
    slow = control("same", NOISE, cpu_share_max=0.9)
    judged = judge([*making.pairs(SLOWER), *slow[:2], *control("same", NOISE)[2:]], PLAN)
    (same,) = judged.controls
    assert same.blocks == 3
    voided = [f for f in judged.findings if f.check == "client-bound"]
    assert {f.system for f in voided} == {f"{A} (once more)"}
    assert {f.level for f in voided} == {Level.VOID}
    assert judged.verdicts[0].reasons == ()
    assert place(voided[0]) == f"{A} (once more), oltp_read_write, 8 threads, block 1"


def test_without_a_sound_pair_there_is_no_interval() -> None:
    failed = control("same", NOISE, failure="the server died")
    (same,) = judge([*making.pairs(SLOWER), *failed], PLAN).controls
    assert (same.ratio, same.low, same.held, same.blocks) == (None, None, None, 0)


def test_setting_apart_keeps_every_trial() -> None:
    compared, controls = split_controls(whole())
    assert compared == making.pairs(SLOWER)
    assert {m.trial.system for m in controls} == {f"{A} (once more)", f"{A} (slowed down)"}
    assert len({m.trial.key for m in (*compared, *controls)}) == len(whole())


def test_the_workspaces_other_runs_are_counted_with_this_one() -> None:
    earlier = [outcome(word="worse"), outcome(), outcome(0.97, 0.99, kind="planted", word="worse")]
    ledger = judge(whole(), PLAN, earlier).ledger
    assert (ledger.different.count, ledger.different.total) == (1, 3)
    assert (ledger.found.count, ledger.found.total) == (2, 2)


def test_an_instrument_out_of_calibration_throws_doubt_on_every_verdict() -> None:
    judged = judge(whole(), PLAN, [outcome(0.98, 0.99, word="worse")] * 9)
    assert "out-of-calibration" in {finding.check for finding in judged.findings}
    assert judged.verdicts[0].reasons[0].values == {"checks": {"out-of-calibration": 1}}
    assert judged.controls[0].held  # the run's own controls are judged by themselves


def test_a_run_ends_by_the_comparison_whatever_the_controls_say() -> None:
    plan = making.with_parts(PLAN, design={"stop": "decided", "blocks": 12})
    trials = [*making.pairs(SLOWER), *control("same", (0.95, 1.05, 1.0, 1.06, 0.94))]
    assert judge(trials, plan).controls[0].word == "undecided"
    assert enough(trials, plan)
    assert not enough([*making.pairs((0.8, 1.2, 1.0, 1.4, 0.7)), *control("same", NOISE)], plan)


def test_controls_have_the_interval_of_the_runs_design() -> None:
    plan = making.with_parts(PLAN, design={"stop": "decided", "blocks": 12})
    repeated, _ = judge(whole(), plan).controls
    fixed, _ = judge(whole(), PLAN).controls
    assert repeated.ratio == fixed.ratio
    assert repeated.high > 1 + 1.5 * (fixed.high - 1)


def test_doubts_about_a_control_name_its_arm_in_every_language() -> None:
    failed = control("same", (1.0,))[0].model_copy(update={"failure": "gone"})
    found = judge([*making.pairs(SLOWER), failed, *control("same", NOISE)[1:]], PLAN).findings
    (doubt,) = (one for one in found if one.check == "trial-failed")
    assert place(doubt) == f"{A} (once more), oltp_read_write, 8 threads, block 1"
    chinese = f"{A}（再跑一遍），oltp_read_write，8 线程，区组 1"
    assert translated(place(doubt), catalogue(Language.ZH)) == chinese
