"""The report's arithmetic: a run is the sum of its intervals. Its layout is in test_work."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Histogram
from dbdyno.sysbench.report import Totals, final_report, interval_line

MS = 1_000_000
NEWS = {
    "at_s": 3.0,
    "connections": 8,
    "events": 50,
    "queries": 1000,
    "reads": 700,
    "writes": 200,
    "others": 100,
    "errors": 5,
    "reconnects": 0,
    "seconds": 2.0,
    "latency_ms": {"99": 12.345},
}
FAIR = dict.fromkeys(("events_mean", "events_stddev", "seconds_mean", "seconds_stddev"), 0.0)


def interval(number, latencies):
    counts = Histogram()
    for latency in latencies:
        counts.record(latency)
    return {
        "start_s": float(number),
        "end_s": number + 1.0,
        "events": len(latencies),
        "reads": 2 * len(latencies),
        "writes": 1,
        "others": 0,
        "errors": {"1213": 1, "1205": 2},
        "reconnects": 0,
        "latency_ns_sum": sum(latencies),
        "latency_ns_min": min(latencies, default=0),
        "latency_ns_max": max(latencies, default=0),
        "histograms": {"event": b64encode(counts.encode()).decode()} if latencies else {},
    }


def test_rates_are_of_the_interval_s_own_length():
    assert interval_line(NEWS, 99) == (
        "[ 3s ] thds: 8 tps: 25.00 qps: 500.00 (r/w/o: 350.00/100.00/50.00) "
        "lat (ms,99%): 12.35 err/s: 2.50 reconn/s: 0.00"
    )


def test_without_percentile_the_line_keeps_its_shape():
    assert " lat (ms,0%): 0.00 err/s: " in interval_line({**NEWS, "latency_ms": {}}, 0)


@given(st.lists(st.lists(st.integers(1, 10**10), max_size=20), min_size=1, max_size=6))
def test_the_totals_are_those_of_one_long_interval(parts):
    totals = Totals.of([interval(number, part) for number, part in enumerate(parts)])
    everything = [latency for part in parts for latency in part]
    whole = Totals.of([interval(0, everything)])
    assert totals.events == whole.events == totals.latency.count()
    assert totals.latency_ns_sum == sum(everything)
    assert totals.latency_ns_min == whole.latency_ns_min
    assert totals.latency_ns_max == whole.latency_ns_max
    assert totals.latency.quantile(0.95) == whole.latency.quantile(0.95)
    assert totals.seconds == len(parts)
    assert totals.errors == 3 * len(parts)


def test_a_run_without_events_or_time_has_a_report():
    for intervals in ([], [interval(0, [])]):
        report = final_report({"intervals": intervals, "fairness": FAIR}, 95)
        assert "    transactions:                        0      (0.00 per sec.)" in report
        assert "         95th percentile:                        0.00" in report


def test_every_percentile_is_right_aligned_as_in_sysbench():
    record = {"intervals": [interval(0, [5 * MS])], "fairness": FAIR}
    for percentile, label in ((1, "  1th"), (99, " 99th"), (100, "100th")):
        assert f"\n        {label} percentile:" in final_report(record, percentile)
