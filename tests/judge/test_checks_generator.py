"""Was the generator what was measured? Each limit from both sides."""

from __future__ import annotations

import pytest
from tests import making

from dbdyno._engine import Histogram
from dbdyno.judge import checks_generator
from dbdyno.judge.finding import Level
from dbdyno.measurement import EVENT, Evidence

PLAN = making.plan()


def late(lag_ms: float, latency_ms: float = 10.0):
    """A trial whose generator was so late in two of a hundred events."""
    made = making.measurement(latency_ms=latency_ms, spread=0.0)
    lag = Histogram()
    for number in range(100):
        lag.record(int((lag_ms if number < 2 else 0.01) * 1e6))
    first = made.intervals[2]
    blobs = {EVENT: first.histograms[EVENT], "timer_lag": lag.encode()}
    first = first.model_copy(update={"histograms": blobs})
    return making.changed(made, intervals=(*made.intervals[:2], first, *made.intervals[3:]))


@pytest.mark.parametrize(
    ("lag_ms", "latency_ms", "found"),
    [(0.19, 1.0, False), (0.22, 1.0, True), (0.45, 10.0, False), (0.55, 10.0, True)],
)
def test_lateness_is_held_against_a_fifth_of_a_millisecond_and_the_median(
    lag_ms, latency_ms, found
):
    finding = checks_generator.timer_late(late(lag_ms, latency_ms), PLAN)
    assert (finding is not None) == found
    if finding:
        assert finding.level is Level.DOUBTFUL
        assert f"p99 {lag_ms:.2f} ms" in finding.evidence


def test_a_closed_loop_has_no_timer_that_could_be_late():
    assert checks_generator.timer_late(making.measurement(), PLAN) is None


@pytest.mark.parametrize(("ceiling", "found"), [(2000.1, False), (1900.0, True), (None, False)])
def test_half_of_the_ceiling_is_near(ceiling, found):
    made = making.changed(making.measurement(), evidence=Evidence(ceiling_per_s=ceiling))
    finding = checks_generator.near_ceiling(made, PLAN)
    assert (finding is not None) == found
    if finding:
        assert finding.evidence.startswith("1000 events/s are 53% of the 1900")


def test_an_open_loop_is_not_held_against_the_ceiling():
    made = making.changed(making.measurement(), evidence=Evidence(ceiling_per_s=100.0))
    cell = made.trial.cell.model_copy(update={"rate_per_s": 1000.0})
    timed = making.changed(made, trial=made.trial.model_copy(update={"cell": cell}))
    assert checks_generator.near_ceiling(timed, PLAN) is None
