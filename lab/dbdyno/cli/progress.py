"""What a person sees on stderr while a run goes on: where it is, how long it takes, how fast it is.

On a terminal two lines are redrawn in place under the finished trials; elsewhere (a log, CI, a
terminal that cannot) plain lines come at most every ten seconds. Both say the same sentences, which
are made by pure functions. stdout is left to the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dbdyno.experiment.context import Progress
from dbdyno.judge.wording import duration
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME, PRIMARY

PRINT_EVERY_S: Final = 10.0
"""Seconds of load between two plain lines of one trial."""


def place(trial: Trial, number: int, total: int, blocks: int) -> str:
    """Which trial of how many, in which block, on what."""
    where = f"trial {number}/{total}, block {trial.block + 1}/{blocks}: {trial.arm}"
    if trial.control == "pilot":
        where = f"pilot: {trial.system}"
    return f"{where}, {trial.cell.title}"


def speed(interval: Mapping[str, Any]) -> str:
    """Phase and current TPS, QPS and p95 of one interval as the engine tells it."""
    seconds = float(interval["seconds"])
    rates = [
        float(interval[name]) / seconds if seconds > 0 else 0.0 for name in ("events", "queries")
    ]
    p95 = interval["latency_ms"].get("95")
    latency = f"p95 {float(p95):.2f} ms" if p95 is not None else "p95 –"
    errors = interval["errors"]
    told = f"{interval['phase']} {interval['at_s']:.0f} s: TPS {rates[0]:.1f}, QPS {rates[1]:.1f}"
    return f"{told}, {latency}" + (f", errors {errors}" if errors else "")


def outcome(trial: Trial, measurement: Measurement) -> str:
    """One finished trial in one line: its numbers, or why there are none."""
    if measurement.failure is not None:
        return f"{trial.arm}, {trial.cell.title}: failed: {measurement.failure}"
    values = []
    for name in ("transactions_per_s", "queries_per_s", "latency_ms_p95"):
        metric = BY_NAME[name]
        value = measurement.value(metric)
        unit = "" if metric.unit == "1/s" else f" {metric.unit}"
        values.append(f"{metric.label} –" if value is None else f"{metric.label} {value:.2f}{unit}")
    return f"{trial.arm}, {trial.cell.title}: {', '.join(values)}"


class PlainProgress:
    """Lines for a log: one when a trial begins, one every ten seconds of load, one at its end."""

    def __init__(self, console: Console, blocks: int) -> None:
        self._console = console
        self._blocks = blocks
        self._told_at_s = 0.0

    def stage(self, text: str) -> None:
        """Says what is being made ready."""
        self._say(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Says which trial begins and how long the run still takes."""
        self._told_at_s = 0.0
        self._say(f"{place(trial, number, total, self._blocks)}; {duration(seconds_left)} left")

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Says the current speed when ten seconds of load have passed since it was last said."""
        if interval["at_s"] - self._told_at_s >= PRINT_EVERY_S:
            self._told_at_s = interval["at_s"]
            self._say(f"  {speed(interval)}; {duration(seconds_left)} left")

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Says what the trial came to."""
        self._say(f"  {outcome(trial, measurement)}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveProgress:
    """For a terminal: finished trials scroll away above two lines that are redrawn in place."""

    def __init__(self, live: Live, blocks: int) -> None:
        self._live = live
        self._blocks = blocks
        self._place = ""

    def stage(self, text: str) -> None:
        """Shows what is being made ready."""
        self._draw(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Shows which trial begins and how long the run still takes."""
        self._place = place(trial, number, total, self._blocks)
        self._draw(f"beginning; {duration(seconds_left)} left")

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Shows the current speed."""
        self._draw(f"{speed(interval)}; {duration(seconds_left)} left")

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Leaves the trial's outcome above the lines that are redrawn."""
        where = "pilot" if trial.control == "pilot" else f"block {trial.block + 1}"
        done = Text(f"{where}: {outcome(trial, measurement)}")
        done.stylize("red" if measurement.failure is not None else "")
        self._live.console.print(done)
        self._draw(f"{duration(seconds_left)} left")

    def _draw(self, text: str) -> None:
        lines = [Text(self._place, style="bold")] if self._place else []
        self._live.update(Text("\n").join([*lines, Text(text, style="cyan")]))


@contextmanager
def shown(console: Console, blocks: int) -> Iterator[PlainProgress | LiveProgress]:
    """The progress that fits the console, for the length of the block.

    Args:
        blocks: how many blocks the plan has, to say "block 2/5".
    """
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainProgress(console, blocks)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield LiveProgress(live, blocks)


# The log of a run: what a person would have seen, with the time, for the morning after.
#
# Every line of the plain progress goes to a file beside the run's report; a resumed run goes on in
# it. A log that cannot be written is given up without a word to the run (`progress_file`).


LOG_NAME: Final = "log.txt"
LOG_EVERY_S: Final = 60.0
"""Seconds of load between two lines of one trial."""


class LoggedProgress:
    """Tells another progress, and writes down what it tells."""

    def __init__(self, shown: Progress, log: GrowingFile, blocks: int) -> None:
        self._shown = shown
        self._log = log
        self._blocks = blocks
        self._told_at_s = 0.0

    def stage(self, text: str) -> None:
        """What is being made ready."""
        self._write(text)
        self._shown.stage(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Which trial begins, and how long the run still takes."""
        self._told_at_s = 0.0
        self._write(f"{place(trial, number, total, self._blocks)}; {duration(seconds_left)} left")
        self._shown.begin(trial, number, total, seconds_left)

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The current speed; written down once a minute."""
        if interval["at_s"] - self._told_at_s >= LOG_EVERY_S:
            self._told_at_s = interval["at_s"]
            self._write(f"  {speed(interval)}; {duration(seconds_left)} left")
        self._shown.interval(trial, interval, seconds_left)

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """What the trial came to."""
        self._write(f"  {outcome(trial, measurement)}")
        self._shown.end(trial, measurement, seconds_left)

    def _write(self, text: str) -> None:
        self._log.add(f"{datetime.now().astimezone().isoformat(' ', 'seconds')} {text}")


@contextmanager
def logged(shown: Progress, folder: Path, blocks: int) -> Iterator[LoggedProgress]:
    """The same progress, written to `NAME` in the run's folder too, for the length of the block.

    Args:
        blocks: how many blocks the plan has, to say "block 2/5".
    """
    with growing(folder / LOG_NAME) as log:
        yield LoggedProgress(shown, log, blocks)


# A file beside a run's report that grows while the run goes on, and never ends it.
#
# A disk that is full must not end a run that could still be stored, so a file that cannot be
# written is given up, once, without a word to the run. What was written is there at once, for who
# watches.


class GrowingFile:
    """Lines that are added while they can be."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def add(self, line: str) -> None:
        """Adds one line, and gives the file up if it cannot be written."""
        if self._file is None:
            return
        try:
            self._file.write(f"{line}\n")
            self._file.flush()
        except OSError:
            self._file = None


@contextmanager
def growing(path: Path) -> Iterator[GrowingFile]:
    """The file, its folder made if need be, added to behind what it has, for the block's length."""
    file: TextIO | None = None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    try:
        yield GrowingFile(file)
    finally:
        if file is not None:
            with suppress(OSError):
                file.close()


# The feed of a run: what happens, as it happens, for a page that watches from another process.
#
# Each event is one line of JSON in the run's folder; `dbdyno serve` reads the file while it grows.
# A file needs no port, no secret and no order of starting, and a watcher cannot slow the run down.
# Like the log it is given up in silence when it cannot be written (`progress_file`).


FEED_NAME: Final = "live.jsonl"
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
    with growing(folder / FEED_NAME) as feed:
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
