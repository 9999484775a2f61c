"""A story as one HTML file that needs nothing else: no script, no font, no address outside.

Charts stand in it as SVG. Every text is escaped by the template; only the SVG that the drawing
room made is taken as it is.
"""

from __future__ import annotations

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
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda part: type(part).__name__
    charts = {drawing.figure.name: Markup(drawing.inline) for drawing in drawings}  # noqa: S704
    return environment.get_template("report.html.j2").render(story=story, charts=charts)
