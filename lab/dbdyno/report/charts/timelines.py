"""Small multiples of every trial's series: a row a cell, a column a system, a line a trial.

An average would hide single runs, so averages are not drawn. Systems of a row share the axis for
comparison; rows have their own. Keys of the data are short, as a long run has a hundred thousand of
them, and a line is a single row, unfolded into points by the chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.judge.beside.stability import Stability
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, phrase, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Interval, Phase, WatchSample
from dbdyno.report.charts import vega
from dbdyno.report.charts.checkpoints import BURST, CHECKPOINT, moments
from dbdyno.report.charts.vega import Spec
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Attempt, Ladder, State
from dbdyno.report.tell.measured import load_words

HEIGHT: Final = 120
PANEL_WIDTH_MIN: Final = 120
PANEL_GAP: Final = 30
POINTS_MAX: Final = 300
"""A longer line is drawn by means of several seconds."""
DIGITS: Final = 4
DASHES: Final = ([1, 0], [4, 3])
AT_BOTTOM: Final = "isValid(datum.m) && !isValid(datum.y)"
ON_LINE: Final = "isValid(datum.m) && isValid(datum.y)"
OF_LINE: Final = "!isValid(datum.m) && isValid(datum.y)"


@dataclass(frozen=True)
class Series:
    """A series of a trial.

    Attributes:
        block: counted from 1.
        trial: tells the line from others of its block.
        kind: quantity, drawn solid or dashed.
        points: (seconds since the load began, value), rising.
    """

    cell: Cell
    system: str
    block: int
    trial: str
    kind: Text
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Mark:
    """Mark of an event: on a line at `value`, or at the panel's bottom without a value."""

    cell: Cell
    system: str
    block: int
    at_s: float
    what: Text
    value: float | None = None


@dataclass(frozen=True)
class AxisTitles:
    """Texts of axes and legends.

    Attributes:
        unit: of the vertical axis.
        kinds: both kinds of lines, the solid one first.
        of_kinds: title of the kinds.
        marks: shapes by mark.
    """

    unit: Text
    kinds: tuple[Text, Text]
    of_kinds: Text
    marks: tuple[tuple[Text, str], ...] = ()


def multiples(
    lines: Sequence[Series],
    marks: Sequence[Mark],
    systems: Sequence[str],
    warmup_s: float,
    words: AxisTitles,
) -> Spec:
    """The specification; `warmup_s` from the load's begin are shaded."""
    shown = [system for system in systems if any(line.system == system for line in lines)]
    cells = list(dict.fromkeys(line.cell for line in lines))
    rows = [
        _row(
            cell,
            shown,
            [line for line in lines if line.cell == cell],
            [mark for mark in marks if mark.cell == cell],
            warmup_s,
            words,
            _Place(cell is cells[0], cell is cells[-1]),
        )
        for cell in cells
    ]
    return vega.stacked(rows, spacing=12)


@dataclass(frozen=True)
class _Place:
    first: bool
    last: bool


