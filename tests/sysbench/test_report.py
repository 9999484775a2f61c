"""The report's shape at its edges; whole texts are in test_commands and test_against_sysbench."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Histogram
from dbdyno.sysbench import report
from dbdyno.sysbench.options.output import Percentile
from dbdyno.sysbench.request import General
from dbdyno.sysbench.totals import Totals
from support.sysbench import GOLDEN, encoded, interval, options, recorded

FAIR = dict.fromkeys(("events_mean", "events_stddev", "seconds_mean", "seconds_stddev"), 0.0)


def of(**typed):
    return General.of(options(**typed))


@pytest.mark.parametrize(
    ("percentile", "row"),
    [
        ("1", "          1th percentile:                        0.00"),
        ("99", "         99th percentile:                        0.00"),
        ("100", "        100th percentile:                        0.00"),
        ("99.9", "        99.9th percentile:                       0.00"),
        ("99.99", "        99.99th percentile:                      0.00"),
    ],
)
def test_every_percentile_ends_in_the_column_of_the_others(percentile, row):
    text = report.report(Totals.of([]), of(percentile=percentile), report.Ending(0.0, FAIR))
    assert "    transactions:                        0      (0.00 per sec.)" in text
    assert f"\n{row}\n" in text
    assert len(row) == len("         max:                                    0.00")


def test_several_percentiles_have_a_row_each_in_order():
    text = report.report(Totals.of([]), of(percentile="99.9,50,95"), report.Ending(0.0, FAIR))
    rows = [line.split()[0] for line in text.splitlines() if "percentile" in line]
    assert rows == ["50th", "95th", "99.9th"]


def test_the_header_names_what_was_asked_for():
    general = of(
        threads="4",
        warmup_time="3",
        rate="50",
        think_time="5-10",
        report_interval="0.5",
        report_checkpoints="20,10",
        rand_seed="7",
        forced_shutdown=None,
    )
    assert report.header(general) == (
        "Running the test with following options:\n"
        "Number of threads: 4\n"
        "Warmup time: 3s\n"
        "Target transaction rate: 50/sec\n"
        "Think time: 5-10 ms\n"
        "Report intermediate results every 0.5 second(s)\n"
        "Report checkpoint(s) at 10, 20 seconds\n"
        "Initializing random number generator from seed (7).\n"
        "\n"
        "Forcing shutdown in 13.5 seconds\n"
    )
    assert "\nThink time: 2.5 ms\n" in report.header(of(think_time="2.5"))


# Interval lines, to the blank.


LIVE = {
    "at_s": 4.0,
    "connections": 8,
    "events": 50,
    "queries": 1000,
    "reads": 700,
    "writes": 200,
    "others": 100,
    "errors": 5,
    "reconnects": 0,
    "backlog": 0,
    "in_flight": 0,
    "seconds": 2.0,
    "latency_ms": {"50": 1.0, "99": 12.345, "99.9": 20.0},
}
BEGIN = "[ 3s ] thds: 8 tps: 25.00 qps: 500.00 (r/w/o: 350.00/100.00/50.00) "
END = " err/s: 2.50 reconn/s: 0.00"


@pytest.mark.parametrize(
    ("percents", "joined", "shown"),
    [
        ((99.0,), (), "lat (ms,99%): 12.35"),
        ((50.0, 99.0, 99.9), (), "lat (ms,50%): 1.00 lat (ms,99%): 12.35 lat (ms,99.9%): 20.00"),
        ((99.0, 99.9), (99.0, 99.0, 99.9), "lat (ms,99%,99%,99.9%): 12.35/12.35/20.00"),
        ((), (), "lat (ms,0%): 0.00"),
    ],
)
def test_percentiles_have_sysbench_s_words_or_stand_together_as_in_a_fork(percents, joined, shown):
    percentiles, together = ([Percentile.of(one) for one in ones] for ones in (percents, joined))
    summary = report.IntervalSummary.of_live(LIVE, 3.0, percentiles)
    assert report.interval_line(summary, percentiles, 1, together) == f"{BEGIN}{shown}{END}"


@pytest.mark.parametrize(
    ("interval_s", "at_s", "shown"),
    [
        (1, 3.0, "[ 3s ]"),
        (1.0, 3.0, "[ 3s ]"),
        (60, 120.0, "[ 120s ]"),
        (0.1, 0.30000000000000004, "[ 0.3s ]"),
        (0.5, 1.0, "[ 1.0s ]"),
        (0.25, 0.5, "[ 0.50s ]"),
        (1.5, 3.0, "[ 3.0s ]"),
        (0.01, 12.34, "[ 12.34s ]"),
    ],
)
def test_a_moment_has_the_decimals_of_its_interval(interval_s, at_s, shown):
    assert report.time_label(at_s, interval_s) == shown


# sysbench's histogram from our counts, on sysbench's grid.


def shown(*latencies_ns):
    counts = Histogram()
    for latency_ns in latencies_ns:
        counts.record(latency_ns)
    return report.histogram(counts).splitlines()


def test_rows_are_as_sysbench_prints_them():
    # sysbench 1.0.20 itself printed 1.857, and 1213.57 for events of 1203.87 to 1204.93 ms.
    lines = shown(*[1_857_000] * 4, 1_204_930_000)
    assert lines == [
        "Latency histogram (values are in milliseconds)",
        "       value  ------------- distribution ------------- count",
        "       1.857 |**************************************** 4",
        "    1213.575 |**********                               1",
        " ",
    ]


def test_the_first_row_has_all_that_is_shorter_and_the_grid_goes_on_above_100_s():
    assert shown(1, 999, 1_000)[2:] == [f"       0.001 |{'*' * 40} 3", " "]
    (row,) = shown(400_000 * 1_000_000)[2:-1]
    assert 396_000 < float(row.split("|")[0]) < 404_000


@given(st.lists(st.integers(1_000, 10**13), max_size=60))
def test_every_count_is_in_one_row_near_its_value(latencies_ns):
    rows = [re.fullmatch(r" *([\d.]+) \|(\**) *(\d+)", row) for row in shown(*latencies_ns)[2:-1]]
    assert sum(int(row[3]) for row in rows) == len(latencies_ns)
    assert max((len(row[2]) for row in rows), default=40) == 40
    for latency_ns in latencies_ns:
        latency_ms = min(latency_ns, 3600 * 10**9) / 1e6
        off = min(abs(math.log(float(row[1]) / latency_ms)) for row in rows)
        assert off < 0.406  # 1.5 us is printed as 0.001 ms


# Blocks that sysbench does not have.


@pytest.mark.parametrize(
    ("arrivals", "unserved", "connections", "behind"),
    [
        (10_000, 0, 8, False),
        (10_000, 100, 8, False),
        (10_000, 101, 8, True),
        (100, 8, 8, False),
        (100, 9, 8, True),
    ],
)
def test_a_short_queue_at_the_end_is_no_overload(arrivals, unserved, connections, behind):
    totals = Totals.of([interval(0.0, 1.0, [1], "measured", arrivals=arrivals)])
    assert report.is_behind(totals, unserved, connections) == behind


def test_only_a_silence_of_more_than_a_second_is_a_stall():
    intervals = [
        interval(number, number + 1.0, [1], "measured", silence_ns_max=silence_ns)
        for number, silence_ns in enumerate((10, 1_000_000_000, 999_999_999))
    ]
    assert report.stall(intervals, 0.0) is None
    intervals[2]["silence_ns_max"] = 2_345_000_000
    assert "for 2.35 s, until second 2 " in (report.stall(intervals, 1.0) or "")


def test_no_error_is_said_so():
    totals = Totals.of([interval(0.0, 1.0, [1], "drain", restarts=0)])
    assert "\nErrors by code                 count       per s\n    none\n" in report.detail(
        totals, {}, []
    )


def test_no_line_can_be_taken_for_one_of_sysbench_s():
    one = interval(0.0, 1.0, [1], "measured", arrivals=100)
    one["histograms"]["begin"] = encoded(recorded([1]))
    totals = Totals.of([one])
    ours = [
        report.detail(totals, {"unserved": 99}, []),
        report.backlog(totals, {"unserved": 99}, 100),
        report.timer_lag(recorded([1])),
        *report.facts({}),
    ]
    theirs = re.findall(r"^ *(\S[^:]*):", (GOLDEN / "sysbench_run.txt").read_text(), re.MULTILINE)
    assert "95th percentile" in theirs
    for text in ours:
        assert not [label for label in theirs if f" {label}:" in f" {text}"]
