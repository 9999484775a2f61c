"""A story as one HTML file that needs nothing else: no font, no picture, no address outside.

Charts stand in it twice: as SVG, which serves print and readers without scripts, and as the
specification it was drawn from, with the program that lets it answer the pointer (`moving.py`).
Every text is escaped by the template; only what the drawing room made is taken as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dbdyno.language.catalogues import Language
from dbdyno.language.words import CLAUSE, Said, say
from dbdyno.report.charts.drawing import Drawing
from dbdyno.report.formats import markdown, moving
from dbdyno.report.parts import Story
from dbdyno.report.translation import line

SIZE: Final = "\ue000"
"""Stands for the page's own size until it is known."""
WORDS: Final = {
    "skip": say("Skip to the report"),
    "sections": say("Sections"),
    "brand": say("dbdyno report"),
    "all_runs": say("All runs"),
    "dark": say("Dark colours"),
    "words": say("This chart in words"),
    "save": say("Save as"),
    "one_file": say(
        "This page is one file of {size}. It asks nothing of any network; charts answer the "
        "pointer where scripts may run, and stand still in print.",
        size=SIZE,
    ),
    "top": say("To the top"),
}
"""What the page itself says; everything else is the story's."""


def render(
    story: Story,
    drawings: Iterable[Drawing],
    *,
    language: Language = Language.EN,
    home: str | None = None,
) -> str:
    """The whole report as a page.

    Args:
        drawings: one for each figure of the story.
        language: that of the story, for the page's own words.
        home: the address of a page above this one; None where the page stands alone.
    """
    environment = Environment(
        loader=FileSystemLoader(moving.TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda part: type(part).__name__
    environment.filters["stopped"] = lambda text: line(Said(CLAUSE, {"clause": text}), language)
    environment.filters["with_rows"] = lambda table: markdown.with_rows(table, language)
    charts = {drawing.figure.name: Markup(drawing.inline) for drawing in drawings}  # noqa: S704
    scripts = [moving.program(), moving.page_script()] if charts else [moving.page_script()]
    page = environment.get_template("report.html.j2").render(
        story=story,
        charts=charts,
        specs={
            figure.name: moving.as_json(moving.specification(figure)) for figure in story.figures
        },
        dark=moving.as_json(moving.DARK),
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own
        policy=moving.policy(scripts),
        words={key: line(text, language) for key, text in WORDS.items()},
        lang=language.tag,
        home=home,
    )
    return page.replace(SIZE, f"{len(page.encode()) / 1e6:.1f} MB")


def _unbroken(value: object) -> object:
    """A line may not end between a number and its percent sign; charts stay as they are."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub(r"(?<=\d) %", "\u00a0%", value)
    return value