def _row(
    cell: Cell,
    systems: Sequence[str],
    lines: Sequence[Series],
    marks: Sequence[Mark],
    warmup_s: float,
    words: AxisTitles,
    place: _Place,
) -> Spec:
    width = max(PANEL_WIDTH_MIN, (vega.WIDTH - PANEL_GAP * (len(systems) - 1)) // len(systems))
    header = {"labels": place.first, "title": None, "labelLimit": width}
    return {
        "data": {"values": [*_of_systems(systems, warmup_s), *_of_lines(lines), *_of_marks(marks)]},
        "transform": [{"flatten": ["x", "y"]}],
        "facet": {"column": vega.nominal("s", sort=list(systems), title=None, header=header)},
        "spacing": 16,
        "spec": {
            "width": width,
            "height": HEIGHT,
            "layer": _layers(words, load_words(cell), place.last, bool(marks)),
        },
    }


def _of_systems(systems: Sequence[str], warmup_s: float) -> Iterator[Spec]:
    """Keep a panel for a system without a line in this row, and shade the warm-up."""
    return ({"s": system, "w": warmup_s, "x": [0], "y": [None]} for system in systems)


def _of_lines(lines: Iterable[Series]) -> Iterator[Spec]:
    for line in lines:
        points = thinned(line.points)
        yield {
            "s": line.system,
            "b": line.block,
            "t": line.trial,
            "k": line.kind,
            "x": [round(at_s, 2) for at_s, _ in points],
            "y": [_rounded(value) for _, value in points],
        }


def _of_marks(marks: Iterable[Mark]) -> Iterator[Spec]:
    for mark in marks:
        yield {
            "s": mark.system,
            "b": mark.block,
            "m": mark.what,
            "x": [round(mark.at_s, 2)],
            "y": [None if mark.value is None else _rounded(mark.value)],
        }


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Means of as many neighbours as it takes to have `POINTS_MAX` points at most."""
    size = math.ceil(len(points) / POINTS_MAX)
    if size <= 1:
        return list(points)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], math.fsum(value for _, value in group) / len(group)) for group in groups]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _layers(words: AxisTitles, level: Text, last: bool, marked: bool) -> list[Spec]:
    seconds = say("seconds of load") if last else None
    x = vega.quantitative("x", title=seconds, scale={"nice": False, "zero": True})
    y = vega.quantitative(
        "y",
        title=[words.unit, level],
        scale={"zero": True},
        axis={"labelExpr": vega.PARTED, "tickCount": 4},
    )
    kinds = vega.nominal(
        "k",
        title=words.of_kinds,
        scale=vega.scale(zip(words.kinds, DASHES, strict=True)),
    )
    line = {"x": x, "y": y, "detail": {"field": "t"}, "color": _by_block(), "strokeDash": kinds}
    return [
        vega.layer("rect", {"x": x, "x2": {"field": "w"}}, where="datum.w > 0", **vega.SHADE),
        vega.layer("line", line, where=OF_LINE, strokeWidth=1.2, opacity=0.85),
        *(_mark_layers(words, x, y) if marked else []),
    ]


def _by_block() -> Spec:
    return {
        "field": "b",
        "type": "ordinal",
        "title": say("block"),
        "scale": {"scheme": {"name": "viridis", "extent": [0, 0.88]}},
    }


def _mark_layers(words: AxisTitles, x: Spec, y: Spec) -> list[Spec]:
    shapes = vega.nominal("m", title=say("marks"), scale=vega.scale(words.marks))
    same = {"x": x, "color": _by_block(), "shape": shapes}
    point = {"filled": True, "opacity": 1, "size": 45}
    return [
        vega.layer("point", {**same, "y": {"value": HEIGHT - 5}}, where=AT_BOTTOM, **point),
        vega.layer("point", {**same, "y": y}, where=ON_LINE, **point),
    ]


# Throughput second by second, of trials that do not count too. Checkpoints are marked at the
# bottom, so that one sees which dips come with them.

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
    """Chart of a ladder; None without measurements."""
    ladders = _rising(ladder, attempts)
    lines: list[Series] = []
    for index, attempt in enumerate(ladders):
        kind = COUNTS if attempt.state is State.VALID else DOES_NOT
        points = [(interval.end_s, _rate(interval)) for interval in _drawn(attempt)]
        lines += _series(attempt, str(index), kind, points)
    if not lines:
        return None
    judged = {one.trial: one for one in judgement.stability}
    marks = [mark for attempt in ladders for mark in _marks(attempt, judged)]
    seen = {mark.what for mark in marks}
    words = AxisTitles(
        unit=say("TPS"),
        kinds=(COUNTS, DOES_NOT),
        of_kinds=say("trial"),
        marks=tuple(mark for mark in MARKS if mark[0] in seen),
    )
    warmup_s = max(attempt.measurement.warmup_s for attempt in ladders)
    title = say("Throughput of every trial, second by second: {ladder}", ladder=ladder.title)
    return Figure(
        name,
        title,
        _describe(title, lines, marks),
        multiples(lines, marks, systems, warmup_s, words),
        _note(warmup_s, marked=bool(marks)),
    )


def _rising(ladder: Ladder, attempts: Iterable[Attempt]) -> list[Attempt]:
    """Attempts on the ladder, its lowest level first."""
    on_ladder = [one for one in attempts if ladder.place(one.cell) is not None]
    return sorted(on_ladder, key=lambda one: ladder.place(one.cell) or 0)


def _series(
    attempt: Attempt, trial: str, kind: Text, points: Sequence[tuple[float, float]]
) -> list[Series]:
    block = attempt.measurement.trial.block + 1
    whole = Series(attempt.cell, attempt.system, block, trial, kind, tuple(points))
    return [whole] if points else []


def _drawn(attempt: Attempt) -> list[Interval]:
    return [
        interval
        for interval in attempt.measurement.intervals
        if interval.phase is not Phase.DRAIN and interval.end_s - interval.start_s >= INTERVAL_S_MIN
    ]


def _rate(interval: Interval) -> float:
    return interval.events / (interval.end_s - interval.start_s)


def _marks(attempt: Attempt, judged: Mapping[str, Stability]) -> Iterator[Mark]:
    """Stalls and dips on the line, as they were judged; checkpoints at the bottom."""

    def mark(at_s: float, what: Text, value: float | None = None) -> Mark:
        block = attempt.measurement.trial.block + 1
        return Mark(attempt.cell, attempt.system, block, at_s, what, value)

    drawn = _drawn(attempt)
    if not drawn:
        return
    judged_trial = judged.get(attempt.measurement.trial.key)
    if judged_trial is not None and attempt.state is State.VALID:
        for line in drawn:
            if any(
                line.start_s < stall.until_s <= line.end_s for stall in judged_trial.stalls or ()
            ):
                yield mark(line.end_s, STALL, _rate(line))
            elif any(dip.start_s < line.end_s <= dip.end_s for dip in judged_trial.dips):
                yield mark(line.end_s, DIP, _rate(line))
    last_s = drawn[-1].end_s
    for moment in moments(attempt.measurement.status_seconds):
        if 0 <= moment.at_s <= last_s:
            yield mark(moment.at_s, moment.what)


def _describe(title: Text, lines: Sequence[Series], marks: Sequence[Mark]) -> Text:
    counts = [mark.what for mark in marks]
    return say(
        "{title}. One line for each block, a row for each load level, a column for each system. "
        "Trials drawn: {trials}. Stalls: {stalls}, dips: {dips}, checkpoints: {checkpoints}, "
        "bursts of flushing: {bursts}.",
        title=title,
        trials=len(lines),
        stalls=counts.count(STALL),
        dips=counts.count(DIP),
        checkpoints=counts.count(CHECKPOINT),
        bursts=counts.count(BURST),
    )


def _note(warmup_s: float, *, marked: bool) -> Text:
    line = say("A line is a trial.")
    if warmup_s:
        line = say("A line is a trial. The shaded seconds are the warm-up, which does not count.")
    if not marked:
        return line
    return say(
        "{line} Marks on a line: a stall is 0.2 s or more without an answer, a dip a second below "
        "70 % of the trial's median. Marks at the bottom: checkpoints and bursts of flushing, "
        "from the server's counters.",
        line=line,
    )


# CPU and disk, which show why a rate falls: a busy disk, or other processes that take the CPU.


@dataclass(frozen=True)
class Timeline:
    """Two series of the machine on a shared axis.

    Attributes:
        name: begins the chart's name.
        title: with a place for the ladder.
        solid, dashed: each line's name and its value of a sample.
    """

    name: str
    title: str
    unit: Text
    solid: tuple[Text, Callable[[WatchSample], float | None]]
    dashed: tuple[Text, Callable[[WatchSample], float | None]]
    note: Text


def _others(sample: WatchSample) -> float:
    busy = sample.host_cpu_user + sample.host_cpu_system
    return max(0.0, busy - sample.server_cpu)


TIMELINES: Final = (
    Timeline(
        "cpu",
        phrase("CPU in every trial: {ladder}"),
        say("cores"),
        (say("server"), lambda sample: sample.server_cpu if sample.is_seen("server") else None),
        (say("all other processes"), _others),
        say(
            "All other processes include the load generator and dbdyno. The shaded seconds are "
            "the warm-up."
        ),
    ),
    Timeline(
        "disk",
        phrase("Disk in every trial: {ladder}"),
        name("MB/s"),
        (say("written"), lambda sample: sample.disk_written_bytes_per_s / 1e6),
        (say("read"), lambda sample: sample.disk_read_bytes_per_s / 1e6),
        say("All disks of the machine together. The shaded seconds are the warm-up."),
    ),
)


def timelines(
    number: int, ladder: Ladder, systems: Sequence[str], attempts: Iterable[Attempt]
) -> list[Figure]:
    """CPU and disk of a ladder's trials; empty without watch samples.

    Args:
        number: ends the charts' names.
    """
    ladders = _rising(ladder, (one for one in attempts if one.measurement.watch))
    return [_figure(line, number, ladder, systems, ladders) for line in TIMELINES if ladders]


def _figure(
    timeline: Timeline,
    number: int,
    ladder: Ladder,
    systems: Sequence[str],
    attempts: Sequence[Attempt],
) -> Figure:
    both = (timeline.solid, timeline.dashed)
    lines: list[Series] = []
    for index, attempt in enumerate(attempts):
        for place, (kind, read) in zip("ab", both, strict=True):
            seen = [(one.at_s, read(one)) for one in attempt.measurement.watch]
            points = [(at_s, value) for at_s, value in seen if value is not None]
            lines += _series(attempt, f"{place}{index}", kind, points)
    words = AxisTitles(
        unit=timeline.unit, kinds=(timeline.solid[0], timeline.dashed[0]), of_kinds=say("line")
    )
    warmup_s = max(attempt.measurement.warmup_s for attempt in attempts)
    title = say(timeline.title, ladder=ladder.title)
    description = say(
        "{title}, {unit}; two lines for each trial: {solid}, {dashed}. A row for each load level, "
        "a column for each system. Trials drawn: {trials}.",
        title=title,
        unit=timeline.unit,
        solid=timeline.solid[0],
        dashed=timeline.dashed[0],
        trials=len(attempts),
    )
    spec = multiples(lines, [], systems, warmup_s, words)
    return Figure(f"{timeline.name}-{number}", title, description, spec, timeline.note)
