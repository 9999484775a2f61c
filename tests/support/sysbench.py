"""For tests of the sysbench persona: recorded intervals, options, expected texts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbdyno import __version__
from dbdyno._engine import Histogram, Stop
from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Values

MS = 1_000_000
GOLDEN = Path(__file__).parents[1] / "golden"
ENTRY = (
    "import sys; from dbdyno.__main__ import main; sys.argv.insert(1, 'sysbench'); sys.exit(main())"
)
"""The whole program, which ends as it does for its users."""
Ended = subprocess.CompletedProcess[str]
Shell = Callable[..., Ended]
"""Runs a line of the persona, as the fixture `shell` does."""


def golden(name: str) -> str:
    """A text of tests/golden, with the version of this dbdyno."""
    return (GOLDEN / name).read_text().replace("VERSION", __version__)


def options(**typed: str | None) -> Values:
    """Global options as if typed; `_` in names stands for `-`."""
    return Values(GLOBAL_TABLE, {name.replace("_", "-"): raw for name, raw in typed.items()})


def interrupt(stop: Stop) -> None:
    """Sends SIGTERM to this process and waits until the engine is asked to stop."""
    os.kill(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + 20
    while not stop.is_set() and time.monotonic() < deadline:
        time.sleep(0.01)


def interval(
    start_s: float, end_s: float, latencies_ms: list[int], phase: str, **more: Any
) -> dict[str, Any]:
    """An interval of a record; `more` are fields in place of the made ones."""
    histogram = recorded(latencies_ms)
    events = len(latencies_ms)
    return {
        "phase": phase,
        "start_s": start_s,
        "end_s": end_s,
        "events": events,
        "reads": 14 * events,
        "writes": 4 * events,
        "others": 2 * events,
        "errors": {"1213": 1} if phase == "measured" else {},
        "restarts": 1,
        **dict.fromkeys(("reconnects", "arrivals", "backlog", "in_flight", "silence_ns_max"), 0),
        "bytes_received": 1,
        "bytes_sent": 1,
        "latency_ns_sum": sum(latencies_ms) * MS,
        "latency_ns_min": min(latencies_ms, default=0) * MS,
        "latency_ns_max": max(latencies_ms, default=0) * MS,
        "histograms": {"event": encoded(histogram)} if events else {},
        **more,
    }


def recorded(latencies_ms: list[int]) -> Histogram:
    """These latencies as a histogram."""
    histogram = Histogram()
    for latency_ms in latencies_ms:
        histogram.record(latency_ms * MS)
    return histogram


def encoded(histogram: Histogram) -> str:
    return b64encode(histogram.encode()).decode()


def live_interval(interval: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """The interval as the engine reports it during a run with the spec `asked`."""
    counts = ("phase", "events", "reads", "writes", "others", "reconnects", "backlog", "in_flight")
    return {
        **{name: interval[name] for name in counts},
        "at_s": interval["end_s"],
        "connections": asked["connections"],
        "queries": interval["reads"] + interval["writes"] + interval["others"],
        "errors": sum(interval["errors"].values()),
        "seconds": interval["end_s"] - interval["start_s"],
        "latency_ms": {f"{p:g}": interval["latency_ns_max"] / MS for p in asked["percentiles"]},
        **({"record": interval} if asked.get("tell_records") else {}),
    }


_LATENCY = re.compile(r"( +(?:min|avg|max|sum|\d+th percentile):)( +[\d.]+)")
_BANNER = re.compile(r"\(using .*\)")


def shape(text: str) -> list[str]:
    """The text with every number as a sign; columns that numbers end in are kept."""
    lines: list[str] = []
    for line in _BANNER.sub("(using)", text).splitlines():
        if match := _LATENCY.fullmatch(line):
            lines.append(f"{match[1]} ends in column {len(line)}")
        elif re.fullmatch(r" {5,9}[\d.]+ \|[* ]{40} \d+", line):
            if lines[-1] != "a row":
                lines.append("a row")
        else:
            lines.append(re.sub(r"# +\(", "# (", re.sub(r"\d[\d.]*", "#", line)))
    return lines
