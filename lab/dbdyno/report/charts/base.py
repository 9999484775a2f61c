"""What panels over load have in common: the axes, a system's colour and shape, their arrangement.

Specifications are plain values, so that the sentences in them stay sentences (`words.Said`) and a
report in another language has charts in it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dbdyno.language.words import Text, listed, say
from dbdyno.report.charts.looks import COLOURS, PARTED, SHAPES
from dbdyno.report.ladders import Ladder

Spec = dict[str, Any]
WIDTH: Final = 640
"""Of all panels that stand side by side, in the units of a page of normal width."""
ASIDE: Final = 0.07
ASIDE_ALL_MAX: Final = 0.5
"""Distance of two systems, and of all of them, in distances of load levels."""
TITLE_OVER: Final = 50
"""A panel's title may be so much wider than the panel: there is an axis beside it."""
LEVELS_LABELLED_MAX: Final = 10
"""With more levels some go without their label where there is no room."""
POINTS_TOLD_MAX: Final = 40
"""A longer list is no description."""


def arranged(panels: Sequence[Spec], columns: int) -> Spec:
    """The panels side by side, or the one alone; colours and shapes mean the same in all."""
    if len(panels) == 1:
        return panels[0]
    return {"concat": list(panels), "columns": columns, "spacing": {"row": 28, "column": 24}}


def panel(title: Text, rows: Sequence[Spec], layers: list[Spec], width: int, height: int) -> Spec:
    """One panel with data of its own."""
    return {
        "title": {"text": title, "limit": width + TITLE_OVER},
        "data": {"values": list(rows)},
        "width": width,
        "height": height,
        "layer": layers,
    }


def aside(systems: Sequence[str], system: str) -> float:
    """Systems stand side by side, so that intervals do not hide each other."""
    middle = (len(systems) - 1) / 2
    return (systems.index(system) - middle) * min(ASIDE, ASIDE_ALL_MAX / len(systems))


def places(ladder: Ladder) -> Spec:
    """Load levels at equal distances, since they are usually powers of two."""
    return {
        "field": "place",
        "type": "quantitative",
        "title": ladder.load_title,
        "scale": {"domain": [-0.4, len(ladder.levels) - 0.6], "nice": False},
        "axis": {
            "values": list(range(len(ladder.levels))),
            "labelExpr": f"{ladder.levels}[datum.value]",
            "grid": False,
            "labelOverlap": len(ladder.levels) > LEVELS_LABELLED_MAX,
        },
    }


def from_zero(field: str, title: Text, ticks: int = 6) -> Spec:
    """A quantity whose axis begins at zero: a cut axis makes 2 % look like half."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": True},
        "axis": {"labelExpr": PARTED, "tickCount": ticks},
    }


def colour(systems: Sequence[str]) -> Spec:
    """A system's colour, the same in all charts of a report."""
    return _by_system(systems, COLOURS)


def shape(systems: Sequence[str]) -> Spec:
    """A system's shape, for those who cannot tell its colour."""
    return _by_system(systems, SHAPES)


def _by_system(systems: Sequence[str], looks: Sequence[str]) -> Spec:
    return {
        "field": "system",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": list(systems),
            "range": [looks[place % len(looks)] for place in range(len(systems))],
        },
    }


def shown(*fields: tuple[str, Text]) -> list[Spec]:
    """What a reader sees who points at a mark: field and words."""
    numbers = {"value", "low", "high", "latency", "tps"}
    return [
        {
            "field": field,
            "title": words,
            **({"type": "quantitative", "format": ",.4~r"} if field in numbers else {}),
            **({} if field in numbers else {"type": "nominal"}),
        }
        for field, words in fields
    ]


def where() -> list[tuple[str, Text]]:
    """The two fields that every point over load has."""
    return [("system", say("system")), ("level", say("load"))]


def in_words(title: Text, unit: Text, points: Sequence[Text]) -> Text:
    """A chart's text alternative: what it shows, then its points unless they are too many."""
    if len(points) > POINTS_TOLD_MAX:
        told: Text = say("{count} points; the tables have their numbers", count=len(points))
    else:
        told = listed(points, "; ")
    return say("{title}, {unit}. {points}.", title=title, unit=unit, points=told)
