"""Progress of a run: the current trial, the time left, the speed of the load.

It goes to three places: stderr (on a terminal one bar redrawn in place, elsewhere a plain line
every ten seconds); a log beside the run's report, with times; and a feed of JSON lines there, which
`dbdyno serve` reads while it grows. stdout is left to the result.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text as Styled

from dbdyno.experiment.context import Progress
from dbdyno.files import make_folder, open_own
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.report.formats.stdout import print_lines, printable
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.verdicts import duration
from dbdyno.store.store import FEED_NAME

STDERR_EVERY_S: Final = 10.0
"""Seconds of load between two plain lines of one trial."""
LOG_EVERY_S: Final = 60.0
LOG_NAME: Final = "log.txt"


def note(text: str) -> None:
    """Print notes on stderr, with quoted control characters escaped."""
    print_lines(text, sys.stderr)


LONGER: Final = 1.1
NOISE_S: Final = 10.0
"""Share and seconds by which an estimate must be longer to be no mere noise."""


class Countdown:
    """The trial in progress, and the run's remaining time as the clock counts it down.

    The time rises only when trials were added, or when measured trials make the estimate much
    longer (`LONGER`, `NOISE_S`). Else it stands still until the estimate has come down to it.

    Attributes:
        share: of the run's trials that are done, from 0 to 1; it never falls.

    Args:
        total: number of the run's trials.
        done: number of trials stored already.
        seconds: estimate for all trials.
    """

    def __init__(self, total: int, done: int, seconds: float) -> None:
        self.number, self.total, self.share = min(done + 1, total), total, done / total
        self._ends_s = time.monotonic() + (1 - self.share) * seconds
        self._most_s = math.inf

    @property
    def seconds(self) -> float:
        """Seconds left now."""
        return max(0.0, min(self._most_s, self._ends_s - time.monotonic()))

    def begin(self, number: int, total: int, seconds_left: float) -> None:
        """Count a trial that begins, and take the estimate for the trials left."""
        is_more = total > self.total
        self.number, self.total = number, total
        self.share = max(self.share, (number - 1) / total)
        self.expect(seconds_left, is_more=is_more)

    def expect(self, seconds_left: float, *, is_more: bool = False) -> None:
        """Take a new estimate, whatever its length if it is for more trials."""
        shown_s = self.seconds
        is_longer = is_more or seconds_left > LONGER * shown_s + NOISE_S
        self._ends_s = time.monotonic() + seconds_left
        self._most_s = math.inf if is_longer else shown_s


@contextmanager
def watched(
    console: Console, folder: Path, countdown: Countdown, others: Sequence[Progress] = ()
) -> Iterator[Several]:
    """A run's progress on the console, in its log and in its feed, for the length of the block.

    Args:
        folder: the run's, where its report goes; a resumed run goes on in the files it has.
        others: get the progress too.
    """
    with (
        on_console(console, countdown) as shown,
        growing(folder / LOG_NAME) as log,
        feeding(folder) as feed,
    ):
        lines = Lines(partial(_add_with_time, log), LOG_EVERY_S)
        yield Several([shown, lines, feed, *others], countdown)


class Several:
    """Passes progress on to several others in their order, with the time left as counted down."""

    def __init__(self, progresses: Sequence[Progress], countdown: Countdown) -> None:
        self._progresses, self._countdown = progresses, countdown

    def stage(self, text: str) -> None:
        for progress in self._progresses:
            progress.stage(text)

    def note(self, text: str) -> None:
        for progress in self._progresses:
            progress.note(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """The number of the trial; a pilot's trials are not counted."""
        if trial.is_pilot:
            self._countdown.expect(seconds_left)
        else:
            self._countdown.begin(number, total, seconds_left)
        for progress in self._progresses:
            progress.begin(trial, number, total, self._countdown.seconds)

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The current speed."""
        self._countdown.expect(seconds_left)
        for progress in self._progresses:
            progress.interval(trial, interval, self._countdown.seconds)

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The outcome of the trial."""
        self._countdown.expect(seconds_left)
        for progress in self._progresses:
            progress.end(trial, measurement, self._countdown.seconds)


# Lines for people, in English: they are written while a run goes on.


def subject(trial: Trial) -> str:
    """A trial's system and cell."""
    pilot = " (pilot)" if trial.is_pilot else ""
    return f"{trial.system}{pilot}, {cell_title(trial.cell)}"


PHASES: Final = {"warmup": "warm-up", "measured": "measuring", "drain": "finishing"}
"""The phases of a load, by the engine's words."""


def per_second(interval: Mapping[str, Any], counted: str) -> float:
    """A rate in an interval of the engine; 0 for an interval without length."""
    seconds = float(interval["seconds"])
    return float(interval[counted]) / seconds if seconds > 0 else 0.0


def speed(interval: Mapping[str, Any]) -> str:
    """Phase, TPS, QPS and p95 of an interval of the engine."""
    tps, qps = (per_second(interval, counted) for counted in ("events", "queries"))
    p95 = interval["latency_ms"].get("95")
    latency = f"p95 {float(p95):.2f} ms" if p95 is not None else "p95 –"
    errors = f", errors {interval['errors']}" if interval["errors"] else ""
    return f"{PHASES[interval['phase']]}: TPS {tps:.1f}, QPS {qps:.1f}, {latency}{errors}"


def outcome(trial: Trial, measurement: Measurement) -> str:
    """Line of a finished trial: its numbers, or its failure."""
    if measurement.failure is not None:
        return f"{subject(trial)}: failed: {measurement.failure}"
    values = []
    for shown in ("transactions_per_s", "queries_per_s", "latency_ms_p95"):
        metric = BY_NAME[shown]
        value = measurement.value(metric)
        unit = "" if metric.unit == "1/s" else f" {metric.unit}"
        text = "–" if value is None else f"{value:.2f}{unit}"
        values.append(f"{metric_label(metric)} {text}")
    return f"{subject(trial)}: {', '.join(values)}"


