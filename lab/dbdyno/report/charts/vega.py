"""Vega-Lite as charts use it: the theme, and builders of axes, scales, layers and panels.

Specifications of Vega-Lite are plain values, so their sentences stay translatable (`words.Said`)
and charts follow the report's language. A chart itself says only which rows it draws and by which
fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any, Final, NamedTuple

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, listed, say
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder

Spec = dict[str, Any]

# The theme. Systems have the colours of Okabe and Ito, which colour-blind readers can distinguish,
# and shapes, for prints in grey. Verdicts have the tones of the report's tables, light enough for
# text in `ON_VERDICT`.

GREY: Final = "#888888"
INK: Final = "#222222"
ON_VERDICT: Final = "#1b1f24"
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
SHADE: Final[Spec] = {"color": GREY, "opacity": 0.15}
"""Of a mark that shades a part of a panel."""
LINE: Final[Spec] = {"strokeWidth": 1.5, "opacity": 0.55}
POINT: Final[Spec] = {"size": 60, "filled": True, "opacity": 1}
_TEXT: Final = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
THEME: Final[Spec] = {
    "font": "Helvetica, Arial, sans-serif",
    "background": "white",
    "padding": 8,
    "aria": False,
    "view": {"stroke": None},
    "title": {
        "fontSize": 12,
        "fontWeight": "bold",
        "color": INK,
        "anchor": "start",
        "frame": "group",
        "offset": 10,
        "subtitleFontSize": 12,
        "subtitleColor": INK,
    },
    "axis": {
        **_TEXT,
        "gridColor": "#e4e4e4",
        "domainColor": GREY,
        "tickColor": GREY,
        "labelColor": INK,
        "titleColor": INK,
    },
    "legend": {
        **_TEXT,
        "labelColor": INK,
        "titleColor": INK,
        "orient": "bottom",
        "labelLimit": 400,
        "columns": 6,
        "columnPadding": 24,
        "padding": 10,
        "symbolOpacity": 1,
    },
    "header": {
        "labelFontSize": 12,
        "labelLimit": 400,
        "labelFontWeight": "bold",
        "labelColor": INK,
    },
}
"""Vega-Lite configuration of every chart; fonts are the reader's own."""


class VerdictLook(NamedTuple):
    """A verdict's words, sign, and colour as a background and as a line."""

    words: Text
    sign: str
    background: str
    line: str


VERDICTS: Final[Mapping[tuple[Word, bool], VerdictLook]] = {
    (Word.BETTER, True): VerdictLook(say("faster, beyond the margin"), "▲", "#8ED1B6", "#00684A"),
    (Word.BETTER, False): VerdictLook(say("faster"), "▲", "#D3EEE4", "#4C9C82"),
    (Word.EQUIVALENT, False): VerdictLook(say("same"), "=", "#D6D6D6", "#7A7A7A"),
    (Word.UNDECIDED, False): VerdictLook(say("not enough data"), "?", "#F4E285", "#B08A00"),
    (Word.WORSE, False): VerdictLook(say("slower"), "▼", "#F8DDCD", "#CB7A4C"),
    (Word.WORSE, True): VerdictLook(say("slower, beyond the margin"), "▼", "#ECA988", "#B3400A"),
    (Word.VOID, False): VerdictLook(say("void"), "∅", "#CDB9E0", "#8E63C7"),
    (Word.NO_VERDICT, False): VerdictLook(say("no verdict"), "–", "#F2F2F2", "#A0A0A0"),
}
"""By the word, and whether it is beyond the margin; good to bad."""


def look_of(verdict: Verdict) -> VerdictLook:
    """Appearance of a verdict in charts."""
    return VERDICTS[verdict.word, verdict.material]


def verdict_scale(shown: Iterable[str], *, lines: bool = False) -> Spec:
    """Colour scale of the visible words, in the order of `VERDICTS`.

    Args:
        lines: colours for lines and points, not for backgrounds.
    """
    seen = set(shown)
    looks = [look for look in VERDICTS.values() if look.words in seen]
    return scale((look.words, look.line if lines else look.background) for look in looks)


def scale(values: Iterable[tuple[Text | str, object]]) -> Spec:
    """Sign for each name: a colour, a shape, dashes."""
    pairs = list(values)
    return {"domain": [name for name, _ in pairs], "range": [value for _, value in pairs]}


# Fields: what is drawn along an axis, or by colour and shape.

PARTED: Final = "replace(format(datum.value, ',.6~r'), /,/g, '\u202f')"
"""Axis labels with the thousands parted as in the tables."""
OFFSET: Final = 0.07
OFFSETS_MAX: Final = 0.5
"""Distance of two systems, and of all of them, in distances of load levels."""
LEVELS_LABELLED_MAX: Final = 10
"""With more levels some go without their label where there is no room."""


