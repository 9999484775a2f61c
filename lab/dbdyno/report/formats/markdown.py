"""A story as GitHub Markdown: for an issue, a wiki or a terminal.

Text from outside (labels, settings, the environment) is escaped: it cannot end a table's cell,
become a tag or a link, or start emphasis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, count, say
from dbdyno.report.parts import (
    Code,
    Entries,
    Entry,
    Figure,
    Items,
    Paragraph,
    Part,
    Section,
    Story,
    Table,
    line,
)

SPECIAL = re.compile(r"[\\`*|]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|^(?=[#>+-] )")
COMMAND = re.compile(r"(?<![`\\])`([^`|<>&\\]+)`(?!`)")
"""A command or a name in a sentence, between backticks; nothing in it can be markup."""
CHARTS = "charts"
"""The folder of the charts, beside the page."""


def render(story: Story, language: Language = Language.EN) -> str:
    """The whole report as Markdown; charts are images in `charts/`."""
    lines = [f"# {text(story.title)}", "", f"*{text(story.byline)}*", ""]
    first, *others = story.conclusion
    lines += [f"**{text(first)}**", "", *(f"- {text(line)}" for line in others), ""]
    for section in story.sections:
        lines += _section(section, language)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section, language: Language, level: int = 2) -> Iterator[str]:
    """Its heading and parts; a folded one is a box under its heading."""
    heading = text(section.heading)
    if section.folded:
        yield f"<details><summary><b>{heading}</b></summary>"
    else:
        yield f"{'#' * level} {heading}"
    yield ""
    for part_of_section in section.parts:
        if isinstance(part_of_section, Section):
            yield from _section(part_of_section, language, level + 1)
        else:
            yield from (*part(part_of_section, language), "")
    if section.folded:
        yield from ("</details>", "")


def part(shown: Part, language: Language = Language.EN) -> Iterator[str]:
    """Lines of a part."""
    match shown:
        case Paragraph():
            yield (f"**{text(shown.text)}**" if shown.strong else text(shown.text))
        case Items():
            yield from (f"- {text(item)}" for item in shown.items)
        case Table():
            yield from (_folded(shown, language) if shown.folded else _table(shown))
        case Entries():
            for entry in shown.entries:
                yield f"- {_statement(entry, language)}"
                yield from (f"  - {text(line)}" for line in entry.lines)
        case Figure():
            yield f"![{text(shown.title)}]({CHARTS}/{shown.name}.png)"
            yield from ("", f"*{_read(shown, language)}*")
        case Code():
            yield from ("```sh", shown.text.replace("```", "'''"), "```")


def _table(table: Table) -> Iterator[str]:
    """A GitHub table under its caption."""
    yield from (f"**{text(table.caption)}**", "")
    yield _row(column.heading for column in table.columns)
    yield "|" + "|".join(" ---: " if column.numeric else " --- " for column in table.columns) + "|"
    for row in table.rows:
        yield _row(row)


def _folded(table: Table, language: Language) -> Iterator[str]:
    """The lines in a collapsible box."""
    yield f"<details><summary>{text(with_rows(table, language))}</summary>"
    yield ""
    yield from _table(table)
    yield from ("", "</details>")


def _statement(entry: Entry, language: Language) -> str:
    """A statement behind its mark; its values are translated and escaped already."""
    parts = {"heading": text(entry.heading), "text": text(entry.text)}
    mark = f"**{text(entry.mark)}**"
    return line(say("{mark}, {heading}: {text}", mark=mark, **parts), language)


def _read(figure: Figure, language: Language) -> str:
    """A chart's name, and how to read it."""
    parts = {"title": text(figure.title), "note": text(figure.note)}
    return line(say("{title}. {note}", **parts), language)


def with_rows(table: Table, language: Language) -> Text:
    """Summary of a table for its closed box."""
    rows = count(len(table.rows), "row")
    return line(say("{caption} ({rows})", caption=table.caption, rows=rows), language)


def _row(cells: Iterator[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(text(cell) for cell in cells) + " |"


def text(plain: str) -> str:
    """Plain text on a single line, without markup except for commands."""
    parts = COMMAND.split(" ".join(plain.split()))
    return "".join(f"`{one}`" if at % 2 else _escaped(one) for at, one in enumerate(parts))


def _escaped(plain: str) -> str:
    line = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(lambda found: f"\\{found.group()}", line)
