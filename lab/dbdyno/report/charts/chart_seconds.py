"""Throughput second by second of every trial, with what disturbed it marked.

A stall, a drift, a warm-up that had not ended: each shows in the line of its own trial. Those that
do not count are drawn too. Checkpoints stand at the ground, so that a dip can be seen to come with
one, or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.beside.stability import Stability
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, say
from dbdyno.measurement.measurement_parts import Interval, Phase
from dbdyno.report.charts.checkpoints import BURST, CHECKPOINT, moments
from dbdyno.report.charts.timelines import Line, Mark, Words, multiples
from dbdyno.report.ladders import Ladder
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Attempt, State

INTERVAL_S_MIN: Final = 0.5
"""A shorter piece at the end of a window gives a rate by chance; it is not drawn."""
COUNTS: Final = say("counts")
DOES_NOT: Final = say("does not count")
STALL: Final = say("stall")
DIP: Final = say("dip")
MARKS: Final = (
    (CHECKPOINT, "triangle-up"),
    (BURST, "diamond"),
    (STALL, "cross"),
    (DIP, "circle"),
)


def per_second(
    name: str,
    ladder: Ladder,
    systems: Sequence[str],
    attempts: Iterable[Attempt],
    judgement: Judgement,
) -> Figure | None:
    """The chart of one ladder; None if nothing was measured on it."""
    made = sorted(
        (a for a in attempts if ladder.place(a.cell) is not None),
        key=lambda a: ladder.place(a.cell) or 0,
    )
    lines = [line for index, attempt in enumerate(made) if (line := _line(index, attempt))]
    if not lines:
        return None
    judged = {one.trial: one for one in judgement.stability}
    marks = [mark for attempt in made for mark in _marks(attempt, judged)]
    seen = {mark.what for mark in marks}
    words = Words(
        unit=say("TPS"),
        kinds=(COUNTS, DOES_NOT),
        of_kinds=say("trial"),
        marks=tuple(mark for mark in MARKS if mark[0] in seen),
    )
    warmup_s = max(attempt.measurement.warmup_s for attempt in made)
    title = say("Throughput of every trial, second by second: {ladder}", ladder=ladder.title)
    return Figure(
        name,
        title,
        _describe(title, lines, marks),
        multiples(lines, marks, systems, warmup_s, words),
        _note(bool(marks)),
    )


def _line(index: int, attempt: Attempt) -> Line | None:
    points = tuple((one.end_s, _rate(one)) for one in _drawn(attempt))
    if not points:
        return None
    return Line(
        cell=attempt.cell,
        system=attempt.system,
        block=attempt.measurement.trial.block + 1,
        trial=str(index),
        kind=COUNTS if attempt.state is State.SOUND else DOES_NOT,
        points=points,
    )


def _drawn(attempt: Attempt) -> list[Interval]:
    return [
        interval
        for interval in attempt.measurement.intervals
        if interval.phase is not Phase.DRAIN and interval.end_s - interval.start_s >= INTERVAL_S_MIN
    ]


def _rate(interval: Interval) -> float:
    return interval.events / (interval.end_s - interval.start_s)


def _marks(attempt: Attempt, judged: Mapping[str, Stability]) -> Iterator[Mark]:
    """Stalls and dips on the line, as they were judged; checkpoints at the ground."""

    def mark(at_s: float, what: Text, value: float | None = None) -> Mark:
        block = attempt.measurement.trial.block + 1
        return Mark(attempt.cell, attempt.system, block, at_s, what, value)

    drawn = _drawn(attempt)
    if not drawn:
        return
    found = judged.get(attempt.measurement.trial.key)
    if found is not None and attempt.state is State.SOUND:
        for one in drawn:
            if any(one.start_s < stall.until_s <= one.end_s for stall in found.stalls or ()):
                yield mark(one.end_s, STALL, _rate(one))
            elif any(dip.start_s < one.end_s <= dip.end_s for dip in found.dips):
                yield mark(one.end_s, DIP, _rate(one))
    last_s = drawn[-1].end_s
    for moment in moments(attempt.measurement.status_seconds):
        if 0 <= moment.at_s <= last_s:
            yield mark(moment.at_s, moment.what)


def _describe(title: Text, lines: Sequence[Line], marks: Sequence[Mark]) -> Text:
    counts = [mark.what for mark in marks]
    return say(
        "{title}. One line for each block, a row for each load level, a column for each system; "
        "the warm-up is shaded. Trials drawn: {trials}. Stalls: {stalls}, dips: {dips}, "
        "checkpoints: {checkpoints}, bursts of flushing: {bursts}.",
        title=title,
        trials=len(lines),
        stalls=counts.count(STALL),
        dips=counts.count(DIP),
        checkpoints=counts.count(CHECKPOINT),
        bursts=counts.count(BURST),
    )


def _note(marked: bool) -> Text:
    line = say("A line is a trial; the shaded seconds are the warm-up, which does not count.")
    if not marked:
        return line
    return say(
        "{line} On a line, a stall is a fifth of a second without an answer, a dip a second below "
        "70 % of the trial's median; checkpoints and bursts of flushing, as the server's counters "
        "show them, stand at the ground.",
        line=line,
    )
