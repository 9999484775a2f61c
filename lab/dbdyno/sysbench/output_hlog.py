"""``--output=hlog``: HdrHistogram's interval log, format 1.3, for the tools that read it.

The events' latency has no tag; every other histogram (statements by kind, the events' latency from
their real start, the generator's timer lag) has its name as tag. Values are ns; the column of
greatest values is in ms, as those tools expect.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno._engine import Histogram
from dbdyno.sysbench.totals import EVENT

_NS_PER_MS = 1e6
_COLUMNS = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


def log(intervals: Sequence[Mapping[str, Any]], begun_at: float, begin_s: float) -> str:
    """The log of recorded intervals.

    Args:
        intervals: as a record has them, without those of a warm-up.
        begun_at: when the load began, s since 1970.
        begin_s: how long after that the measuring began, which is moment 0 of the log.
    """
    start_s = begun_at + begin_s
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start_s))
    lines = [
        "#[dbdyno: latencies in ns; untagged: events from the moment they were due]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {shown}]",
        _COLUMNS,
    ]
    for interval in intervals:
        lines += _lines(interval, begin_s)
    return "\n".join(lines) + "\n"


def _lines(interval: Mapping[str, Any], begin_s: float) -> list[str]:
    at_s, length_s = interval["start_s"] - begin_s, interval["end_s"] - interval["start_s"]
    lines = []
    by_name = interval["histograms"].items()
    for name, text in sorted(by_name, key=lambda item: item[0] != EVENT):
        is_event = name == EVENT
        greatest_ns = interval["latency_ns_max"] if is_event else _greatest_ns(text)
        tag = "" if is_event else f"Tag={name},"
        lines.append(f"{tag}{at_s:.3f},{length_s:.3f},{greatest_ns / _NS_PER_MS:.3f},{text}")
    return lines


def _greatest_ns(text: str) -> int:
    return Histogram.decode(b64decode(text)).max()
