"""A run is the sum of its intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Histogram
from dbdyno.sysbench.options.output import Percentile
from dbdyno.sysbench.totals import Totals, mean_ns
from support import sysbench as made
from support.sysbench import encoded

MS = 1_000_000


def interval(number, latencies, **more):
    counts = Histogram()
    for latency in latencies:
        counts.record(latency)
    return made.interval(number, number + 1.0, [], "measured") | {
        "events": len(latencies),
        "errors": {"1213": 1, "1205": 2},
        "latency_ns_sum": sum(latencies),
        "latency_ns_min": min(latencies, default=0),
        "latency_ns_max": max(latencies, default=0),
        "histograms": {"event": encoded(counts)} if latencies else {},
        **more,
    }


@given(st.lists(st.lists(st.integers(1, 10**10), max_size=20), min_size=1, max_size=6))
def test_the_totals_are_those_of_one_long_interval(parts):
    totals = Totals.of([interval(number, part) for number, part in enumerate(parts)])
    everything = [latency for part in parts for latency in part]
    whole = Totals.of([interval(0, everything)])
    assert totals.events == whole.events
    assert totals.latency_ns_sum == sum(everything)
    assert totals.latency_ns_min == whole.latency_ns_min
    assert totals.latency_ns_max == whole.latency_ns_max
    for percent in (50.0, 99.9):
        percentile = Percentile.of(percent)
        assert totals.latency_ms(percentile) == whole.latency_ms(percentile)
    assert totals.seconds == len(parts)
    assert totals.errors == {"1205": 2 * len(parts), "1213": len(parts)}


@given(
    st.lists(st.integers(1, 4 * 3600 * 10**9), min_size=1, max_size=20),
    st.floats(0.0001, 100.0),
)
def test_a_percentile_is_between_the_least_and_the_greatest(latencies, percent):
    totals = Totals.of([interval(0, latencies)])
    latency_ms = totals.latency_ms(Percentile.of(percent))
    assert min(latencies) / MS <= latency_ms <= max(latencies) / MS


def test_a_warm_up_counts_for_nothing():
    warmup = interval(0, [MS] * 5, phase="warmup", silence_ns_max=9, arrivals=7)
    totals = Totals.of([warmup, interval(1, [2 * MS], arrivals=1)])
    assert (totals.events, totals.latency_ns_min, totals.seconds) == (1, 2 * MS, 1.0)
    assert (totals.silence_ns_max, totals.arrivals) == (0, 1)
    assert totals.latency_ms(Percentile.of(1.0)) == 2.0


def test_a_queue_is_what_it_is_at_the_end_and_a_silence_the_longest():
    totals = Totals.of(
        [
            interval(0, [], backlog=9, in_flight=4, silence_ns_max=5),
            interval(1, [], backlog=3, in_flight=2, silence_ns_max=1),
        ]
    )
    assert (totals.backlog, totals.in_flight, totals.silence_ns_max) == (3, 2, 5)


def test_nothing_has_totals_too():
    totals = Totals.of([])
    assert (totals.events, totals.seconds, totals.per_s(3)) == (0, 0, 0)
    assert (totals.latency_ns_mean(), totals.latency_ms(Percentile.of(95.0))) == (0, 0.0)


def test_statements_are_what_is_neither_event_nor_lag():
    kinds = dict.fromkeys(("event", "event_service", "timer_lag", "begin", "inserts"))
    blob = encoded(Histogram())
    totals = Totals.of([{**interval(0, []), "histograms": dict.fromkeys(kinds, blob)}])
    assert [*totals.statements()] == ["begin", "inserts"]


def test_a_histogram_that_nobody_asks_for_is_not_decoded():
    one = interval(0, [MS])
    one["histograms"]["begin"] = "nohistograms"
    totals = Totals.of([one])
    assert totals.latency_ms(Percentile.of(95.0)) == 1.0
    with pytest.raises(ValueError, match="not an HDR V2 histogram"):
        totals.statements()


def test_the_mean_of_a_histogram_is_that_of_its_size_classes():
    histogram = Histogram()
    assert mean_ns(histogram) == 0.0
    for latency_ns in (1_000, 2_000, 6_000_000):
        histogram.record(latency_ns)
    assert mean_ns(histogram) == pytest.approx(6_003_000 / 3, rel=1e-3)
