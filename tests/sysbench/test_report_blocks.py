"""What is said beyond sysbench's report; the texts are in tests/golden."""

import re
from pathlib import Path

import pytest

from dbdyno.sysbench import report
from dbdyno.sysbench.totals import Totals
from support.made_intervals import encoded, interval, recorded

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    ("arrivals", "unserved", "connections", "is_behind"),
    [
        (10_000, 0, 8, False),
        (10_000, 100, 8, False),
        (10_000, 101, 8, True),
        (100, 8, 8, False),
        (100, 9, 8, True),
    ],
)
def test_a_short_queue_at_the_end_is_no_overload(arrivals, unserved, connections, is_behind):
    totals = Totals.of([interval(0.0, 1.0, [1], "measured", arrivals=arrivals)])
    assert report.is_behind(totals, unserved, connections) == is_behind


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
