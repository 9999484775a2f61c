"""A trial's histograms as HdrHistogram's interval log, readable by its tools.

Each interval's lines come below a comment with its place in the trial, so reading restores the same
bytes in the same interval. Times are seconds since the load began.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Final

from dbdyno._engine import Histogram, IntervalLog
from dbdyno.errors import BundleError
from dbdyno.measurement.parts import Interval

PLACE: Final = re.compile(r"#\[interval ([0-9]{1,9})\]")
LINE: Final = re.compile(r"Tag=([A-Za-z0-9_.:-]{1,64}),[0-9.]+,[0-9.]+,[0-9.]+,([A-Za-z0-9+/=]+)")


def log(intervals: Sequence[Interval]) -> str:
    """All histograms of a trial's intervals."""
    written = IntervalLog("dbdyno: latencies in ns, by the name of what was timed", decimals=6)
    for place, interval in enumerate(intervals):
        if interval.histograms:
            written.comment(f"interval {place}")
        length_s = max(interval.end_s - interval.start_s, 0)
        for name, blob in sorted(interval.histograms.items()):
            written.add(blob, interval.start_s, length_s, tag=name)
    return written.text()


HEAD: Final = log(())


def histograms(text: str) -> dict[int, dict[str, bytes]]:
    """The blobs of a log by interval and name; BundleError for a foreign line or histogram."""
    if not text.startswith(HEAD):
        raise BundleError("a histogram log in the bundle has another head than dbdyno's")
    blobs: dict[int, dict[str, bytes]] = {}
    current: dict[str, bytes] | None = None
    for line in text[len(HEAD) :].splitlines():
        if place := PLACE.fullmatch(line):
            current = blobs.setdefault(int(place[1]), {})
            continue
        entry = LINE.fullmatch(line)
        if entry is None or current is None or entry[1] in current:
            raise BundleError("a histogram log in the bundle has a wrong line", found=line[:80])
        current[entry[1]] = _blob(entry[2])
    return blobs


def _blob(encoded: str) -> bytes:
    """Bytes of a histogram, checked by decoding."""
    try:
        blob = b64decode(encoded, validate=True)
        Histogram.decode(blob)
    except ValueError as error:
        raise BundleError("a histogram in the bundle is damaged", found=str(error)[:120]) from error
    return blob
