"""Outcomes of a run's control trials, and the facts that name a run in a report."""

from __future__ import annotations

from typing import Literal

from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun


class ControlOutcome(Noun):
    """The baseline against itself, or against itself with a slowdown put in on purpose.

    Attributes:
        kind: ``same`` or ``planted``.
        cell: where they were compared; None if in several, each block's first.
        system: label of the baseline.
        ratio: throughput of the control / the baseline's; None without a sound pair.
        low, high: 95 % interval of the ratio; None below 3 blocks.
        blocks: sound pairs.
        word: what a verdict on it says, as on every other system.
        truth: the ratio as it is known to be.
        held: whether the interval covers the truth; None without an interval.
        loads: on how many loads of its data the baseline's blocks rest, and the control's.
    """

    kind: Literal["same", "planted"]
    cell: Cell | None
    system: str
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    word: str
    truth: float
    held: bool | None
    loads: int = 1

    @property
    def counts(self) -> bool:
        """Whether it says anything about the instrument: it has an interval."""
        return self.low is not None and self.high is not None

    @property
    def different(self) -> bool:
        """Whether the verdict calls the two different."""
        return self.word in ("better", "worse")

    @property
    def seen_slower(self) -> bool:
        """Whether the whole interval lies below 1, whatever the margin."""
        return self.high is not None and self.high < 1


class RunFacts(Noun):
    """One run as a report names it: a stored run, a bundle, or one made in a test.

    Attributes:
        run_id: the run's name in its workspace.
        created_at: ISO 8601 time with offset.
        dbdyno_version: the dbdyno that ran it.
        plan_hash: `Plan.hash()` of the plan that was run.
        command: the command line that would run it again; holds no password.
        environment: machine, kernel, disk and so on, as `watch.environment` describes them.
        complete: every planned trial has a measurement without failure.
        trials_planned: trials the plan asks for.
    """

    run_id: str
    created_at: str
    dbdyno_version: str
    plan_hash: str
    command: str
    environment: dict[str, str]
    complete: bool
    trials_planned: int
