"""The fitted scalability law as layers of a throughput chart: a dashed line in its shaded band.

The points stay, so that everybody sees how well the law fits them. Where the judge refuses a fit
there is none to draw, and the report says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dbdyno.judge.beside.scalability import Scalability
from dbdyno.language.words import Text
from dbdyno.report.charts.base import Spec, colour, from_zero
from dbdyno.report.ladders import Ladder

IS_FIT = "datum.fit"
IS_POINT = "!datum.fit"


def points(ladder: Ladder, systems: Sequence[str], laws: Iterable[Scalability]) -> list[Spec]:
    """The points of the fits on this ladder, each at its place between the levels."""
    if ladder.is_open:
        return []
    return [
        row
        for law in laws
        if (law.workload, law.setting) == (ladder.workload, ladder.setting)
        and law.system in systems
        for row in _points(ladder, law)
    ]


def _points(ladder: Ladder, fitted: Scalability) -> Iterator[Spec]:
    if fitted.law is None:
        return
    levels = np.log([cell.threads for cell in ladder.cells])
    for point in fitted.law.curve:
        if ladder.cells[0].threads <= point.threads <= ladder.cells[-1].threads:
            place = float(np.interp(np.log(point.threads), levels, np.arange(len(levels))))
            yield {
                "place": round(place, 3),
                "system": fitted.system,
                "fit": True,
                "value": point.per_s,
                "low": point.low,
                "high": point.high,
            }


def layers(systems: Sequence[str], unit: Text) -> list[Spec]:
    """What is drawn of the points: band and line, in the system's colour."""
    same = {"x": {"field": "place", "type": "quantitative"}, "color": colour(systems)}
    fit = [{"filter": IS_FIT}]
    return [
        {
            "mark": {"type": "area", "opacity": 0.14},
            "transform": fit,
            "encoding": {**same, "y": from_zero("low", unit), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "strokeWidth": 1, "strokeDash": [4, 3], "opacity": 0.8},
            "transform": fit,
            "encoding": {**same, "y": from_zero("value", unit)},
        },
    ]
