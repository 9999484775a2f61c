"""Writes the result of a run into the page of an example, and reports of examples for a release.

usage: .venv/bin/python tools/examples.py NAME RUN [WORKSPACE]
       .venv/bin/python tools/examples.py FOLDER        as `make release` does

NAME is a folder of `examples`, RUN the id of a run, `latest` or a bundle. The text of the page ends
at the line `MARK`; below it stands the result. A page without this line stays as it is. The run is
packed into `BUNDLES`, outside of git, as it may have tens of megabytes.
FOLDER gets the whole report of each packed run as ``NAME.html``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dbdyno import api
from dbdyno.report.formats import markdown
from dbdyno.report.parts import Items, Paragraph, Table
from dbdyno.report.story import story_of
from dbdyno.store import bundle

ROOT = Path(__file__).parents[1]
BUNDLES = ROOT / "target" / "examples"
MARK = "<!-- The result of the run, written by tools/examples.py -->"


def main(*arguments: str) -> int:
    """Runs a command line."""
    if len(arguments) == 1:
        write_reports(Path(arguments[0]))
    else:
        renew(*arguments)
    return 0


def renew(name: str, run_id: str, workspace: str = api.WORKSPACE) -> None:
    """Packs a run, and writes its result into the page of an example."""
    page = ROOT / "examples" / name / "README.md"
    text, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    run = api.load(run_id, workspace)
    BUNDLES.mkdir(parents=True, exist_ok=True)
    packed = BUNDLES / f"{name}{bundle.SUFFIX}"
    bundle.write(packed, run.evidence.run, run.evidence.measurements)
    if mark:
        lines = "\n".join(result(run)).strip()
        page.write_text(f"{text}{mark}\n\n{lines}\n", encoding="utf-8")
    sys.stdout.write(f"{page}: {'written' if mark else 'left as it is'}\n{packed}: written\n")


def result(run: api.Run) -> Iterator[str]:
    """Lines with the verdicts of a run, and with the open tables of its report's first screen."""
    story = story_of(run.plan, run.trials, run.judgement, run.facts)
    answer, *others = story.conclusion
    tables = [part for part in story.sections[0].parts if isinstance(part, Table)]
    for part in (Paragraph(answer, strong=True), Items(tuple(others)), *tables):
        if not (isinstance(part, Table) and part.folded):
            yield from (*markdown.part(part), "")


def write_reports(folder: Path) -> None:
    """Writes the report of each packed run into a folder."""
    for packed in sorted(BUNDLES.glob(f"*{bundle.SUFFIX}")):
        with tempfile.TemporaryDirectory() as written:
            report = api.load(packed).report(written)
            shutil.copy(report.html, folder / f"{packed.name.removesuffix(bundle.SUFFIX)}.html")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
