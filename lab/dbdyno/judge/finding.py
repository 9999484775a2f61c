"""A finding: a typed doubt about a measurement, as a check's name, a level and values.

A verdict quotes findings, a report tells them (`report/tell/findings.py`). A check never raises and
never drops a trial.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from dbdyno.measurement.measurement import Cell, Measurement, Trial
from dbdyno.measurement.parts import Noun


class Level(StrEnum):
    """The weight of a finding."""

    NOTE = "note"  # worth knowing, changes nothing
    DOUBTFUL = "doubtful"  # may be off; shown beside every verdict it touches
    VOID = "void"  # the trial's numbers cannot be used


class Reason(Noun, extra="ignore"):
    """A clause to explain a word or a refusal: its kind, and the values of its sentence.

    Read from a report's JSON, the sentence beside the values is left out.
    """

    kind: str
    values: dict[str, Any] = {}


class Finding(Noun, extra="ignore"):
    """One doubt; read from a report's JSON, the sentences beside its values are left out.

    Attributes:
        check: name of the check, its function's name with hyphens.
        values: the evidence, numbers and names under the fields of the check's sentence.
        system, cell: subject of the finding; None where it is about all of them.
        trial: key of its trial; None where it is about the run.
    """

    check: str
    level: Level
    values: dict[str, Any] = {}
    system: str | None = None
    cell: Cell | None = None
    trial: str | None = None

    def concerns(self, cell: Cell, *systems: str) -> bool:
        """True if this touches the cell of any of the systems."""
        return self.cell in (None, cell) and (self.system is None or self.system in systems)

    def voids(self, trial: Trial) -> bool:
        """True if this makes the trial void: by its key, or with its cell and system."""
        if self.level is not Level.VOID:
            return False
        if self.trial is not None:
            return self.trial == trial.key
        return self.concerns(trial.cell, trial.system)


def on_trial(measurement: Measurement, check: str, level: Level, **values: object) -> Finding:
    """Make a finding about a trial, with its values."""
    trial = measurement.trial
    return Finding(
        check=check,
        level=level,
        values=values,
        system=trial.system,
        cell=trial.cell,
        trial=trial.key,
    )
