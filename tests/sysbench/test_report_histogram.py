"""sysbench's histogram from our counts, on sysbench's grid."""

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Histogram
from dbdyno.sysbench.report import histogram


def shown(*latencies_ns):
    counts = Histogram()
    for latency_ns in latencies_ns:
        counts.record(latency_ns)
    return histogram(counts).splitlines()


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


def test_what_is_shorter_than_the_grid_is_in_its_first_row():
    assert shown(1, 999, 1_000)[2:] == [f"       0.001 |{'*' * 40} 3", " "]


def test_the_grid_goes_on_above_100_s():
    (row,) = shown(400_000 * 1_000_000)[2:-1]
    assert 396_000 < float(row.split("|")[0]) < 404_000


@given(st.lists(st.integers(1_000, 10**13), min_size=1, max_size=60))
def test_every_count_is_in_one_row_near_its_value(latencies_ns):
    rows = [re.fullmatch(r" *([\d.]+) \|(\**) *(\d+)", row) for row in shown(*latencies_ns)[2:-1]]
    assert sum(int(row[3]) for row in rows) == len(latencies_ns)
    assert max(len(row[2]) for row in rows) == 40
    for latency_ns in latencies_ns:
        latency_ms = min(latency_ns, 3600 * 10**9) / 1e6
        assert min(abs(math.log(float(row[1]) / latency_ms)) for row in rows) < 0.4


def test_an_empty_histogram_has_no_row():
    assert len(shown()) == 3
