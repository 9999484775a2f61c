"""HdrHistogram's interval log, read by HdrHistogram's own tools for Python."""

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from dbdyno.sysbench.formats import log
from support.made_intervals import MS, encoded, interval, recorded


def read(text, tmp_path):
    file = tmp_path / "run.hlog"
    file.write_text(text)
    reader = HistogramLogReader(str(file), HdrHistogram(1, 3_600_000_000_000, 3))
    found = []
    while (one := reader.get_next_interval_histogram()) is not None:
        found.append(one)
    reader.close()
    return found


def test_its_own_tools_read_it(tmp_path):
    text = log([interval(3.0, 4.0, [1, 2, 3, 40], "measured")], 1_700_000_000.5, 3.0)
    assert text.splitlines()[1:4] == [
        "#[Histogram log format version 1.3]",
        "#[StartTime: 1700000003.500 (seconds since epoch), 2023-11-14T22:13:23Z]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    (found,) = read(text, tmp_path)
    assert found.get_total_count() == 4
    assert found.get_value_at_percentile(100) == pytest.approx(40 * MS, rel=1e-3)
    assert found.get_start_time_stamp() == 1_700_000_003_500


def test_every_other_histogram_has_its_name_as_tag(tmp_path):
    one = interval(0.0, 1.5, [1], "measured")
    one["histograms"] = {"begin": encoded(recorded([7])), **one["histograms"]}
    text = log([one], 0.0, 0.0)
    lines = text.splitlines()[4:]
    assert lines[0].startswith("0.000,1.500,1.000,HIST")
    assert lines[1].startswith("Tag=begin,0.000,1.500,7.0")
    assert [found.get_tag() for found in read(text, tmp_path)] == [None, "begin"]


def test_a_run_writes_it_without_its_warm_up(sysbench, engine, tmp_path):
    engine.intervals.insert(0, interval(0.0, 0.5, [900], "warmup"))
    assert sysbench("oltp_read_write --output=hlog run") == 0
    found = read(sysbench.stdout, tmp_path)
    assert [one.get_total_count() for one in found] == [4, 4, 1]


def test_a_run_that_never_began_is_an_empty_log(sysbench, engine):
    engine.raises = ValueError("spec")
    assert sysbench("oltp_read_write --output=hlog run") == 1
    assert sysbench.stdout.count("\n") == 4
    assert sysbench.stderr == "FATAL: spec\n"
