"""Did the trial run its course, and from where does its window count?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import course, standstill
from dbdyno.judge.checks.course import not_yet_steady, rates_of, whole_seconds, without_head
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.measurement.parts import Phase
from support import making
from support.made_seconds import trial
from support.making import A, B

PLAN = making.plan()
DOUBTFUL = Level.DOUBTFUL


def test_failed_trial_is_void_and_says_why():
    found = course.trial_failed(making.measurement(failure="the server died"), PLAN)
    assert found.level is Level.VOID
    assert found.values == {"window_s": 10, "failure": "the server died"}
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
        assert (found.values["uptime_s"], found.values["window_s"]) == (uptime_s, 10)


@pytest.mark.parametrize(
    ("end_s", "level"), [(None, None), (0.0, None), (900.0, None), (4.0, Level.VOID)]
)
def test_an_uptime_that_does_not_move_is_a_restart_only_if_it_is_young(end_s, level):
    made = making.measurement(window_s=10, warmup_s=2, status={"Uptime": 0.0})
    server = made.server.model_copy(update={"uptime_s": end_s})
    found = course.server_restarted(making.changed(made, server=server), PLAN)
    assert (found and found.level) == level


def test_second_without_events_is_a_stall():
    made = making.measurement(rates=(1000,) * 4 + (0,) + (1000,) * 5)
    found = course.stall(made, PLAN)
    assert (found.level, found.values["case"], found.values["at_s"]) == (DOUBTFUL, "empty", [6])
    assert [found.values[name] for name in ("empty", "seconds", "rate_per_s")] == [1, 10, 900]


def test_connections_that_rest_leave_seconds_without_events_and_no_stall():
    resting = PLAN.workloads[0].model_copy(update={"script": "function thread_run() end"})
    plan = PLAN.model_copy(update={"workloads": (resting,)})
    made = making.measurement(rates=(1000,) + (0,) * 8 + (1000,))
    rested = making.changed(
        made, intervals=tuple(one.model_copy(update={"in_flight": 8}) for one in made.intervals)
    )
    assert standstill.stands_still(rested, PLAN).level is Level.DOUBTFUL
    assert course.stall(making.measurement(rates=(1000, 0) * 5), PLAN) is not None
    assert standstill.stands_still(rested, plan) is None
    assert course.stall(rested, plan) is None
    last = rested.intervals[-1].model_copy(update={"silence_ns_max": 8_000_000_000})
    waited = making.changed(rested, intervals=(*rested.intervals[:-1], last))
    assert standstill.stands_still(waited, plan).level is Level.DOUBTFUL


def silent(silence_s: float, tps: float = 1000.0):
    """A trial that answers in every second, and in its sixth breaks a silence."""
    made = making.measurement(tps=tps)
    sixth = made.intervals[5].model_copy(update={"silence_ns_max": int(silence_s * 1e9)})
    intervals = (*made.intervals[:5], sixth, *made.intervals[6:])
    return made.model_copy(update={"intervals": intervals})


def test_silence_across_two_seconds_is_a_stall():
    found = course.stall(silent(0.9), PLAN)
    assert (found.level, found.values["case"], found.values["at_s"]) == (DOUBTFUL, "silent", [5])
    assert (found.values["longest_s"], found.values["rate_per_s"]) == (0.9, 1000)


@pytest.mark.parametrize(
    "made",
    [
        silent(0.4),
        silent(0.9, tps=5.0),
        making.measurement(tps=0.5, rates=(1, 0) * 5, threads=1),
        making.measurement(),
    ],
)
def test_short_silences_and_those_of_slow_loads_are_no_stalls(made):
    assert course.stall(made, PLAN) is None


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
WARMUP_S = 4
"""Of the trials below; the load of a made one is even until its window begins."""


def approach(constant_s: float | None, block: int, system: str, window_s: int = 60):
    """Events of each second of a window: 40 % below its rate at first if it has a time constant."""
    noise = np.random.default_rng([block, system == A]).normal(1, 0.02, window_s)
    second = np.arange(window_s)
    shape = 1 - 0.4 * np.exp(-second / constant_s) if constant_s else np.ones(window_s)
    return tuple(float(one) for one in 1000 * noise * shape)


def run(
    constants: tuple[float | None, float | None], blocks: int = 5, window_s: int = 60, **same: Any
) -> list[Measurement]:
    """Both systems of a run without a difference, once they are warm."""
    return [
        making.measurement(
            system,
            block,
            rates=approach(constant_s, block, system, window_s),
            window_s=window_s,
            warmup_s=WARMUP_S if constant_s is None else 0,
            spread=0.05,
            **same,
        )
        for block in range(blocks)
        for system, constant_s in zip((A, B), constants, strict=True)
    ]


def test_even_windows_count_whole() -> None:
    trials = run((None, None))
    assert not_yet_steady(trials) == {}
    assert all(one.condensed.window_s == 60 for one in audit(trials, ONE_BLOCK).sound)


def test_a_warm_up_of_one_system_is_left_out_of_all_windows_alike() -> None:
    audited = audit(run((None, 6)), ONE_BLOCK)
    (window_s,) = {one.condensed.window_s for one in audited.sound}
    assert window_s == pytest.approx(36, abs=4)
    (finding,) = (one for one in audited.findings if one.check == "not-steady")
    assert (finding.level, finding.values["left"]) == (Level.NOTE, {})
    assert finding.values["from_s"] == finding.values["cut_s"] == 60 - window_s


def test_a_warm_up_that_outlasts_the_window_widens_the_interval_until_nothing_is_decided() -> None:
    trials = run((3, 10), blocks=10, window_s=10)
    judged = judge(trials, making.with_parts(ONE_BLOCK, design={"blocks": 10}))
    (verdict,) = judged.verdicts
    assert verdict.estimate.high < 0.95, "by its windows alone B would be worse"
    assert verdict.word is Word.UNDECIDED
    assert verdict.low < 1 < verdict.high
    assert verdict.blocks_needed is None
    assert verdict.steady_after_s == pytest.approx(44, rel=0.3)
    assert {one.kind for one in verdict.reasons} >= {"warm-up", "doubtful"}
    (finding,) = (one for one in judged.findings if one.check == "not-steady")
    assert (finding.level, finding.values["cut_s"]) == (DOUBTFUL, 5)
    (summary,) = judged.summaries
    assert summary.word is Word.UNDECIDED


def test_a_warm_up_that_is_known_well_moves_the_interval_as_much_as_a_doubtful_one() -> None:
    def rates(block: int, system: str) -> tuple[float, ...]:
        noise = np.random.default_rng([block, system == A]).normal(1, 0.002, 60)
        left = 0.08 * np.exp(-np.arange(60) / 40) if system == B else 0
        return tuple(float(one) for one in 10_000 * noise * (1 - left))

    trials = [
        making.measurement(
            system, block, rates=rates(block, system), window_s=60, warmup_s=0, spread=0.05
        )
        for block in range(6)
        for system in (A, B)
    ]
    judged = judge(trials, making.with_parts(ONE_BLOCK, design={"blocks": 6}))
    (verdict,) = judged.verdicts
    assert verdict.estimate.high < 0.98, "by its windows alone B would be worse"
    assert verdict.word is not Word.WORSE
    assert verdict.high > 1
    assert verdict.steady_after_s is not None
    (finding,) = (one for one in judged.findings if one.check == "not-steady")
    ((system, (low, high)),) = finding.values["left"].items()
    assert (system, low) == (B, pytest.approx(0.025, abs=0.005))
    assert low < high < 0.1


def test_a_difference_beyond_what_warm_up_leaves_is_still_found() -> None:
    trials = [
        one if one.trial.system == A else slowed(one, 0.5)
        for one in run((3, 10), blocks=5, window_s=20)
    ]
    (verdict,) = judge(trials, ONE_BLOCK).verdicts
    assert (verdict.word, verdict.material) == (Word.WORSE, True)
    assert verdict.high > verdict.estimate.high


def slowed(measurement: Measurement, share: float) -> Measurement:
    rates = tuple(share * one.events for one in measurement.measured)
    trial = measurement.trial
    return making.measurement(
        trial.system, trial.block, rates=rates, window_s=len(rates), warmup_s=0, spread=0.05
    )


def test_failed_trials_are_not_looked_at_and_short_windows_are() -> None:
    assert len(not_yet_steady(run((3, 10), window_s=6))) == 1
    failed = [making.changed(one, failure="it died") for one in run((3, 10), window_s=6)]
    assert audit(failed, ONE_BLOCK).sound == ()


def test_at_a_rate_no_rate_is_approached() -> None:
    trials = run((3, 10), window_s=10)
    assert not_yet_steady(trials) != {}
    assert not_yet_steady([making.with_trial(one, rate_per_s=1000.0) for one in trials]) == {}


def test_cpu_per_query_stays_that_of_the_whole_window() -> None:
    sound = audit(run((None, 6)), ONE_BLOCK).sound
    assert all(one.value(CPU) == one.measurement.value(CPU) for one in sound)
    assert any(one.value(PRIMARY) != one.measurement.value(PRIMARY) for one in sound)


def test_leaving_a_head_out_keeps_every_second_and_only_changes_what_it_counts_as() -> None:
    whole = run((None, None))[0]
    late = without_head(whole, 46)
    assert len(late.intervals) == len(whole.intervals)
    assert sum(one.phase is Phase.WARMUP for one in late.intervals) == 50
    assert (late.warmup_s, late.window_s) == (50, 14)
    assert late.events == sum(one.events for one in whole.intervals[50:])
    assert without_head(whole, 0) is whole
