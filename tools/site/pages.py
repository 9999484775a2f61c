"""Writes the pages of the documentation's site, its menu and the reference of commands.

usage: .venv/bin/python tools/site/pages.py FOLDER        as `make site` does

The pages are the README and every file that a link leads to from there, each at its place in the
project, so that links hold and a message's `docs/….md` is a place in the site. The menu is the
index, docs/README.md. The reference is the help of each command, written as Markdown.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from typer import Context
from typer._click import Command, HelpFormatter
from typer.core import TyperGroup

from dbdyno.cli.app import SECTIONS, command_line

ROOT = Path(__file__).parents[2]
SETTINGS = Path(__file__).with_name("mkdocs.yml")
WORKER = Path(__file__).with_name("iframe-worker.js")
INDEX = "docs/README.md"
REFERENCE = "commands.md"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
ROW = re.compile(r"^\| \[([^]]+)\]\(([^)]+)\) \|", re.MULTILINE)


def main(folder: Path) -> int:
    """Writes mkdocs.yml and the folder `pages` beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    for path in linked():
        written = pages / path
        written.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            written.write_text(as_pages((ROOT / path).read_text()))
        else:
            shutil.copy(ROOT / path, written)
        if path.suffix == ".ipynb":
            written.with_suffix(".md").write_text(notebook(written))
    (pages / REFERENCE).write_text(reference())
    (pages / "assets").mkdir()
    shutil.copy(WORKER, pages / "assets")
    names = sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md"))
    settings = {"INHERIT": str(SETTINGS), "nav": menu(names)}
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1))  # JSON is YAML
    return 0


def linked() -> set[Path]:
    """The README and all files to which links lead from it, relative to the project."""
    files: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path.relative_to(ROOT) not in files:
            files.add(path.relative_to(ROOT))
            targets = LINK.findall(path.read_text()) if path.suffix == ".md" else []
            waiting += [(path.parent / target).resolve() for target in targets]
    return files


def as_pages(text: str) -> str:
    """A page whose links to a notebook lead to its page."""
    return text.replace(".ipynb)", ".md)")


def notebook(path: Path) -> str:
    """A notebook as a page with its texts and code."""
    parts = [
        source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
        for cell in json.loads(path.read_text())["cells"]
        for source in ["".join(cell["source"])]
    ]
    return "\n\n".join([*parts, f"[This notebook as a file]({path.name})\n"])


def menu(names: list[str]) -> list[object]:
    """The menu: a section for each heading of the index, and one for pages outside of it."""
    sections: list[object] = [{"Start": "README.md"}, {"All pages": INDEX}]
    for part in re.split(r"^## ", (ROOT / INDEX).read_text(), flags=re.MULTILINE)[1:]:
        rows = [{title: f"docs/{page}"} for title, page in ROW.findall(as_pages(part))]
        sections.append({part.partition("\n")[0]: rows})
    sections.append({"Commands": REFERENCE})
    listed = json.dumps(sections)
    return [*sections, {"Project": [name for name in names if f'"{name}"' not in listed]}]


class Markdown(HelpFormatter):
    """Help as Markdown."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Writes the command line as code."""
        self.write(f"```console\n$ {prog} {args}\n```\n\n")

    def write_heading(self, heading: str) -> None:
        """Writes a heading that the page's table of contents leaves out."""
        self.write(f"**{heading}**\n\n")

    def write_text(self, text: str) -> None:
        """Writes a paragraph."""
        self.write(f"{text}\n\n")

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 0, col_spacing: int = 0
    ) -> None:
        """Writes options or commands, each with its meaning."""
        self.write("".join(f"- `{word.strip()}`: {meaning}\n" for word, meaning in rows) + "\n")


def reference() -> str:
    """A page with the help of all commands, in the sections of `dbdyno --help`."""
    program = command_line()
    page = [
        "# Command reference\n\nThe help of all commands, as `dbdyno COMMAND --help` has it.\n\n"
    ]
    with Context(program, info_name="dbdyno", **program.context_settings) as context:
        for section, names in SECTIONS.items():
            page.append(f"## {section}\n\n")
            page += [described(program.commands[name], context, 3) for name in names]
    return "".join(page)


def described(command: Command, parent: Context, level: int) -> str:
    """The help of a command and of the commands below it, under headings from a level on."""
    with Context(command, parent=parent, info_name=command.name) as context:
        formatter = Markdown()
        command.format_help(context, formatter)
        below = command.commands.values() if isinstance(command, TyperGroup) else ()
        heading = f"{'#' * level} `{context.command_path}`\n\n"
        deeper = [described(deeper, context, level + 1) for deeper in below]
        return "".join([heading, formatter.getvalue(), *deeper])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
