"""Checkpoints and bursts of flushing, found in a server's counters.

They often cause dips and stalls, so they are marked below the rates. The first rule with counters
in the server applies:

- PostgreSQL counts its checkpoints: the reading after a rise of it.
- InnoDB has the age of its checkpoint, or the log's two positions whose distance it is: the
  reading at which the age has fallen to half or less.
- An older InnoDB counts the pages it flushed: a burst begins at three times the median rate.

Verdicts and findings do not use them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dbdyno.language.words import Text, say
from dbdyno.measurement.parts import StatusSeries

CHECKPOINT: Final = say("checkpoint")
BURST: Final = say("burst of flushing")
COUNTS: Final = (
    ("checkpointer.num_done",),
    ("checkpointer.num_timed", "checkpointer.num_requested"),
    ("bgwriter.checkpoints_timed", "bgwriter.checkpoints_req"),
)
"""PostgreSQL 18, 17, and before; the first that is there is complete."""
AGE: Final = "Innodb_checkpoint_age"
AGE_BETWEEN: Final = ("Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn")
FLUSHED: Final = "Innodb_buffer_pool_pages_flushed"
FALL: Final = 0.5
AGE_MIN_BYTES: Final = 1 << 20
"""A log that holds less than that has nothing to write out."""
BURST_TIMES: Final = 3.0
BURST_PAGES_PER_S_MIN: Final = 100.0

Reading = tuple[float, float]
"""Seconds since the load began, and a value."""


@dataclass(frozen=True)
class Moment:
    """An event with its time in seconds since the load began."""

    at_s: float
    what: Text


def moments(series: StatusSeries | None) -> list[Moment]:
    """Checkpoints or bursts of flushing in the counters; empty without counters."""
    if series is None:
        return []
    for names in COUNTS:
        if readings := _summed(series, names):
            return [Moment(at_s, CHECKPOINT) for at_s in _rises(readings)]
    for ages in (_summed(series, (AGE,)), _between(series)):
        if ages:
            return [Moment(at_s, CHECKPOINT) for at_s in _falls(ages)]
    return [Moment(at_s, BURST) for at_s in _bursts(_summed(series, (FLUSHED,)))]


def _readings(
    series: StatusSeries, names: Sequence[str], value: Callable[..., float]
) -> list[Reading]:
    """A value of several counters at each complete reading."""
    if not all(name in series.counters for name in names):
        return []
    columns = zip(*(series.counters[name] for name in names), strict=True)
    return [
        (at_s, value(*row))
        for at_s, row in zip(series.at_s, columns, strict=True)
        if None not in row
    ]


def _summed(series: StatusSeries, names: Sequence[str]) -> list[Reading]:
    return _readings(series, names, lambda *values: sum(values))


def _between(series: StatusSeries) -> list[Reading]:
    return _readings(series, AGE_BETWEEN, lambda current, checkpoint: current - checkpoint)


def _rises(readings: Sequence[Reading]) -> Iterator[float]:
    return (at_s for (_, before), (at_s, after) in pairwise(readings) if after > before)


def _falls(ages: Sequence[Reading]) -> Iterator[float]:
    """Readings at half or less of the highest age since the last fall."""
    highest = 0.0
    for at_s, age in ages:
        if highest >= AGE_MIN_BYTES and age <= highest * FALL:
            yield at_s
            highest = age
        highest = max(highest, age)


def _bursts(flushed: Sequence[Reading]) -> Iterator[float]:
    """Beginnings of flushing at three times the median rate."""
    rates = [
        (at_s, (after - before) / (at_s - since_s))
        for (since_s, before), (at_s, after) in pairwise(flushed)
        if at_s > since_s
    ]
    if not rates:
        return
    usual = statistics.median(rate for _, rate in rates)
    least = max(BURST_TIMES * usual, BURST_PAGES_PER_S_MIN)
    quiet = True
    for at_s, rate in rates:
        if quiet and rate >= least:
            yield at_s
        quiet = rate < least
