"""What a report is made of, before it has a format.

`story.story_of` gives these values; `markdown` and `html` render them. So both pages have the same
words, and tests need not look at markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Text, name


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
        folded: a long table that a reader opens when it is wanted.
        looks: for each row the name of its colour, empty for none; no colours at all if empty.
    """

    caption: Text
    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    folded: bool = False
    looks: tuple[str, ...] = ()


Row = TypeVar("Row")


def table(
    caption: Text,
    rows: Iterable[Row],
    *columns: tuple[Text | Column, Callable[[Row], str | int]],
    folded: bool = False,
) -> Table:
    """A table with a line for each of `rows`.

    Args:
        columns: for each the heading, or a column of numbers, and what it shows of a row.
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
        mark: one word that can be coloured: a verdict's word or a finding's level.
        heading: what it is about.
        text: the statement.
        lines: what supports it or follows from it, a sentence each.
        kind: the mark in English, by which a page knows its colour; the mark itself if empty.
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
        description: what it shows in words, for those who cannot see it.
        note: how to read it, below the chart.
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
    """A heading and what stands below it, other sections among it.

    Attributes:
        english: the heading in English, of which its anchor is made; the heading itself if empty.
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
    """A whole report: the conclusion first, then what it rests on.

    Attributes:
        byline: which run, when, by which dbdyno.
        conclusion: the answer in its first line, then what it consists of.
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
    """A story or a part of it in that language; the very same in English."""
    if language is Language.EN:
        return part
    translated: Translated = _translated(part, language)
    return translated


def line(text: str, language: Language) -> Text:
    """One text in that language."""
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
