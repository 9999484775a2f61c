"""The feed of a run: what happens, as it happens, for a page that watches from another process.

Each event is one line of JSON in the run's folder; `dbdyno serve` reads the file while it grows.
A file needs no port, no secret and no order of starting, and a watcher cannot slow the run down.
Like the log it is given up in silence when it cannot be written (`progress_file`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dbdyno.cli.progress_file import GrowingFile, growing
from dbdyno.experiment.progress import Progress
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME, PRIMARY

NAME: Final = "live.jsonl"
"""The feed's file in the run's folder; `serve` reads it under this name."""


class FedProgress:
    """Tells another progress, and writes each event down as a line of JSON."""

    def __init__(self, shown: Progress, feed: GrowingFile) -> None:
        self._shown = shown
        self._feed = feed

    def stage(self, text: str) -> None:
        """What is being made ready."""
        self.write("stage", text=text)
        self._shown.stage(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Which trial begins, and how long the run still takes."""
        counted = {"number": number, "total": total, "left_s": round(seconds_left)}
        self.write("begin", **_place(trial), **counted)
        self._shown.begin(trial, number, total, seconds_left)

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The current speed, each second."""
        self.write("interval", **_speed(interval), left_s=round(seconds_left))
        self._shown.interval(trial, interval, seconds_left)

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """What the trial came to."""
        values = {
            "transactions_per_s": measurement.value(PRIMARY),
            "latency_ms_p95": measurement.value(BY_NAME["latency_ms_p95"]),
        }
        told = values if measurement.failure is None else dict.fromkeys(values)
        self.write("end", **_place(trial), **told, failure=measurement.failure)
        self._shown.end(trial, measurement, seconds_left)

    def write(self, kind: str, **fields: object) -> None:
        """Adds one event."""
        self._feed.add(json.dumps({"kind": kind, **fields}, ensure_ascii=False))


@contextmanager
def fed(shown: Progress, folder: Path, blocks: int) -> Iterator[FedProgress]:
    """The same progress, written to `NAME` in the run's folder too, for the length of the block.

    The feed begins with `run` and ends with `over`, whatever ended the run; a resumed run's goes on
    behind that.

    Args:
        blocks: how many blocks the plan has, to say "block 2/5".
    """
    with growing(folder / NAME) as feed:
        progress = FedProgress(shown, feed)
        progress.write("run", blocks=blocks)
        try:
            yield progress
        finally:
            progress.write("over")


def _place(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.key,
        "block": trial.block + 1,
        "system": trial.system,
        "cell": trial.cell.title,
    }


def _speed(interval: Mapping[str, Any]) -> dict[str, Any]:
    """One interval as the engine tells it, as numbers a chart can take; rates are per second."""
    seconds = float(interval["seconds"])
    events, queries = (
        float(interval[name]) / seconds if seconds > 0 else None for name in ("events", "queries")
    )
    return {
        "at_s": interval["at_s"],
        "phase": str(interval["phase"]),
        "transactions_per_s": events,
        "queries_per_s": queries,
        "latency_ms_p95": interval["latency_ms"].get("95"),
        "errors": interval["errors"],
    }
