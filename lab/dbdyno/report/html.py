"""A story as one HTML file that needs nothing else: no script, no font, no address outside.

Charts stand in it as SVG. Every text is escaped by the template; only the SVG that the drawing
room made is taken as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dbdyno.report.drawing import Drawing
from dbdyno.report.parts import Story

TEMPLATES: Final = Path(__file__).parent / "templates"


def render(story: Story, drawings: Iterable[Drawing]) -> str:
    """The whole report as a page.

    Args:
        drawings: one for each figure of the story.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda part: type(part).__name__
    charts = {drawing.figure.name: Markup(drawing.inline) for drawing in drawings}  # noqa: S704
    return environment.get_template("report.html.j2").render(story=story, charts=charts)


def _unbroken(value: object) -> object:
    """A line may not end between a number and its percent sign; charts stay as they are."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub(r"(?<=\d) %", "\u00a0%", value)
    return value
