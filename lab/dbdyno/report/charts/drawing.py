"""From a chart's specification to SVG and PNG, without a browser and without the network.

vl-convert does it, an extra of 84 MB: without it a report's charts are drawn by the browser alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from dbdyno.errors import not_installed
from dbdyno.report.charts import converter
from dbdyno.report.parts import Figure

VEGA_LITE: Final = "6.4"
"""The version of Vega-Lite that the charts are written in; vl-convert has it from 1.9 on."""
FONTS: Final = Path(__file__).parents[1] / "fonts"
"""Noto Sans SC in parts: what Chinese has for everyday use, as few servers have such a font."""
CHINESE: Final = re.compile("[\u3000-\u9fff\uff00-\uffef]")
PIXELS_PER_UNIT: Final = 2.0
SVG_TAG: Final = re.compile(r"<svg\b[^>]*>")
NAMESPACES: Final = re.compile(r'\sxmlns(?::xlink)?="[^"]*"')


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
        return NAMESPACES.sub("", SVG_TAG.sub(lambda _: opening, svg, count=1))


def can_draw() -> bool:
    """True with vl-convert, the extra `charts`."""
    return find_spec("vl_convert") is not None


def draw_all(figures: Iterable[Figure]) -> list[Drawing]:
    """Draw all figures; an empty list without vl-convert."""
    return [draw(figure) for figure in figures] if can_draw() else []


def draw(figure: Figure) -> Drawing:
    """Draw a figure; the PNG is made from the SVG, so the two cannot differ.

    Raises:
        UsageError: vl-convert is not installed.
    """
    if not can_draw():
        raise not_installed("a chart as SVG and PNG takes vl-convert", "charts", "no such module")
    is_chinese = CHINESE.search(json.dumps(figure.spec, ensure_ascii=False))
    fonts = str(FONTS) if is_chinese else ""
    return Drawing(figure, *converter.drawn(figure.spec, VEGA_LITE, PIXELS_PER_UNIT, fonts))
