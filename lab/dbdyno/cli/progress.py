"""Progress of a run: which trial it is at, how long the rest takes, how fast the load is.

It goes to three places: stderr (on a terminal two lines redrawn in place, elsewhere a plain line
every ten seconds); a log beside the run's report, with times; and a feed of JSON lines there, which
`dbdyno serve` reads while it grows. stdout is left to the result.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text as Styled

from dbdyno.experiment.context import Progress
from dbdyno.files import make_folder, open_own
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.report.formats.stdout import printable
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.verdicts import duration
from dbdyno.store.store import FEED_NAME

STDERR_EVERY_S: Final = 10.0
"""Seconds of load between two plain lines of one trial."""
LOG_EVERY_S: Final = 60.0
LOG_NAME: Final = "log.txt"


def note(text: str) -> None:
    """Print notes on stderr, with quoted control characters escaped."""
    sys.stderr.write("\n".join(map(printable, text.split("\n"))) + "\n")


@contextmanager
def watched(console: Console, folder: Path, blocks: int) -> Iterator[Several]:
    """A run's progress on the console, in its log and in its feed, for the length of the block.

    Args:
        folder: the run's, where its report goes; a resumed run goes on in the files it has.
        blocks: how many blocks the plan has, to say "block 2/5"; 0 where the run decides it.
    """
    with (
        on_console(console, blocks) as shown,
        growing(folder / LOG_NAME) as log,
        feeding(folder, blocks) as feed,
    ):
        yield Several([shown, Lines(partial(_add_with_time, log), LOG_EVERY_S, blocks), feed])


class Audience(Progress, Protocol):
    """Progress of a run whose blocks are judged."""

    def so_far(self, text: str) -> None:
        """Show an answer after the blocks so far."""


class Several:
    """Passes progress on to several others, in their order."""

    def __init__(self, progresses: Sequence[Audience]) -> None:
        self._progresses = progresses

    def so_far(self, text: str) -> None:
        for progress in self._progresses:
            progress.so_far(text)

    def stage(self, text: str) -> None:
        for progress in self._progresses:
            progress.stage(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        for progress in self._progresses:
            progress.begin(trial, number, total, seconds_left)

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The current speed."""
        for progress in self._progresses:
            progress.interval(trial, interval, seconds_left)

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The outcome of the trial."""
        for progress in self._progresses:
            progress.end(trial, measurement, seconds_left)


# Lines for people, in English: they are written while a run goes on.


def place(trial: Trial, number: int, total: int, blocks: int) -> str:
    """A trial's number, block and subject."""
    if trial.is_pilot:
        return f"pilot: {trial.system}, {cell_title(trial.cell)}"
    block = f"{trial.block + 1}/{blocks}" if blocks else f"{trial.block + 1}"
    again = " again" if trial.repeat else ""
    return f"trial {number}/{total}, block {block}{again}: {trial.system}, {cell_title(trial.cell)}"


PHASES: Final = {"warmup": "warm-up", "measured": "measured", "drain": "drain"}
"""The engine's words for what a load is for."""


class Meter:
    """Puts a trial's seconds into words: the rate of the phase so far, then the last second."""

    def __init__(self) -> None:
        self._phase = ""
        self._began_at_s = self._events = self._seconds = 0.0

    def line_of(self, interval: Mapping[str, Any]) -> str:
        """Report an interval of the engine."""
        if interval["phase"] != self._phase:
            self._phase, self._events, self._seconds = interval["phase"], 0.0, 0.0
            self._began_at_s = interval["at_s"] - float(interval["seconds"])
        self._events += float(interval["events"])
        self._seconds += float(interval["seconds"])
        so_far = self._events / self._seconds if self._seconds > 0 else 0.0
        phase = PHASES.get(self._phase, self._phase)
        of_phase_s = interval["at_s"] - self._began_at_s
        return f"{phase} {of_phase_s:.0f} s: TPS {so_far:.1f}; last second: {speed(interval)}"