PERCENT: Final = re.compile(r"\d+ %$")
"""Percentage at the end of a step."""


class Lines:
    """A line for a step, at a trial's begin, every few seconds while it runs, and at its end.

    `repeated` adds lines in long silences.

    Args:
        write: prints a line, given without its end.
        every_s: seconds between two lines of the same step.
        begun: the current work, for `repeat`.
    """

    def __init__(self, write: Callable[[str], None], every_s: float, begun: str = "") -> None:
        self._print, self._every_s, self._said = write, every_s, begun
        self._said_at = self._repeated_at = time.monotonic()

    def _write(self, text: str, before: str = "") -> None:
        self._said = text
        self._said_at = self._repeated_at = time.monotonic()
        self._print(before + printable(text))

    def repeat(self) -> None:
        """Repeat the last line with its age after a silence of `every_s`."""
        now = time.monotonic()
        if now - self._repeated_at >= self._every_s and self._said:
            self._repeated_at = now
            time_of_it = duration(now - self._said_at)
            self._print("  " + printable(f"{self._said}: for {time_of_it} now"))

    def _is_due(self) -> bool:
        return time.monotonic() - self._said_at >= self._every_s

    def stage(self, text: str) -> None:
        """Print a step; if only its percentage is new, `every_s` seconds after the last line."""
        if PERCENT.sub("", text) != PERCENT.sub("", self._said) or self._is_due():
            self._write(text)

    def note(self, text: str) -> None:
        self._write(text)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        again = " again" if trial.repeat else ""
        counted = f"trial {number} of {total}, block {trial.block + 1}{again}: "
        where = f"{'' if trial.is_pilot else counted}{subject(trial)}"
        self._write(f"{where}; {duration(seconds_left)} left")

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Print the current speed, `every_s` seconds after the last line."""
        if self._is_due():
            self._write(f"{speed(interval)}; {duration(seconds_left)} left", "  ")
        self._repeated_at = time.monotonic()

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The outcome of the trial."""
        self._write(outcome(trial, measurement), "  ")


class TerminalBar:
    """A bar for a terminal with the present step below it; notes and failures stay above it."""

    def __init__(self, console: Console, countdown: Countdown) -> None:
        self._console, self._countdown = console, countdown
        self._system = self._trial = ""
        self._where = self._step = ""

    def stage(self, text: str) -> None:
        """Show a step and its system; in a trial of this system, the trial."""
        system, step = text.split(": ", 1) if ": " in text else ("", text)
        where = self._trial if system == self._system else system
        self._where, self._step = printable(where), printable(step)

    def note(self, text: str, style: str = "") -> None:
        """Leave a note above the bar."""
        self._console.print(Styled(printable(text), style=style))

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Show the trial until it ends."""
        self._system, self._trial = trial.system, subject(trial)
        self.stage(f"{trial.system}: beginning")

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Show the phase and its TPS."""
        tps = f"{per_second(interval, 'events'):,.0f}".replace(",", " ")
        self.stage(f"{trial.system}: {PHASES[interval['phase']]}, {tps} TPS")

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Leave a failure above the bar."""
        self._system = self._trial = ""
        if measurement.failure is not None:
            self.note(outcome(trial, measurement), "red")

    def __rich__(self) -> Group:
        counted = self._countdown
        time_left = f"{duration(counted.seconds)} left".rjust(len("59 min 59 s left"))
        where = Styled(self._where, style="bold", no_wrap=True, overflow="ellipsis")
        return Group(
            _row(
                Bar(1.0, 0.0, counted.share, color="cyan", bgcolor="bright_black"),
                f"trial {counted.number} of {counted.total}",
                time_left,
            ),
            _row(where, Styled(self._step, style="cyan")),
        )


def _row(first: RenderableType, *others: RenderableType) -> Table:
    """A line of the terminal whose first part has the columns left by the others."""
    kept = (Column(no_wrap=True, justify="right") for _ in others)
    row = Table.grid(Column(ratio=1), *kept, padding=(0, 1), expand=True)
    row.add_row(first, *others)
    return row


LOOK_S: Final = 0.5
"""Seconds between two looks of `repeated` at the clock."""


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
    return repeated(Lines(note, STDERR_EVERY_S, begun))


@contextmanager
def on_console(console: Console, countdown: Countdown) -> Iterator[Progress]:
    """Progress for the kind of console, during the block."""
    has_bar = console.is_terminal and not console.is_dumb_terminal
    if not has_bar or console.options.ascii_only:
        plain = partial(console.print, markup=False, highlight=False, soft_wrap=True)
        with repeated(Lines(plain, STDERR_EVERY_S)) as lines:
            yield lines
        return
    bar = TerminalBar(console, countdown)
    with Live(bar, console=console, refresh_per_second=2, transient=True):
        yield bar


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

    def note(self, text: str) -> None:
        self.add("note", text=text)

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
def feeding(folder: Path) -> Iterator[Feed]:
    """The run's feed, which begins with `run` and ends with `over`, whatever ended the run."""
    with growing(folder / FEED_NAME) as file:
        feed = Feed(file)
        feed.add("run")
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
    return {
        "at_s": interval["at_s"],
        "phase": str(interval["phase"]),
        "transactions_per_s": per_second(interval, "events"),
        "queries_per_s": per_second(interval, "queries"),
        "latency_ms_p95": interval["latency_ms"].get("95"),
        "errors": interval["errors"],
    }
