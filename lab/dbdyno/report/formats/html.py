"""A story as a self-contained HTML file: no outside picture, font or address.

Charts stand in it twice: as SVG for print and readers without scripts, and as its specification
with Vega for interaction. Without vl-convert there is no SVG, and Vega alone draws them. The
template escapes every text; only SVG of `charts/drawing.py` is taken as it is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from dbdyno.language.catalogues import Language
from dbdyno.language.words import CLAUSE, Said, say
from dbdyno.report.charts import converter
from dbdyno.report.charts.drawing import VEGA_LITE, Drawing, can_draw
from dbdyno.report.document import finite
from dbdyno.report.formats import markdown
from dbdyno.report.formats.font import carried
from dbdyno.report.parts import Figure, Story, Table, line, without_charts

SIZE: Final = "\ue000"
"""Stands for the page's own size until it is known."""
FONT: Final = "/* font */"
"""Stands for the font with the page's characters until all of them are known."""
WIDE: Final = 6
"""A table of more columns is read row by row on a tablet too."""
NARROW: Final = 4
"""A table of more columns is read row by row on a phone."""
WORDS: Final = {
    "skip": say("Skip to the report"),
    "brand": say("dbdyno report"),
    "all_runs": say("All runs"),
    "dark": say("Dark colours"),
    "words": say("This chart in words"),
    "save": say("Save as"),
    "one_file": say(
        "This page is one file of {size}, which needs no network.",
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
        drawings: a drawing for each figure of the story, or no drawing.
        language: the story's, for the page's own words.
        home: address of the parent page; None without a parent.
    """
    charts = {drawing.figure.name: Markup(drawing.inline) for drawing in drawings}  # noqa: S704
    if not charts and story.figures and not program():
        story = without_charts(story, language)
    scripts = [program(), page_script()] if story.figures else [page_script()]
    rendered = _template(language).render(
        story=story,
        charts=charts,
        specs={figure.name: as_json(specification(figure)) for figure in story.figures},
        dark=as_json(DARK),
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own
        policy=policy(scripts),
        words={key: line(text, language) for key, text in WORDS.items()},
        lang=language.tag,
        home=home,
    )
    page = rendered.replace(FONT, carried(rendered))
    return page.replace(SIZE, f"{len(page.encode()) / 1e6:.1f} MB")


@cache
def _template(language: Language) -> Template:
    """The page of a language; reading it takes 50 ms."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["width"] = _width
    environment.filters["kind"] = lambda part: type(part).__name__
    environment.filters["stopped"] = lambda text: line(Said(CLAUSE, {"clause": text}), language)
    environment.filters["commands"] = _with_commands
    environment.filters["with_rows"] = lambda table: markdown.with_rows(table, language)
    return environment.get_template("report.html.j2")


def _width(table: Table) -> str:
    """The class of a table, by how many columns it has."""
    columns = len(table.columns)
    return "many" if columns > WIDE else "some" if columns > NARROW else "few"


def _unbroken(value: object) -> object:
    """No line ends before a percent sign or within an interval; charts stay as they are."""
    if isinstance(value, str) and not isinstance(value, Markup):
        value = re.sub(r"(?<=\d) %", "\u00a0%", value)
        return re.sub(r"\[[^],]+, [^],]+\]", lambda ends: ends[0].replace(" ", "\u00a0"), value)
    return value


def _with_commands(text: str) -> Markup:
    """A sentence with its commands as code."""
    parts = markdown.COMMAND.split(str(_unbroken(text)))
    code = Markup("<code>{}</code>")
    return Markup().join(
        code.format(one) if at % 2 else escape(one) for at, one in enumerate(parts)
    )


# Interactive charts. Vega comes from vl-convert, which draws the SVG and PNG too, so that page and
# pictures have one version; a wheel has it as a file. It is inlined; the content security policy
# allows exactly these scripts, by their digests, no eval and no connection, so chart expressions
# are interpreted.

TEMPLATES: Final = Path(__file__).parents[1] / "templates"
PROGRAM: Final = TEMPLATES / "vega.js"
"""The chart program of a wheel, which `make release` writes; no file of a clone."""
EXPORT: Final = "window.dbdynoEmbed = vegaEmbed;"
"""The name under which a page's own script finds the program."""
DARK: Final = {
    "white": "#14181d",
    "#ffffff": "#14181d",
    "#222222": "#e6eaee",
    "#888888": "#8a949e",
    "#e4e4e4": "#333b44",
    "black": "#e6eaee",
    "#000000": "#e6eaee",
    "#0072b2": "#56a8e0",
    "#d55e00": "#ff8c42",
    "#009e73": "#3fc79a",
    "#cc79a7": "#e29cc5",
}
"""What becomes of a chart's colours on a dark page; those left out can be seen on both."""


@cache
def program() -> str:
    """The chart program as JavaScript text: a wheel's file, or made in two seconds.

    It is empty where both the file and vl-convert are missing.
    """
    if PROGRAM.is_file():
        return PROGRAM.read_text(encoding="utf-8")
    return converter.bundle(EXPORT, VEGA_LITE) if can_draw() else ""


@cache
def page_script() -> str:
    """The script of a report: colours by choice, interactive charts."""
    return "".join((TEMPLATES / script).read_text() for script in ("colours.js", "report.js"))


def specification(figure: Figure) -> dict[str, Any]:
    """The figure's Vega-Lite for a page, without the schema's address and non-finite numbers."""
    spec = finite(figure.spec)
    if not isinstance(spec, dict):
        raise TypeError("a chart's specification is a mapping")
    return {key: value for key, value in spec.items() if key != "$schema"}


def as_json(value: object) -> Markup:
    """JSON to stand inside a `<script>` element, which no text in it can end."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - escaped above for where it stands


def policy(scripts: Iterable[str]) -> str:
    """The page's Content-Security-Policy: these scripts only, no other source."""
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    may_run = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {may_run or chr(39) + 'none' + chr(39)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
