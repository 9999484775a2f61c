"""The log of a run: what a person would have seen, with the time, for the morning after.

Every line of the plain progress goes to a file beside the run's report; a resumed run goes on in
it. A disk that is full must not end a run that could still be stored, so a log that cannot be
written is given up, once, without a word to the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

from dbdyno.bench import Progress
from dbdyno.judge.wording import duration
from dbdyno.measurement import Measurement, Trial
from dbdyno.progress import outcome, place, speed

NAME: Final = "log.txt"
EVERY_S: Final = 60.0
"""Seconds of load between two lines of one trial."""


class LoggedProgress:
    """Tells another progress, and writes down what it tells."""

    def __init__(self, shown: Progress, log: TextIO | None, blocks: int) -> None:
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
        if interval["at_s"] - self._told_at_s >= EVERY_S:
            self._told_at_s = interval["at_s"]
            self._write(f"  {speed(interval)}; {duration(seconds_left)} left")
        self._shown.interval(trial, interval, seconds_left)

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """What the trial came to."""
        self._write(f"  {outcome(trial, measurement)}")
        self._shown.end(trial, measurement, seconds_left)

    def _write(self, text: str) -> None:
        if self._log is None:
            return
        try:
            self._log.write(f"{datetime.now().astimezone().isoformat(' ', 'seconds')} {text}\n")
            self._log.flush()
        except OSError:
            self._log = None


@contextmanager
def logged(shown: Progress, folder: Path, blocks: int) -> Iterator[LoggedProgress]:
    """The same progress, written to `NAME` in the run's folder too, for the length of the block.

    Args:
        blocks: how many blocks the plan has, to say "block 2/5".
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = (folder / NAME).open("a", encoding="utf-8")
    except OSError:
        yield LoggedProgress(shown, None, blocks)
        return
    try:
        yield LoggedProgress(shown, log, blocks)
    finally:
        with suppress(OSError):
            log.close()
