"""The log of a run: what a person would have seen, with the time, for the morning after.

Every line of the plain progress goes to a file beside the run's report; a resumed run goes on in
it. A log that cannot be written is given up without a word to the run (`progress_file`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from dbdyno.cli.progress import outcome, place, speed
from dbdyno.cli.progress_file import GrowingFile, growing
from dbdyno.experiment.progress import Progress
from dbdyno.judge.wording import duration
from dbdyno.measurement.measurement import Measurement, Trial

NAME: Final = "log.txt"
EVERY_S: Final = 60.0
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
        if interval["at_s"] - self._told_at_s >= EVERY_S:
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
    with growing(folder / NAME) as log:
        yield LoggedProgress(shown, log, blocks)
