"""What panels over load have in common: the axes, a system's colour and shape, their arrangement.

Specifications are plain values, so that the sentences in them stay sentences (`words.Said`) and a
report in another language has charts in it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

import vl_convert

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, listed, say
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder

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


# How every chart looks: colours, shapes and the configuration that all specifications share.
#
# Colours of systems are those of Okabe and Ito, which colour-blind readers can tell apart; systems
# differ in shape too, so that a print in grey still works. Colours of verdicts are light enough for
# figures in `ON_VERDICT` on them, whatever the page's own ground.


GREY: Final = "#888888"
INK: Final = "#222222"
ON_VERDICT: Final = "#1b1f24"
SHADE: Final = {"color": GREY, "opacity": 0.15}
"""Properties of a mark that shades a part of a panel."""
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
PARTED: Final = "replace(format(datum.value, ',.6~r'), /,/g, '\u202f')"
"""Axis labels with the thousands parted as in the tables."""
TEXT: Final = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
LOOKS: Final[dict[str, Any]] = {
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
        **TEXT,
        "gridColor": "#e4e4e4",
        "domainColor": GREY,
        "tickColor": GREY,
        "labelColor": INK,
        "titleColor": INK,
    },
    "legend": {
        **TEXT,
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

VERDICTS: Final[tuple[tuple[Text, str, str, str], ...]] = (
    (say("better, beyond the margin"), "▲", "#56B4E9", "#0072B2"),
    (say("better"), "▲", "#B5DCF3", "#4A9CCB"),
    (say("equivalent"), "=", "#D6D6D6", "#7A7A7A"),
    (say("undecided"), "?", "#F4E285", "#B08A00"),
    (say("worse"), "▼", "#F6C9AB", "#E2883F"),
    (say("worse, beyond the margin"), "▼", "#E8894D", "#D55E00"),
    (say("void"), "∅", "#CDB9E0", "#8E63C7"),
    (say("no verdict"), "–", "#F2F2F2", "#A0A0A0"),
)
"""A verdict's words, its sign, its colour as a ground for figures and as a line; good to bad."""
_PLACES: Final = {
    (Word.BETTER, True): 0,
    (Word.BETTER, False): 1,
    (Word.EQUIVALENT, False): 2,
    (Word.UNDECIDED, False): 3,
    (Word.WORSE, False): 4,
    (Word.WORSE, True): 5,
    (Word.VOID, False): 6,
    (Word.NO_VERDICT, False): 7,
}


def verdict_words(verdict: Verdict) -> Text:
    """What a verdict is called in charts."""
    return words_of(verdict.word, material=verdict.material)


def words_of(word: Word, *, material: bool) -> Text:
    """What a word is called in charts."""
    return VERDICTS[_PLACES[word, material]][0]


def verdict_sign(verdict: Verdict) -> str:
    """A sign that says the word to those who cannot tell its colour."""
    return VERDICTS[_PLACES[verdict.word, verdict.material]][1]


def verdict_scale(shown: Iterable[str], *, lines: bool = False) -> dict[str, Any]:
    """The colour scale of the words that are shown, in the order of `VERDICTS`.

    Args:
        lines: colours for lines and points, not for grounds.
    """
    seen = set(shown)
    rows = [row for row in VERDICTS if row[0] in seen]
    return {"domain": [row[0] for row in rows], "range": [row[3 if lines else 2] for row in rows]}


# From a chart's specification to SVG and PNG, without a browser and without the network.


VEGA_LITE: Final = "6.4"
"""The version of Vega-Lite that the charts are written in; vl-convert has it from 1.9 on."""
FONTS: Final = Path(__file__).parents[1] / "fonts"
"""Noto Sans SC in parts: what Chinese has for everyday use, as few servers have such a font."""
CHINESE: Final = re.compile("[\u3000-\u9fff\uff00-\uffef]")
PIXELS_PER_UNIT: Final = 2.0
OPENING: Final = re.compile(r"<svg\b[^>]*>")
SPACE: Final = re.compile(r'\sxmlns(?::xlink)?="[^"]*"')


@dataclass(frozen=True)
class Drawing:
    """A figure as files: SVG text and PNG bytes. Jupyter shows the SVG."""

    figure: Figure
    svg: str
    png: bytes

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def inline(self) -> str:
        """The SVG to be put into a page: named, scalable, its ids unlike any other chart's."""
        name = self.figure.name
        svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", self.svg)
        box = re.search(r'viewBox="\S+ \S+ (\S+) \S+"', svg)
        size = f'width="{box[1]}" {box[0]}' if box else ""
        opening = (
            f'<svg class="chart" role="img" aria-labelledby="{name}-title {name}-desc" '
            f"{size}>"
            f'<title id="{name}-title">{escape(self.figure.title)}</title>'
            f'<desc id="{name}-desc">{escape(self.figure.description)}</desc>'
        )
        return SPACE.sub("", OPENING.sub(lambda _: opening, svg, count=1))


@cache
def _learn_chinese() -> None:
    """Makes the glyphs of `fonts/` known to the drawing program, for the rest of the process."""
    vl_convert.register_font_directory(str(FONTS))


def draw(figure: Figure) -> Drawing:
    """Draws a figure; the PNG is made from the SVG, so the two cannot differ."""
    if CHINESE.search(json.dumps(figure.spec, ensure_ascii=False)):
        _learn_chinese()
    svg = vl_convert.vegalite_to_svg(dict(figure.spec), vl_version=VEGA_LITE)
    png = vl_convert.svg_to_png(svg, scale=PIXELS_PER_UNIT)
    return Drawing(figure, svg, bytes(png))
