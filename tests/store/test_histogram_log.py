"""The log gives back the very same bytes, HdrHistogram's reader takes it, and lies are refused."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import pytest
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Histogram
from dbdyno.errors import BundleError
from dbdyno.measurement.measurement import EVENT, merge_histograms
from dbdyno.store.histogram_log import HEAD, histograms, log
from support import making

MADE = making.measurement()
TEXT = log(MADE.intervals)


def line(blob: bytes, name: str = "event") -> str:
    encoded = base64.b64encode(blob).decode()
    return f"{HEAD}#[interval 0]\nTag={name},0.0,1.0,1.0,{encoded}\n"


def test_bundles_keep_their_format_to_the_byte() -> None:
    histogram = Histogram()
    histogram.record(5_000_000)
    blob = histogram.encode()
    one = MADE.intervals[0].model_copy(
        update={"start_s": 1.0078125, "end_s": 2.5, "histograms": {"event": blob}}
    )
    assert log((one,)) == (
        "#[dbdyno: latencies in ns, by the name of what was timed]\n"
        "#[Histogram log format version 1.3]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
        "#[interval 0]\n"
        f"Tag=event,1.007812,1.492188,5.001215,{base64.b64encode(blob).decode()}\n"
    )


def test_what_is_no_histogram_is_not_written() -> None:
    one = MADE.intervals[0].model_copy(update={"histograms": {"event": b"no histogram"}})
    with pytest.raises(ValueError, match="not an HDR V2 histogram"):
        log((one,))


def test_every_blob_comes_back_to_its_interval() -> None:
    assert histograms(TEXT) == {n: one.histograms for n, one in enumerate(MADE.intervals)}
    bare = MADE.intervals[0].model_copy(update={"histograms": {}})
    found = histograms(log((bare, bare, MADE.intervals[5], bare)))
    assert found == {2: MADE.intervals[5].histograms}


def test_hdrhistograms_own_reader_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "trial.hlog"
    path.write_text(TEXT)
    from hdrh.histogram import HdrHistogram

    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    counts = []
    while (one := reader.get_next_interval_histogram()) is not None:
        if one.get_tag() == EVENT:
            counts.append(one.get_total_count())
    reader.close()
    assert counts == [interval.events for interval in MADE.intervals]
    merged = merge_histograms(i.histograms[EVENT] for i in MADE.intervals)
    assert sum(counts) == merged.count()


def blob_of(digits: int = 3, highest: int = 3_600_000_000_000, payload: bytes = b"\x02") -> bytes:
    head = struct.pack(">Iiiiqqd", 0x1C849313, len(payload), 0, digits, 1, highest, 1.0)
    packed = zlib.compress(head + payload)
    return struct.pack(">Ii", 0x1C849314, len(packed)) + packed


def test_a_plain_histogram_is_taken_too() -> None:
    histogram = Histogram()
    histogram.record(5_000_000)
    packed = histogram.encode()
    plain = zlib.decompress(packed[8:])
    assert histograms(line(plain))[0]["event"] == plain
    assert histograms(line(packed))[0]["event"] == packed
    foreign = blob_of(digits=5, highest=2**62)
    assert histograms(line(foreign))[0]["event"] == foreign


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"no histogram at all",
        blob_of(digits=6),
        blob_of(payload=bytes(3_000_000)),
        blob_of()[:25],
        struct.pack(">Ii", 0x1C849314, 5) + b"\x00" * 40,
    ],
)
def test_a_histogram_that_is_none_of_ours_is_refused(blob: bytes) -> None:
    with pytest.raises(BundleError):
        histograms(line(blob))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "another file\n",
        HEAD + "Tag=event,0,1,1,AAAA\n",
        HEAD + "#[interval 0]\nrubbish\n",
        HEAD + "#[interval 0]\nTag=../x,0,1,1,AAAA\n",
        TEXT + "#[interval 0]\n" + TEXT[len(HEAD) :],
        HEAD + "#[interval -1]\n",
    ],
)
def test_a_log_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(BundleError):
        histograms(text)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_histogram_or_refused(blob: bytes) -> None:
    try:
        found = histograms(line(blob))
    except BundleError:
        return
    assert found[0]["event"] == blob
