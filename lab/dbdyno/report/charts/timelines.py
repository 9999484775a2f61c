"""Series of every trial as small multiples: a row a cell, a column a system, a line a trial.

An average run hides what one run did, so none is drawn. Systems of one row share the axis, since
they are to be compared; rows have their own. Keys of the data are short, as a long run has
a hundred thousand of them, and a line is one row whose points are unfolded when it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.language.words import Text, say
from dbdyno.measurement.measurement import Cell
from dbdyno.report.charts.base import WIDTH, Spec
from dbdyno.report.charts.looks import PARTED, SHADE
from dbdyno.report.ladders import level_words

HEIGHT: Final = 120
PANEL_WIDTH_MIN: Final = 120
PANEL_GAP: Final = 30
POINTS_MAX: Final = 300
"""A longer line is drawn by means of several seconds."""
DIGITS: Final = 4
DASHES: Final = ([1, 0], [4, 3])
ON_GROUND: Final = "isValid(datum.m) && !isValid(datum.y)"
ON_LINE: Final = "isValid(datum.m) && isValid(datum.y)"
OF_LINE: Final = "!isValid(datum.m) && isValid(datum.y)"


@dataclass(frozen=True)
class Line:
    """One series of one trial.

    Attributes:
        block: counted from 1, as people do.
        trial: tells the line from others of its block.
        kind: what is drawn solid or dashed.
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
    """Something that happened: on a line at `value`, or at the panel's ground without one."""

    cell: Cell
    system: str
    block: int
    at_s: float
    what: Text
    value: float | None = None


@dataclass(frozen=True)
class Words:
    """What the axes and legends say.

    Attributes:
        unit: of the vertical axis.
        kinds: both kinds of lines, the solid one first.
        of_kinds: what kinds are kinds of.
        marks: the marks there are, each with its shape.
    """

    unit: Text
    kinds: tuple[Text, Text]
    of_kinds: Text
    marks: tuple[tuple[Text, str], ...] = ()


def multiples(
    lines: Sequence[Line],
    marks: Sequence[Mark],
    systems: Sequence[str],
    warmup_s: float,
    words: Words,
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
    return rows[0] if len(rows) == 1 else {"vconcat": rows, "spacing": 12}


@dataclass(frozen=True)
class _Place:
    first: bool
    last: bool


def _row(
    cell: Cell,
    systems: Sequence[str],
    lines: Sequence[Line],
    marks: Sequence[Mark],
    warmup_s: float,
    words: Words,
    place: _Place,
) -> Spec:
    width = max(PANEL_WIDTH_MIN, (WIDTH - PANEL_GAP * (len(systems) - 1)) // len(systems))
    header = {"labels": place.first, "title": None, "labelLimit": width}
    return {
        "data": {"values": [*_of_systems(systems, warmup_s), *_of_lines(lines), *_of_marks(marks)]},
        "transform": [{"flatten": ["x", "y"]}],
        "facet": {
            "column": {
                "field": "s",
                "type": "nominal",
                "sort": list(systems),
                "title": None,
                "header": header,
            }
        },
        "spacing": 16,
        "spec": {
            "width": width,
            "height": HEIGHT,
            "layer": _layers(words, level_words(cell), place.last, bool(marks)),
        },
    }


def _of_systems(systems: Sequence[str], warmup_s: float) -> Iterator[Spec]:
    """Keeps a panel for a system that has no line in this row, and shades the warm-up."""
    return ({"s": system, "w": warmup_s, "x": [0], "y": [None]} for system in systems)


def _of_lines(lines: Iterable[Line]) -> Iterator[Spec]:
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


def _layers(words: Words, level: Text, last: bool, marked: bool) -> list[Spec]:
    x = {
        "field": "x",
        "type": "quantitative",
        "title": say("seconds of load") if last else None,
        "scale": {"nice": False, "zero": True},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": [words.unit, level],
        "scale": {"zero": True},
        "axis": {"labelExpr": PARTED, "tickCount": 4},
    }
    shade = {
        "mark": {"type": "rect", **SHADE},
        "transform": [{"filter": "datum.w > 0"}],
        "encoding": {"x": x, "x2": {"field": "w"}},
    }
    line = {
        "mark": {"type": "line", "strokeWidth": 1.2, "opacity": 0.85},
        "transform": [{"filter": OF_LINE}],
        "encoding": {"x": x, "y": y, "detail": {"field": "t"}, "color": _by_block()}
        | {"strokeDash": _by_kind(words)},
    }
    return [shade, line, *(_mark_layers(words, x, y) if marked else [])]


def _by_block() -> Spec:
    return {
        "field": "b",
        "type": "ordinal",
        "title": say("block"),
        "scale": {"scheme": {"name": "viridis", "extent": [0, 0.88]}},
    }


def _by_kind(words: Words) -> Spec:
    return {
        "field": "k",
        "type": "nominal",
        "title": words.of_kinds,
        "scale": {"domain": list(words.kinds), "range": list(DASHES)},
    }


def _mark_layers(words: Words, x: Spec, y: Spec) -> list[Spec]:
    same = {
        "x": x,
        "color": _by_block(),
        "shape": {
            "field": "m",
            "type": "nominal",
            "title": say("marks"),
            "scale": {
                "domain": [what for what, _ in words.marks],
                "range": [shape for _, shape in words.marks],
            },
        },
    }
    point = {"type": "point", "filled": True, "opacity": 1, "size": 45}
    return [
        {
            "mark": point,
            "transform": [{"filter": ON_GROUND}],
            "encoding": {**same, "y": {"value": HEIGHT - 5}},
        },
        {"mark": point, "transform": [{"filter": ON_LINE}], "encoding": {**same, "y": y}},
    ]
