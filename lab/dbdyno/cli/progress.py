"""What a person sees on stderr while a run goes on: where it is, how long it takes, how fast it is.

On a terminal two lines are redrawn in place under the finished trials; elsewhere (a log, CI, a
terminal that cannot) plain lines come at most every ten seconds. Both say the same sentences, which
are made by pure functions. stdout is left to the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dbdyno.judge.wording import duration
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME

EVERY_S: Final = 10.0
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
        if interval["at_s"] - self._told_at_s >= EVERY_S:
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
