"""Several generator processes with a shared load, seen by the lab as a single child.

Each is a child as in `child`, with its part of the connections and of the due times; together they
draw the same requests as a single generator. They begin at the same moment. Their reports are added
up: counts, and the histograms of latencies, so percentiles are of all requests. Like the child this
file imports nothing of the lab.
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from dbdyno import _engine, interpreter

COMMAND: Final = interpreter.module("dbdyno.experiment.engine.child")
HEAD_START_S: Final = 0.05
"""From the word to begin until they begin; on a busy machine it takes some time to arrive."""
POLL_S: Final = 0.1
SUMMED: Final = (
    "events",
    "reads",
    "writes",
    "others",
    "restarts",
    "reconnects",
    "arrivals",
    "backlog",
    "in_flight",
    "bytes_received",
    "bytes_sent",
    "latency_ns_sum",
)
"""Counts of an interval to add up; others take the least or the most, or go by name."""

Interval = Mapping[str, Any]
Send = Callable[[str, object], None]
Outcome = tuple[str, dict[str, Any]]


class Part(Protocol):
    """A generator among several: a child of this machine, or of another."""

    def begin(self, monotonic_ns: int) -> None:
        """Start the load at this moment of this process's monotonic clock."""

    def say(self, line: str) -> None:
        """Send a line to the child; no effect if it died."""


class Stop(Protocol):
    """True if the load must stop."""

    def is_set(self) -> bool:
        """True from then on."""


def run(spec: Mapping[str, Any], send: Send, stop: Stop) -> Outcome:
    """Runs the load of `spec` with as many processes as its `generators` says.

    Args:
        send: is told each interval of all of them together.
    """
    count = spec["generators"]
    arriving: Arriving = queue.SimpleQueue()
    children = [
        Child(request_of(spec, number, count), partial(_arrive, arriving, number))
        for number in range(count)
    ]
    try:
        ended = together(children, arriving, spec, send, stop)
    finally:
        for child in children:
            child.end()
    return ended if isinstance(ended, tuple) else ("record", merged(ended))


