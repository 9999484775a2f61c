"""Parts of a report, before it has a format.

`story.story_of` gives these values; `markdown` and `html` render them. So both pages have the same
words, and tests need not look at markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Text, name, say


@dataclass(frozen=True)
class Paragraph:
    """Plain text, no markup; strong where it is the answer."""

    text: Text
    strong: bool = False


@dataclass(frozen=True)
class Items:
    """A list of plain sentences."""

    items: tuple[Text, ...]


@dataclass(frozen=True)
class Column:
    """A table's column; numbers are aligned to the right."""

    heading: Text
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of plain text under a caption.

    Attributes:
        folded: only the caption is seen until a reader opens the table.
        looks: name of each row's colour, empty for an uncoloured row; empty for an uncoloured
            table.
        looks_of_cells: name of each cell's colour, by row; empty for a table without any.
    """

    caption: Text
    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    folded: bool = False
    looks: tuple[str, ...] = ()
    looks_of_cells: tuple[tuple[str, ...], ...] = ()


Row = TypeVar("Row")


def table(
    caption: Text,
    rows: Iterable[Row],
    *columns: tuple[Text | Column, Callable[[Row], str | int]],
    folded: bool = False,
) -> Table:
    """A table with a line for each of `rows`.

    Args:
        columns: heading of each column, or a numeric column, and the function from a row to its
            text.
    """
    return Table(
        caption,
        tuple(head if isinstance(head, Column) else Column(head) for head, _ in columns),
        tuple(tuple(_shown(cell(row)) for _, cell in columns) for row in rows),
        folded,
    )


def _shown(value: str | int) -> Text:
    return name(value if isinstance(value, str) else str(value))


def numeric(heading: Text) -> Column:
    """A column of numbers."""
    return Column(heading, numeric=True)


@dataclass(frozen=True)
class Entry:
    """A statement with a mark, such as a verdict or a finding.

    Attributes:
        mark: word in colour: a verdict's word or a finding's level.
        heading: subject of the statement.
        text: the statement.
        lines: support and consequences, a sentence each.
        kind: the mark in English, from which a page takes its colour; empty if it is `mark` itself.
    """

    mark: Text
    heading: Text
    text: Text
    lines: tuple[Text, ...] = ()
    kind: str = ""

    @property
    def look(self) -> str:
        """The name of its colour, the same in every language."""
        return (self.kind or self.mark).replace(" ", "-")


@dataclass(frozen=True)
class Entries:
    """Statements one below the other, the weightiest first."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Figure:
    """A chart as a Vega-Lite specification.

    Attributes:
        name: its file's name without extension.
        description: the chart in words, for readers who cannot see it.
        note: guide to reading it, below the chart.
        spec: Vega-Lite with all data inside.
    """

    name: str
    title: Text
    description: Text
    spec: Mapping[str, Any]
    note: Text


@dataclass(frozen=True)
class Code:
    """Text to be copied as it stands."""

    text: str


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it, including further sections.

    Attributes:
        english: the heading in English, for the anchor; empty if it is `heading` itself.
        folded: only the heading is seen until a reader opens it.
    """

    heading: Text
    parts: tuple[Part, ...]
    english: str = ""
    folded: bool = False

    @property
    def anchor(self) -> str:
        """The heading as an anchor within the page."""
        return re.sub(r"[^a-z0-9]+", "-", (self.english or self.heading).lower()).strip("-")

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts in the order in which they appear."""
        inner = (part.figures if isinstance(part, Section) else (part,) for part in self.parts)
        return tuple(part for parts in inner for part in parts if isinstance(part, Figure))


Part = Paragraph | Items | Table | Entries | Figure | Code | Section


@dataclass(frozen=True)
class Story:
    """A whole report: the conclusion first, then its evidence.

    Attributes:
        byline: run, time, and version of dbdyno.
        conclusion: the answer in its first line, then its parts.
    """

    title: Text
    byline: Text
    conclusion: tuple[Text, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts in the order in which they appear."""
        return tuple(figure for section in self.sections for figure in section.figures)


# Translation. Every sentence knows its template (`words.say`), so a report is translated without
# judging or drawing anything again. Anchors and colours are named by the English words, which
# `Section.english` and `Entry.kind` keep.

Translated = TypeVar("Translated")


def translated(part: Translated, language: Language) -> Translated:
    """A story or a part of it in another language; in English the part itself."""
    if language is Language.EN:
        return part
    translated: Translated = _translated(part, language)
    return translated


def line(text: str, language: Language) -> Text:
    """A text in another language."""
    return name(said_in(text, language))


def _translated(value: Any, language: Language) -> Any:  # noqa: ANN401 - any part of a report
    """The value with every sentence in it translated; of the same type."""
    match value:
        case str():
            return name(said_in(value, language)) if hasattr(value, "template") else value
        case Mapping():
            return {
                _translated(key, language): _translated(inner, language)
                for key, inner in value.items()
            }
        case tuple() | list():
            return type(value)(_translated(inner, language) for inner in value)
        case _ if is_dataclass(value):
            kept = _kept(value)
            parts = {
                part.name: _translated(getattr(kept, part.name), language) for part in fields(kept)
            }
            return replace(kept, **parts)
    return value


def _kept(value: Any) -> Any:  # noqa: ANN401 - any part of a report
    """The value with its English words kept, where an anchor or a colour is named by them."""
    match value:
        case Section():
            return replace(value, english=value.english or str(value.heading))
        case Entry():
            return replace(value, kind=value.look)
    return value


NO_CHARTS: Final = say(
    "Charts are left out here. To add them, type `pip install 'dbdyno[charts]'`, then write the"
    " report again."
)


def without_charts(story: Story, language: Language) -> Story:
    """The story with a line on how to get charts in place of the first, and without the others."""
    first = next(iter(story.figures), None)

    def bare(section: Section) -> Section:
        parts: list[Part] = []
        for part in section.parts:
            if isinstance(part, Section):
                parts.append(bare(part))
            elif part is first:
                parts.append(Paragraph(line(NO_CHARTS, language)))
            elif not isinstance(part, Figure):
                parts.append(part)
        return replace(section, parts=tuple(parts))

    return replace(story, sections=tuple(map(bare, story.sections)))
