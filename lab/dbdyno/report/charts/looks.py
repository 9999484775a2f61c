"""How every chart looks: colours, shapes and the configuration that all specifications share.

Colours of systems are those of Okabe and Ito, which colour-blind readers can tell apart; systems
differ in shape too, so that a print in grey still works. Colours of verdicts are light enough for
figures in `ON_VERDICT` on them, whatever the page's own ground.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, say

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
