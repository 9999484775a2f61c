"""A finding: a typed doubt about a measurement, as a check's name, a level and values.

A verdict quotes findings, a report tells them (`report/tell/findings.py`). A check never raises and
never drops a trial.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from dbdyno.language.words import Label, Said, Text, clauses, say
from dbdyno.measurement.measurement import Cell, Measurement, Trial
from dbdyno.measurement.parts import Noun


class Spoken(StrEnum):
    """A word as it is stored, and as people read it: ``NOTE = "note", say("note")``."""

    said: Said

    def __new__(cls, word: str, *said: Said) -> Self:
        """The member stored as `word`; a look-up by value has no `said`."""
        member = str.__new__(cls, word)
        member._value_ = word
        (member.said,) = said
        return member


class Level(Spoken):
    """How much a finding weighs."""

    NOTE = "note", say("note")  # worth knowing, changes nothing
    DOUBTFUL = "doubtful", say("doubtful")  # may be off; shown beside every verdict it touches
    VOID = "void", say("void")  # the trial's numbers cannot be used


def check_name(check: str) -> Said:
    """A check's name, to which catalogues of other languages add what it says."""
    return Said(check, {})


class Finding(Noun):
    """One doubt.

    Attributes:
        check: name of the check, its function's name with hyphens.
        values: the evidence, numbers and names under the fields of the check's sentence.
        evidence, advice: sentences of checks that still bring their own.
        system, cell: what it is about; None where it is about all of them.
        trial: key of the trial it is about; None where it is about the run.
    """

    check: str
    level: Level
    values: dict[str, Any] = {}
    evidence: Text | None = None
    advice: Text | None = None
    system: Label | None = None
    cell: Cell | None = None
    trial: str | None = None

    @property
    def place(self) -> Said:
        """Where it was made, for people: system, cell, and the block counted from 1."""
        block = int(self.trial.split("/", 1)[0]) + 1 if self.trial else None
        places = (
            self.system,
            self.cell.title if self.cell else None,
            say("block {block}", block=block) if block else None,
        )
        return clauses(place for place in places if place)

    def concerns(self, cell: Cell, *systems: str) -> bool:
        """Whether this touches that cell of one of those systems."""
        return self.cell in (None, cell) and (self.system is None or self.system in systems)

    def voids(self, trial: Trial) -> bool:
        """Whether this takes that trial away: by its key, or as one of many."""
        if self.level is not Level.VOID:
            return False
        if self.trial is not None:
            return self.trial == trial.key
        return self.concerns(trial.cell, trial.system)


def on_trial(
    measurement: Measurement,
    check: str,
    level: Level,
    evidence: Said | None = None,
    advice: Said | None = None,
    **values: object,
) -> Finding:
    """A finding about one trial, with its values."""
    trial = measurement.trial
    return Finding(
        check=check,
        level=level,
        values=values,
        evidence=evidence,
        advice=advice,
        system=trial.system,
        cell=trial.cell,
        trial=trial.key,
    )
