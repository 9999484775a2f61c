"""A verdict as a gate: a version passes if it is slower by no more than a limit.

Each comparison is held against the limit, with the interval of its verdict. So the cells of a
system are right together, and a long ladder does not close the gate by chance:

    the whole interval is beyond the limit    slower      the gate does not hold
    none of it is                             held
    the limit lies within it                  undecided   holds, unless `strict`
    there is no interval                      void        holds, unless `strict`

Undecided and void comparisons are reported each time, and a gate without any decided comparison
never holds: silence is no proof. "Slower by more than 3 %" is a throughput below 0.97 of the
baseline's, or a latency above 1.03 of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.metric import BY_NAME, Better
from dbdyno.measurement.parts import Noun


class GateOutcome(StrEnum):
    """Outcome of a comparison at a gate."""

    SLOWER = "slower"
    HELD = "held"
    UNDECIDED = "undecided"
    VOID = "void"


class Passage(Noun):
    """A comparison at the gate.

    Attributes:
        holds: true if this comparison lets the gate open.
    """

    verdict: Verdict
    outcome: GateOutcome
    holds: bool


class Gate(Noun):
    """A run at the gate.

    Attributes:
        slower_max: the limit on a system's slowdown, 0.03 = 3 %.
        strict: true if each comparison must be proved to be within the limit.
    """

    slower_max: float
    strict: bool
    passages: tuple[Passage, ...]

    @property
    def decided(self) -> int:
        """Number of comparisons proved within the limit or beyond it."""
        return sum(p.outcome in (GateOutcome.HELD, GateOutcome.SLOWER) for p in self.passages)

    @property
    def holds(self) -> bool:
        """True if every comparison may pass, and at least one is decided."""
        return self.decided > 0 and all(passage.holds for passage in self.passages)

    @property
    def fails_by_void(self) -> bool:
        """True if the gate does not hold, and void comparisons are the only cause."""
        kinds = {p.outcome for p in self.passages if not p.holds} or {
            p.outcome for p in self.passages
        }
        return not self.holds and kinds == {GateOutcome.VOID}

    def count(self, outcome: GateOutcome) -> int:
        """Number of comparisons with this outcome."""
        return sum(passage.outcome is outcome for passage in self.passages)


def gate(verdicts: tuple[Verdict, ...], slower_max: float, *, strict: bool = False) -> Gate:
    """Hold a run's verdicts against a limit.

    Args:
        slower_max: the limit on a system's slowdown against the baseline, 0.03 = 3 %.
        strict: undecided and void comparisons close the gate too.
    """
    closing = set(GateOutcome) - {GateOutcome.HELD} if strict else {GateOutcome.SLOWER}
    outcomes = [(verdict, _outcome(verdict, slower_max)) for verdict in verdicts]
    passages = (Passage(verdict=v, outcome=o, holds=o not in closing) for v, o in outcomes)
    return Gate(slower_max=slower_max, strict=strict, passages=tuple(passages))


OF_STANDSTILL: Final = {Word.WORSE: GateOutcome.SLOWER, Word.BETTER: GateOutcome.HELD}
"""With a standstill there is no ratio to hold against the limit, only a word."""


def _outcome(verdict: Verdict, slower_max: float) -> GateOutcome:
    low, high = verdict.low, verdict.high
    if verdict.standstill is not None:
        return OF_STANDSTILL.get(verdict.word, GateOutcome.UNDECIDED)
    if low is None or high is None:
        return GateOutcome.VOID
    if BY_NAME[verdict.metric].better is Better.HIGHER:
        slower, held = high < 1 - slower_max, low >= 1 - slower_max
    else:
        slower, held = low > 1 + slower_max, high <= 1 + slower_max
    if slower:
        return GateOutcome.SLOWER
    return GateOutcome.HELD if held else GateOutcome.UNDECIDED
