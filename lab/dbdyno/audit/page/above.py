"""Headings and words above a table, gathered while a page is read from top to bottom."""

from __future__ import annotations

import re
from copy import copy
from typing import Final, Self

HEADING: Final = re.compile(r"(#{1,6})\s+(\S.*)")
BOLD: Final = re.compile(r"(\*\*|__)(?P<text>(?:(?!\1).)+)\1[:：]?")
CAPTION_MAX: Final = 400
"""Signs of a heading, and of the end of a paragraph that may describe a table."""
LOOSE_MAX: Final = 20
"""Lines in bold that may describe the tables of others."""
BOLD_LEVEL: Final = 7
"""Of a line in bold, below all headings."""
ANCHOR: Final = re.compile(r"\{#[^{}]*\}\s*$")
PROMPT: Final = re.compile(r"(?:[\w@~:.-]+[>#]|\$)\s")
UNDERLINE: Final = re.compile(r"={3,}|-{3,}")
NUMBERED: Final = re.compile(
    r"(?:(?P<number>\d{1,2}(?:\.\d{1,2}){1,3})\.?\s+|\d{1,2}[.、)]\s*|[一二三四五六七八九十]{1,3}、\s*)"
    r"(?=[^\d\s]).{0,80}(?<![.。!！?？;；,，])"
)
"""A line that is a heading where none has another mark; with several numbers, of a lower level."""


class Captions:
    """Headings in force and the last words, while a page is read from top to bottom."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._loose: list[str] = []
        self._numbered: list[tuple[int, str]] = []
        self._is_used = True
        self._is_below_words = False
        self._words = ""
        self._is_hidden = False
        self.section = 0
        """Line of the last heading that is no line in bold; 0 before the first."""

    def of_comment(self) -> Self:
        """The captions in a comment: its own end with it, and its words say why it is hidden."""
        other = copy(self)
        other._headings, other._loose, other._words = [*self._headings], [*self._loose], ""
        other._is_hidden = True
        other._numbered = [*self._numbered]
        return other

    def heading(self, level: int, text: str, line: int) -> None:
        """A heading ends all others of its level and below.

        A line in bold without a table of its own is kept, as it may describe the tables of others.
        """
        if level < BOLD_LEVEL:
            self._loose, self._numbered, self.section = [], [], line
        elif self._headings and self._headings[-1][0] == BOLD_LEVEL and not self._is_used:
            self._loose = [self._headings[-1][1], *self._loose[: LOOSE_MAX - 1]]
        self._is_used = False
        self._headings = [known for known in self._headings if known[0] < level]
        self._headings.append((level, ANCHOR.sub("", text).strip(" #*_:：")))
        self._words = ""

    def words(self, line: str, number: int) -> None:
        """A line of text and its number; it may be a heading of Markdown or bold as a whole."""
        text = line.strip()[-CAPTION_MAX:]
        is_below_words, self._is_below_words = self._is_below_words, False
        if (heading := HEADING.fullmatch(text)) and not line.startswith(("    ", "\t")):
            self.heading(len(heading[1]), heading[2], number)
        elif bold := BOLD.fullmatch(text):
            self.heading(BOLD_LEVEL, bold["text"], number)
        elif UNDERLINE.fullmatch(text) and is_below_words:
            self.heading(1 if "=" in text else 2, self._words, number - 1)
        elif (numbered := NUMBERED.fullmatch(text)) and not self._has_marks:
            level = (numbered["number"] or "").count(".")
            kept = [known for known in self._numbered if known[0] < level]
            self._numbered, self._words = [*kept, (level, text)], ""
            self._is_below_words, self.section = False, number
        elif re.search(r"\w", text) and not PROMPT.match(text):
            self._words, self._is_below_words = text.strip(" #*_:："), True

    @property
    def _has_marks(self) -> bool:
        return bool(self._headings) and self._headings[0][0] < BOLD_LEVEL

    def now(self) -> tuple[str, ...]:
        """The captions of a table that begins here; its successor has none of the last words."""
        words, self._words, self._is_used = self._words, "", True
        headings = [text for _, text in reversed(self._headings)]
        above = (*headings, words) if self._is_hidden else (words, *headings)
        numbered = (text for _, text in reversed(self._numbered))
        return tuple(filter(None, (*above, *self._loose, *numbered)))