def request_of(spec: Mapping[str, Any], number: int, count: int) -> str:
    """The request of each child: its part of the load, from number 0 on."""
    own = {name: value for name, value in spec.items() if name != "generators"}
    threads = spec["threads"] and max(1, spec["threads"] // count)
    part = {"generator": {"number": number, "of": count}, "threads": threads}
    flags = {"tell_begin": True, "tell_records": True}
    return json.dumps({"do": "run", "spec": {**own, **part, **flags}})


Arriving = queue.SimpleQueue[tuple[int, str]]
"""Lines of the children, each with its child's number; an empty one when it has ended."""


def _arrive(arriving: Arriving, number: int, line: str) -> None:
    arriving.put((number, line))


class Child:
    """A generator of this machine; a `Part`.

    Args:
        put: takes its lines, called from a thread; an empty line marks the end.
    """

    def __init__(self, request: str, put: Callable[[str], None]) -> None:
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

        def read() -> None:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                put(line)
            put("")

        threading.Thread(target=read, daemon=True).start()
        self.say(request)

    def begin(self, monotonic_ns: int) -> None:
        """As `Part.begin`; all processes of a machine share a clock."""
        self.say(f"begin {monotonic_ns}")

    def say(self, line: str) -> None:
        """As `Part.say`."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it died, which its last line says
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Kills it if it still runs."""
        self._process.kill()
        self._process.wait()


def together(
    parts: Sequence[Part],
    arriving: Arriving,
    spec: Mapping[str, Any],
    send: Send,
    stop: Stop,
    head_start_s: float = HEAD_START_S,
) -> list[dict[str, Any]] | Outcome:
    """Collect the generators' messages until all have ended, or any fails.

    Args:
        spec: the whole load's.
        head_start_s: time from the command to begin until the begin.

    Returns:
        Their records in their order, or the error of the failed generator.
    """
    waiting: list[deque[Interval]] = [deque() for _ in parts]
    records: dict[int, dict[str, Any]] = {}
    are_open: set[int] = set()
    is_stopped = False
    while len(records) < len(parts):
        is_broken = any(record["failure"] for record in records.values())
        if (is_broken or stop.is_set()) and not is_stopped:
            is_stopped = True
            for part in parts:
                part.say("stop")
        with suppress(queue.Empty):
            number, line = arriving.get(timeout=POLL_S)
            if not line and number not in records:
                message = f"generator {number + 1} of {len(parts)} died"
                return "error", {"kind": "refused", "message": message, "stage": "run"}
            for kind, value in json.loads(line or "{}").items():
                if kind == "error":
                    return kind, value
                if kind == "record":
                    records[number] = value
                elif kind == "open":
                    are_open.add(number)
                    if len(are_open) == len(parts):
                        begin_ns = time.monotonic_ns() + round(head_start_s * 1e9)
                        for part in parts:
                            part.begin(begin_ns)
                else:
                    waiting[number].append(value["record"])
            while any(waiting) and all(
                told or number in records for number, told in enumerate(waiting)
            ):
                added_up = added([told.popleft() for told in waiting if told])
                send("interval", told_of(added_up, spec))
    return [records[number] for number in sorted(records)]


def merged(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The merged record of all generators, in the form of a single generator's.

    Fairness between threads, printed only by the persona, is left out.
    """
    slices: dict[tuple[float, str], list[Interval]] = {}
    for record in records:
        for interval in record["intervals"]:
            slices.setdefault((interval["start_s"], interval["phase"]), []).append(interval)
    first = records[0]
    cpu = [record["measured"] for record in records]
    failed = (record["failure"] for record in records if record.get("failure"))
    return {
        **{name: value for name, value in first.items() if name != "fairness"},
        "generators": len(records),
        "threads": sum(record["threads"] for record in records),
        "connections": sum(record["connections"] for record in records),
        "unfinished": sum(record["unfinished"] for record in records),
        "unserved": sum(record["unserved"] for record in records),
        "intervals": [added(slices[key]) for key in sorted(slices)],
        "measured": {
            "cpu_s": sum(one["cpu_s"] for one in cpu),
            "cpu_share_max": max(one["cpu_share_max"] for one in cpu),
        },
        "failure": next(failed, None),
    }


def added(intervals: Sequence[Interval]) -> dict[str, Any]:
    """Merge the same interval of several generators."""
    first = intervals[0]
    errors: dict[str, int] = {}
    for interval in intervals:
        for code, times in interval["errors"].items():
            errors[code] = errors.get(code, 0) + times
    least_ns = [one["latency_ns_min"] for one in intervals if one["events"]]
    names = sorted({name for one in intervals for name in one["histograms"]})
    return {
        "phase": first["phase"],
        "start_s": first["start_s"],
        "end_s": max(one["end_s"] for one in intervals),
        **{name: sum(one[name] for one in intervals) for name in SUMMED},
        "errors": errors,
        "silence_ns_max": _silence_ns(intervals),
        "latency_ns_min": min(least_ns, default=0),
        "latency_ns_max": max(one["latency_ns_max"] for one in intervals),
        "histograms": {
            name: base64.b64encode(_histogram(intervals, name).encode()).decode() for name in names
        },
    }


def _silence_ns(intervals: Iterable[Interval]) -> int:
    """Upper limit of the silence common to all generators: the least of their own silences.

    A generator without any answer reports 0 and did not break the others' silence.
    """
    silences_ns = (one["silence_ns_max"] for one in intervals)
    return min((silence_ns for silence_ns in silences_ns if silence_ns), default=0)


def _histogram(intervals: Iterable[Interval], name: str) -> _engine.Histogram:
    counts = _engine.Histogram()
    for interval in intervals:
        if name in interval["histograms"]:
            counts.add(_engine.Histogram.decode(base64.b64decode(interval["histograms"][name])))
    return counts


def told_of(interval: Interval, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Report of an interval during the run, in the engine's own form."""
    latencies = _histogram([interval], "event")
    most_ns = interval["latency_ns_max"]
    counts = ("events", "reads", "writes", "others", "reconnects", "backlog", "in_flight")
    return {
        "at_s": interval["end_s"],
        "phase": interval["phase"],
        "seconds": interval["end_s"] - interval["start_s"],
        **{name: interval[name] for name in counts},
        "queries": interval["reads"] + interval["writes"] + interval["others"],
        "errors": sum(interval["errors"].values()),
        "latency_ms": {
            f"{percentile:g}": min(latencies.quantile(percentile / 100), most_ns) / 1e6
            for percentile in spec["percentiles"]
        },
        **({"record": interval} if spec.get("tell_records") else {}),
    }
