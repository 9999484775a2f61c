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

Against an earlier run, the interval is of the run's ratio (system to baseline) divided by the
earlier run's (`agreement`): days and machines lie between two runs, so their throughput is not
compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from dbdyno.judge.uses.agreement import Agreement
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.metric import BY_NAME, Better
from dbdyno.measurement.parts import Noun


class GateOutcome(StrEnum):
    """Outcome of a comparison at a gate."""

    SLOWER = "slower"
    HELD = "held"
    UNDECIDED = "undecided"
    VOID = "void"


class RatioChange(Noun):
    """A run's ratio divided by an earlier run's, with its interval; None where it is unknown."""

    ratio: float | None
    low: float | None
    high: float | None


class Passage(Noun):
    """A comparison at the gate.

    Attributes:
        verdict: of this run; of the earlier run if this run lacks the comparison.
        holds: true if this comparison lets the gate open.
        change: since the earlier run; None at a gate without an earlier run.
    """

    verdict: Verdict
    outcome: GateOutcome
    holds: bool
    change: RatioChange | None = None


class Gate(Noun):
    """A run at the gate.

    Attributes:
        slower_max: the limit on a system's slowdown, 0.03 = 3 %.
        strict: true if each comparison must be proved to be within the limit.
        earlier: id of the earlier run; empty if the verdicts of the run itself count.
    """

    slower_max: float
    strict: bool
    passages: tuple[Passage, ...]
    earlier: str = ""

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
    passages = (_passage(v, _outcome(v, slower_max), strict) for v in verdicts)
    return Gate(slower_max=slower_max, strict=strict, passages=tuple(passages))


def gate_against(
    earlier: str, pairs: Iterable[Agreement], slower_max: float, *, strict: bool = False
) -> Gate:
    """Hold a run's ratios against those of an earlier run.

    Args:
        earlier: id of the earlier run.
        pairs: the earlier run's comparisons with this run's.
        slower_max, strict: as for `gate`.
    """
    passages = (
        _passage(
            verdict,
            _outcome_since(pair, verdict.metric, slower_max),
            strict,
            RatioChange(ratio=pair.ratio, low=pair.low, high=pair.high),
        )
        for pair in pairs
        if (verdict := pair.second or pair.first)
    )
    return Gate(slower_max=slower_max, strict=strict, passages=tuple(passages), earlier=earlier)


def _passage(
    verdict: Verdict, outcome: GateOutcome, strict: bool, change: RatioChange | None = None
) -> Passage:
    closing = set(GateOutcome) - {GateOutcome.HELD} if strict else {GateOutcome.SLOWER}
    holds = outcome not in closing
    return Passage(verdict=verdict, outcome=outcome, holds=holds, change=change)


OF_STANDSTILL: Final = {Word.WORSE: GateOutcome.SLOWER, Word.BETTER: GateOutcome.HELD}
"""With a standstill there is no ratio to hold against the limit, only a word."""


def _outcome(verdict: Verdict, slower_max: float) -> GateOutcome:
    if verdict.standstill is not None:
        return OF_STANDSTILL.get(verdict.word, GateOutcome.UNDECIDED)
    return _outcome_of(verdict.low, verdict.high, verdict.metric, slower_max)


def _outcome_since(pair: Agreement, metric: str, slower_max: float) -> GateOutcome:
    """The outcome of a comparison since the earlier run.

    A system that stands still now is slower, whatever it did then.
    """
    if pair.second is not None and pair.second.standstill is not None:
        stands_still = pair.second.word is Word.WORSE
        return GateOutcome.SLOWER if stands_still else GateOutcome.UNDECIDED
    if pair.first is not None and pair.first.standstill is not None:
        return GateOutcome.UNDECIDED
    return _outcome_of(pair.low, pair.high, metric, slower_max)


def _outcome_of(
    low: float | None, high: float | None, metric: str, slower_max: float
) -> GateOutcome:
    if low is None or high is None:
        return GateOutcome.VOID
    if BY_NAME[metric].better is Better.HIGHER:
        slower, held = high < 1 - slower_max, low >= 1 - slower_max
    else:
        slower, held = low > 1 + slower_max, high <= 1 + slower_max
    if slower:
        return GateOutcome.SLOWER
    return GateOutcome.HELD if held else GateOutcome.UNDECIDED
