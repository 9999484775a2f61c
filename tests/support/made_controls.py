"""Outcomes of controls made by hand, for the tests of the ledger and of the report."""

from __future__ import annotations

from typing import Literal

from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.outcome import ControlOutcome
from support.making import A

CELL = Cell(workload="oltp_read_write", threads=8)


def outcome(
    low: float = 0.99,
    high: float = 1.01,
    *,
    kind: Literal["same", "planted"] = "same",
    word: str = "equivalent",
) -> ControlOutcome:
    """An outcome of five blocks with that interval."""
    truth = 1.0 if kind == "same" else 0.98
    return ControlOutcome(
        kind=kind,
        cell=CELL,
        system=A,
        ratio=(low * high) ** 0.5,
        low=low,
        high=high,
        blocks=5,
        word=word,
        truth=truth,
        held=low <= truth <= high,
    )