def speed(interval: Mapping[str, Any]) -> str:
    """TPS, QPS and p95 of an interval of the engine."""
    seconds = float(interval["seconds"])
    tps, qps = (
        float(interval[name]) / seconds if seconds > 0 else 0.0 for name in ("events", "queries")
    )
    p95 = interval["latency_ms"].get("95")
    latency = f"p95 {float(p95):.2f} ms" if p95 is not None else "p95 –"
    errors = interval["errors"]
    rates = f"TPS {tps:.1f}, QPS {qps:.1f}, {latency}"
    return f"{rates}, errors {errors}" if errors else rates


def outcome(trial: Trial, measurement: Measurement) -> str:
    """Line of a finished trial: its numbers, or its failure."""
    pilot = " (pilot)" if trial.is_pilot else ""
    where = f"{trial.system}{pilot}, {cell_title(trial.cell)}"
    if measurement.failure is not None:
        return f"{where}: failed: {measurement.failure}"
    values = []
    for shown in ("transactions_per_s", "queries_per_s", "latency_ms_p95"):
        metric = BY_NAME[shown]
        value = measurement.value(metric)
        unit = "" if metric.unit == "1/s" else f" {metric.unit}"
        text = "–" if value is None else f"{value:.2f}{unit}"
        values.append(f"{metric_label(metric)} {text}")
    return f"{where}: {', '.join(values)}"


class Lines:
    """A line at a trial's begin, every few seconds while it runs, and at its end.

    `repeated` adds lines in long silences.

    Args:
        write: prints a line, given without its end.
        every_s: seconds of load between two lines of a trial.
        blocks: the plan's number of blocks.
        begun: the current work, for `repeat`.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        every_s: float,
        blocks: int,
        begun: str = "",
    ) -> None:
        self._told_to = write
        self._every_s = every_s
        self._blocks = blocks
        self._written_at_s = 0.0
        self._meter = Meter()
        self._said = begun
        self._said_at = self._repeated_at = time.monotonic()

    def _write(self, text: str, before: str = "") -> None:
        self._said = text
        self._said_at = self._repeated_at = time.monotonic()
        self._told_to(before + printable(text))

    def repeat(self) -> None:
        """Repeat the last line with its age after a silence of `every_s`."""
        now = time.monotonic()
        if now - self._repeated_at >= self._every_s and self._said:
            self._repeated_at = now
            time_of_it = duration(now - self._said_at)
            self._told_to("  " + printable(f"{self._said}: for {time_of_it} now"))

    def stage(self, text: str) -> None:
        self._write(text)

    so_far = stage

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        self._written_at_s = 0.0
        self._meter = Meter()
        self._write(with_time_left(place(trial, number, total, self._blocks), seconds_left))

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Print the current speed, `every_s` seconds after the last line or in a new load."""
        self._repeated_at = time.monotonic()
        line = self._meter.line_of(interval)
        if not 0 <= interval["at_s"] - self._written_at_s < self._every_s:
            self._written_at_s = interval["at_s"]
            self._write(with_time_left(line, seconds_left), "  ")

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The outcome of the trial."""
        self._write(outcome(trial, measurement), "  ")


class RedrawnLines:
    """For a terminal: finished trials scroll away above two lines redrawn in place."""

    def __init__(self, live: Live, blocks: int) -> None:
        self._live = live
        self._blocks = blocks
        self._place = ""
        self._meter = Meter()

    def stage(self, text: str) -> None:
        """Show the current work."""
        self._draw(text)

    def so_far(self, text: str) -> None:
        """Leave an answer above the redrawn lines."""
        self._live.console.print(Styled(printable(text), style="bold"))

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Shows which trial begins and how long the run still takes."""
        self._place = place(trial, number, total, self._blocks)
        self._meter = Meter()
        self._draw(with_time_left("beginning", seconds_left))

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Shows the current speed."""
        self._draw(with_time_left(self._meter.line_of(interval), seconds_left))

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Leave the trial's outcome above the redrawn lines."""
        where = "pilot" if trial.is_pilot else f"block {trial.block + 1}"
        done = Styled(printable(f"{where}: {outcome(trial, measurement)}"))
        done.stylize("red" if measurement.failure is not None else "")
        self._live.console.print(done)
        self._draw(f"{duration(seconds_left)} left")

    def _draw(self, text: str) -> None:
        where, now = map(printable, (self._place, text))
        shown = [Styled(where, style="bold")] if where else []
        self._live.update(Styled("\n").join([*shown, Styled(now, style="cyan")]))