def quantitative(field: str, **more: object) -> Spec:
    """A field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def nominal(field: str, **more: object) -> Spec:
    """A field of names, in no order of their own."""
    return {"field": field, "type": "nominal", **more}


def ordinal(field: str, order: Sequence[str], title: Text | None, **axis: object) -> Spec:
    """A field of names along an axis without lines, in the given order."""
    plain = {"domain": False, "ticks": False, "grid": False, **axis}
    scale = {"domain": order}
    return {
        "field": field,
        "type": "ordinal",
        "sort": order,
        "scale": scale,
        "title": title,
        "axis": plain,
    }


def span(axis: str, low: Spec) -> Spec:
    """Span from a field to the field `high` along an axis."""
    return {axis: low, f"{axis}2": {"field": "high"}}


def from_zero(field: str, title: Text, ticks: int = 6) -> Spec:
    """A quantity on an axis from zero: a cut axis makes 2 % look like half."""
    axis = {"labelExpr": PARTED, "tickCount": ticks}
    return quantitative(field, title=title, scale={"zero": True}, axis=axis)


def load_axis(ladder: Ladder) -> Spec:
    """The axis of load levels, at equal distances, since they are usually powers of two."""
    return quantitative(
        "place",
        title=ladder.load_title,
        scale={"domain": [-0.4, len(ladder.levels) - 0.6], "nice": False},
        axis={
            "values": list(range(len(ladder.levels))),
            "labelExpr": f"{ladder.levels}[datum.value]",
            "grid": False,
            "labelOverlap": len(ladder.levels) > LEVELS_LABELLED_MAX,
        },
    )


def offset(systems: Sequence[str], system: str) -> float:
    """Offset of a system, to keep intervals from hiding each other."""
    middle = (len(systems) - 1) / 2
    return (systems.index(system) - middle) * min(OFFSET, OFFSETS_MAX / len(systems))


def colour(systems: Sequence[str]) -> Spec:
    """A system's colour, the same in all charts of a report."""
    return _by_system(systems, COLOURS)


def shape(systems: Sequence[str]) -> Spec:
    """A system's shape, for readers without its colour."""
    return _by_system(systems, SHAPES)


def _by_system(systems: Sequence[str], looks: Sequence[str]) -> Spec:
    return nominal("system", title=None, scale=scale(zip(systems, cycle(looks))))


def tooltip(*fields: tuple[str, Text]) -> list[Spec]:
    """The tooltip of a mark: field and words of each line."""
    numbers = {"value", "low", "high", "latency", "tps"}
    return [
        {"field": field, "title": words}
        | ({"type": "quantitative", "format": ",.4~r"} if field in numbers else {"type": "nominal"})
        for field, words in fields
    ]


def load_tooltip(*fields: tuple[str, Text]) -> list[Spec]:
    """The tooltip of a point over load: system, load, then these."""
    return tooltip(("system", say("system")), ("level", say("load")), *fields)


# Layers and panels.

WIDTH: Final = 640
"""Of all panels that stand side by side, in the units of a page of normal width."""
TITLE_OVER: Final = 90
"""A panel's title may be so much wider than the panel: there is an axis beside it."""
POINTS_LISTED_MAX: Final = 40
"""A longer list is no description."""


def layer(mark: str, encoding: Spec, *, where: object = None, **look: object) -> Spec:
    """A layer of marks.

    Args:
        where: a filter for the rows; None for all.
        look: properties of the mark (its size).
    """
    chosen = {} if where is None else {"transform": [{"filter": where}]}
    return {"mark": {"type": mark, **look}, **chosen, "encoding": encoding}


def panel(title: Text, rows: Sequence[Spec], layers: list[Spec], width: int, height: int) -> Spec:
    """A panel with data of its own."""
    return {
        "title": {"text": title, "limit": width + TITLE_OVER},
        "data": {"values": list(rows)},
        "width": width,
        "height": height,
        "layer": layers,
    }


def equal_panels(panels: Sequence[tuple[Text, Sequence[Spec], list[Spec]]], height: int) -> Spec:
    """Panels of equal size, two in a row; a single panel has the page's width.

    Args:
        panels: title, rows and layers of each.
    """
    size = (WIDTH, height) if len(panels) == 1 else (WIDTH // 2 - 40, height - 80)
    return side_by_side([panel(*one, *size) for one in panels])


def side_by_side(panels: Sequence[Spec], columns: int = 2) -> Spec:
    """Panels in rows, or a single panel; colours and shapes mean the same in all."""
    if len(panels) == 1:
        return panels[0]
    return {"concat": list(panels), "columns": columns, "spacing": {"row": 28, "column": 24}}


def stacked(panels: Sequence[Spec], spacing: int = 26) -> Spec:
    """Panels below each other, or a single panel."""
    return panels[0] if len(panels) == 1 else {"vconcat": list(panels), "spacing": spacing}


def figure(
    name: str, title: Text, unit: Text, points: Sequence[Text], spec: Spec, note: Text
) -> Figure:
    """A chart with its title, unit and points as text alternative."""
    return Figure(name, title, description(title, unit, points), spec, note)


def description(title: Text, unit: Text, points: Sequence[Text]) -> Text:
    """A chart's text alternative: its subject, then its points unless too many."""
    many = say("{count} points; the tables have their numbers", count=len(points))
    listing = many if len(points) > POINTS_LISTED_MAX else listed(points, "; ")
    return say("{title}, {unit}. {points}.", title=title, unit=unit, points=listing)
