"""Interval lines, to the blank."""

import re

import pytest

from dbdyno.sysbench.options.telling import Percentile
from dbdyno.sysbench.report import Stretch, interval_line, moment, queue_line

NEWS = {
    "at_s": 4.0,
    "connections": 8,
    "events": 50,
    "queries": 1000,
    "reads": 700,
    "writes": 200,
    "others": 100,
    "errors": 5,
    "reconnects": 0,
    "seconds": 2.0,
    "latency_ms": {"50": 1.0, "99": 12.345, "99.9": 20.0},
}
BEGIN = "[ 3s ] thds: 8 tps: 25.00 qps: 500.00 (r/w/o: 350.00/100.00/50.00) "
END = " err/s: 2.50 reconn/s: 0.00"


def line(*percents, interval_s=1, at_s=3.0):
    percentiles = [Percentile.of(percent) for percent in percents]
    return interval_line(Stretch.of_news(NEWS, at_s, percentiles), percentiles, interval_s)


def test_one_whole_percentile_is_sysbench_s_line():
    assert line(99.0) == f"{BEGIN}lat (ms,99%): 12.35{END}"


def test_several_percentiles_each_have_sysbench_s_words():
    several = line(50.0, 99.0, 99.9)
    assert several == (f"{BEGIN}lat (ms,50%): 1.00 lat (ms,99%): 12.35 lat (ms,99.9%): 20.00{END}")
    assert re.search(r"lat \(ms,99%\): ([\d.]+)", several)[1] == "12.35"


def test_without_percentile_the_line_keeps_its_shape():
    assert line() == f"{BEGIN}lat (ms,0%): 0.00{END}"


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
    assert moment(at_s, interval_s) == shown


def test_a_rate_has_a_line_of_its_queue():
    stretch = Stretch.of_news({**NEWS, "backlog": 7, "in_flight": 2}, 2.0, [])
    assert queue_line(stretch, 1) == "[ 2s ] queue length: 7, concurrency: 2"