def with_time_left(text: str, seconds_left: float) -> str:
    """The current work, and the run's remaining time."""
    return f"{text}; {duration(seconds_left)} left"


LOOK_S: Final = 0.5
"""How often `repeated` looks whether it is time to say something."""


@contextmanager
def repeated(lines: Lines) -> Iterator[Lines]:
    """Repeat the last line in silences, during the block."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            lines.repeat()

    looking = threading.Thread(target=look, name="progress", daemon=True)
    looking.start()
    try:
        yield lines
    finally:
        over.set()
        looking.join()


def noted(begun: str = "") -> AbstractContextManager[Lines]:
    """Lines on stderr, the last repeated after ten seconds of silence.

    Args:
        begun: the current work, printed only if it outlasts a silence.
    """
    return repeated(Lines(note, STDERR_EVERY_S, 0, begun))


@contextmanager
def on_console(console: Console, blocks: int) -> Iterator[Audience]:
    """Progress for the kind of console, during the block."""
    if not console.is_terminal or console.is_dumb_terminal:
        plain = partial(console.print, markup=False, highlight=False, soft_wrap=True)
        with repeated(Lines(plain, STDERR_EVERY_S, blocks)) as lines:
            yield lines
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield RedrawnLines(live, blocks)


# Files beside the run's report that grow while it goes on. A full disk must not end a run that
# could still be stored, so a file that cannot be written is given up silently.


class GrowingFile:
    """A file of appended lines, given up at the first failure."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def add(self, line: str) -> None:
        """Append a line; give the file up if it cannot be written."""
        if self._file is None:
            return
        try:
            self._file.write(f"{line}\n")
            self._file.flush()
        except OSError:
            self._file = None


@contextmanager
def growing(path: Path) -> Iterator[GrowingFile]:
    """Opens a file to add lines, for the length of the block; makes its folder if need be."""
    file: TextIO | None = None
    with suppress(OSError):
        make_folder(path.parent)
        handle = open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        file = os.fdopen(handle, "a", encoding="utf-8")
    try:
        yield GrowingFile(file)
    finally:
        if file is not None:
            with suppress(OSError):
                file.close()


def _add_with_time(log: GrowingFile, line: str) -> None:
    log.add(f"{datetime.now().astimezone().isoformat(' ', 'seconds')} {line}")


# The feed. A file needs no port, no secret and no order of starting, and a reader cannot slow the
# run down.


class Feed:
    """Write each event as a line of JSON."""

    def __init__(self, file: GrowingFile) -> None:
        self._file = file

    def stage(self, text: str) -> None:
        self.add("stage", text=text)

    def so_far(self, text: str) -> None:
        self.add("so_far", text=text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        counted = {"number": number, "total": total, "left_s": round(seconds_left)}
        self.add("begin", **_place(trial), **counted)

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The current speed, each second."""
        self.add("interval", **_speed(interval), left_s=round(seconds_left))

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The outcome of the trial."""
        values = {
            "transactions_per_s": measurement.value(PRIMARY),
            "latency_ms_p95": measurement.value(BY_NAME["latency_ms_p95"]),
        }
        seen = values if measurement.failure is None else dict.fromkeys(values)
        self.add("end", **_place(trial), **seen, failure=measurement.failure)

    def add(self, kind: str, **fields: object) -> None:
        self._file.add(json.dumps({"kind": kind, **fields}, ensure_ascii=False))


@contextmanager
def feeding(folder: Path, blocks: int) -> Iterator[Feed]:
    """The run's feed, which begins with `run` and ends with `over`, whatever ended the run."""
    with growing(folder / FEED_NAME) as file:
        feed = Feed(file)
        feed.add("run", blocks=blocks)
        try:
            yield feed
        finally:
            feed.add("over")


def _place(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.key,
        "block": trial.block + 1,
        "system": trial.system,
        "cell": cell_title(trial.cell),
    }


def _speed(interval: Mapping[str, Any]) -> dict[str, Any]:
    """An interval of the engine as numbers for a chart; rates are per second."""
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
