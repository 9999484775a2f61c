"""Did the trial run its course? One that did, and one for each way of not doing so."""

from __future__ import annotations

import math

import pytest

from dbdyno.judge.checks import course
from dbdyno.judge.checks.course import rates_of, whole_seconds
from dbdyno.judge.finding import Level
from support import making
from support.made_seconds import trial

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
