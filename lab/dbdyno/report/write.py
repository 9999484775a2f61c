"""Writes the report of a run: HTML, Markdown, JSON and charts.

    plan, measurements, judgement, facts ─story────▶ sections ─▶ HTML, Markdown; charts ─▶ SVG, PNG
                                         ─document─▶ JSON

The report adds no judgement of its own: every word and number is the judge's or is counted from
the measurements. The report of an empty, incomplete or void run says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import StoreError
from dbdyno.files import make_folder, replaced
from dbdyno.judge.judgement import Judgement
from dbdyno.language.catalogues import Language
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan
from dbdyno.report import document as report_document
from dbdyno.report.charts.drawing import Drawing, draw_all
from dbdyno.report.formats import html, markdown
from dbdyno.report.parts import translated, without_charts
from dbdyno.report.story import story_of


@dataclass(frozen=True)
class Written:
    """The files of a report.

    Attributes:
        charts: for each chart its SVG, then its PNG; empty without vl-convert.
    """

    html: Path
    markdown: Path
    json: Path
    charts: tuple[Path, ...]


def write(
    folder: Path,
    plan: Plan,
    measurements: Sequence[Measurement],
    judgement: Judgement,
    run: RunFacts,
    language: Language = Language.EN,
) -> Written:
    """Writes report.html, report.md, report.json and charts/ into the folder.

    Each file appears whole or not at all; the pages come last, so a page never names a chart
    that is not there.

    Args:
        language: of the pages and charts; report.json has the same words in every language.

    Raises:
        StoreError: the folder cannot be written.
    """
    story = translated(story_of(plan, measurements, judgement, run), language)
    drawings = draw_all(story.figures)
    page = markdown.render(story if drawings else without_charts(story, language), language)
    document = report_document.text(report_document.document(plan, measurements, judgement, run))
    try:
        return Written(
            charts=tuple(path for drawing in drawings for path in _charts(folder, drawing)),
            json=_whole(folder / "report.json", document.encode()),
            markdown=_whole(folder / "report.md", page.encode()),
            html=_whole(
                folder / "report.html", html.render(story, drawings, language=language).encode()
            ),
        )
    except OSError as error:
        raise StoreError(
            f"the report cannot be written: {error.strerror or error}",
            wanted=f"a report in {folder}",
            hint="name another folder (dbdyno report RUN --out DIR), or make this one writable",
        ) from error


def _charts(folder: Path, drawing: Drawing) -> tuple[Path, Path]:
    charts = folder / markdown.CHARTS
    return (
        _whole(charts / f"{drawing.figure.name}.svg", drawing.svg.encode()),
        _whole(charts / f"{drawing.figure.name}.png", drawing.png),
    )


def _whole(path: Path, content: bytes) -> Path:
    make_folder(path.parent)
    with replaced(path) as new:
        new.write_bytes(content)
    return path
