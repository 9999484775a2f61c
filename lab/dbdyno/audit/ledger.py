"""Results of an audit: claims recomputed, and numbers that cannot both be true.

An entry names both sides of a contradiction with their arithmetic, never an intent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from dbdyno.language.words import Label, Said, Text, say
from dbdyno.measurement.parts import Noun


class Severity(StrEnum):
    """The weight of an entry, the weightiest first: as it is stored, and as people read it."""

    said: Said

    def __new__(cls, word: str, *said: Said) -> Self:
        """The member stored as `word`; a look-up by value has no `said`."""
        member = str.__new__(cls, word)
        member._value_ = word
        (member.said,) = said
        return member

    CONTRADICTION = "contradiction", say("contradiction")  # two printed things cannot both be true
    OVER_CLAIM = "over-claim", say("over-claim")  # the text says more than its numbers
    UNSAFE = "unsafe design", say("unsafe design")  # the numbers do not carry such words
    NOTE = "note", say("note")  # what a reader should know
    CONFIRMED = "confirmed", say("confirmed")  # a claim that was recomputed and holds


class LedgerEntry(Noun):
    """A line of the ledger.

    Attributes:
        rule: its name (docs/how-to/audit.md).
        sentence: the result; arithmetic: the numbers behind it.
        place: the cell or the claim.
    """

    severity: Severity
    rule: str
    sentence: Text
    arithmetic: Text
    place: Label = ""


class AuditLedger(Noun):
    """All entries, the weightiest first, and the number of audited cells."""

    entries: tuple[LedgerEntry, ...]
    cells: int

    def count(self, severity: Severity) -> int:
        """The number of entries with this weight."""
        return sum(one.severity is severity for one in self.entries)


def ledger_of(entries: Iterable[LedgerEntry], cells: int) -> AuditLedger:
    """Sort entries by weight, stably."""
    ordered = sorted(entries, key=lambda one: [*Severity].index(one.severity))
    return AuditLedger(entries=tuple(ordered), cells=cells)
