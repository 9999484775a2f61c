"""Output of a command's result: text for people, Markdown for an issue, JSON for programs.

A result gives its sentences and tables; their form on stdout is settled here.
"""

from __future__ import annotations

import sys
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, TextIO

from dbdyno import _engine
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text
from dbdyno.report import document
from dbdyno.report.formats import markdown
from dbdyno.report.parts import Items, Paragraph, Table, line, translated

GAP: Final = "  "


class Output(StrEnum):
    """The form of a result on stdout."""

    PLAIN = "plain"
    JSON = "json"
    MARKDOWN = "markdown"


class Result(ABC):
    """The result of a command, before it has a format."""

    @abstractmethod
    def plain(self, language: Language) -> Iterable[Text | Table]:
        """Lines and tables, in English or the report's language."""

    @abstractmethod
    def markdown(self) -> Iterable[Paragraph | Items | Table]:
        """Blocks, a blank line between them."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Its numbers unrounded, in English, as programs read them."""


def render(result: Result, output: Output, language: Language = Language.EN) -> str:
    """Render a result in a form and a language; JSON is the same in every language."""
    match output:
        case Output.JSON:
            values = {"format": document.FORMAT, **result.document()}
            return document.text({key: document.finite(value) for key, value in values.items()})
        case Output.MARKDOWN:
            blocks = (translated(block, language) for block in result.markdown())
            texts = ["\n".join(markdown.part(block, language)) for block in blocks]
            lines = ["\n\n".join(text for text in texts if text)]
        case Output.PLAIN:
            lines = [text for one in result.plain(language) for text in plain_lines(one, language)]
    page = "\n".join(lines).rstrip()
    return f"{page}\n" if page else ""


def plain_lines(item: Text | Table, language: Language) -> Iterator[str]:
    """A sentence, or a table with its caption, in a language."""
    if isinstance(item, Table):
        table = translated(item, language)
        yield printable(table.caption)
        yield from table_lines(table)
    else:
        yield printable(line(item, language))


def table_lines(table: Table) -> Iterator[str]:
    """Columns side by side, numbers to the right: the heading, then a line for each row."""
    headings = [column.heading for column in table.columns]
    rows = [[printable(cell) for cell in row] for row in (headings, *table.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    numeric = [column.numeric for column in table.columns]
    for row in rows:
        yield _row(row, widths, numeric).rstrip()


def _row(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    return GAP.join(
        padded(cell, width, right=right)
        for cell, width, right in zip(row, widths, numeric, strict=True)
    )


def printable(text: str) -> str:
    """A part of a line: ordinary spaces, and nothing that steers a terminal."""
    return "".join(" " if sign.isspace() else sign for sign in _engine.printable(text))


def print_lines(text: str, stream: TextIO | None = None) -> None:
    """Print lines with text from outside, such as paths, on stdout or another stream."""
    lines = "\n".join(map(printable, text.split("\n")))
    (stream or sys.stdout).write(f"{lines}\n")


def padded(cell: str, width: int, *, right: bool = False) -> str:
    """The cell with spaces behind it, or before it, up to so many columns."""
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space


def shortened(text: str, columns: int) -> str:
    """The text, or its beginning with an ellipsis if it is wider."""
    if _width(text) <= columns:
        return text
    while _width(text) >= columns:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _width(text: str) -> int:
    """Columns on a terminal; Chinese signs take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
