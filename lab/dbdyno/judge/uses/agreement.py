"""Two runs of one experiment held against each other: do they say the same?

A block of one run is no partner of a block of the other: days and machines lie between them. So
only what each run says of its own pairs is compared, the ratio of system to baseline, which shares
no drift with anything. Both are means of ln ratios with a spread of their own, so their difference
has Welch's interval (Welch 1947, degrees of freedom by Satterthwaite):

    (m₂ − m₁) ± t(ν)·√(s₁²/n₁ + s₂²/n₂)

The same table as for verdicts says what that means. All of it within the margin: the runs agree.
All on one side of zero: they differ. Anything else is not shown to differ, which is less than to
agree. Two experiments of five blocks rarely prove agreement within 2 %; that is no fault of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.judge.estimate import CONFIDENCE, Estimate
from dbdyno.judge.finding import Spoken
from dbdyno.judge.verdict import Verdict, Word, word_of
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN
from dbdyno.stats.distributions import student_quantile


class Agreeing(Spoken):
    """How two runs relate in one comparison."""

    AGREE = "agree", say("agree")
    DIFFER = "differ", say("differ")
    NOT_SHOWN = "not shown to differ", say("not shown to differ")
    MISSING = "not in both", say("not in both")


class Agreement(Noun):
    """One system against the baseline in one cell, in two runs.

    Attributes:
        first, second: the runs' verdicts; None where a run has none.
        ratio: second ratio / first ratio; None where one of them is missing.
        low, high: its 95 % interval; None below three blocks in either run.
    """

    cell: Cell
    baseline: str
    system: str
    first: Verdict | None
    second: Verdict | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    word: Agreeing = Agreeing.MISSING

    @property
    def same_word(self) -> bool:
        """Whether both runs give the same verdict."""
        return bool(self.first and self.second and self.first.word is self.second.word)

    @property
    def contradict(self) -> bool:
        """Whether one run says better and the other worse."""
        words = {verdict.word for verdict in (self.first, self.second) if verdict}
        return words == {Word.BETTER, Word.WORSE}


def agreements(
    first: Sequence[Verdict], second: Sequence[Verdict], margin: float
) -> tuple[Agreement, ...]:
    """Every comparison that one of the runs has, in the first run's order.

    Args:
        margin: ratio difference that matters, 0.02 = 2 %.
    """
    return tuple(_agreements(first, second, margin))


def _agreements(
    first: Sequence[Verdict], second: Sequence[Verdict], margin: float
) -> Iterator[Agreement]:
    places = [{_place(verdict): verdict for verdict in run} for run in (first, second)]
    for place in dict.fromkeys([*places[0], *places[1]]):
        cell, _, baseline, system = place
        pair = (places[0].get(place), places[1].get(place))
        bare = Agreement(cell=cell, baseline=baseline, system=system, first=pair[0], second=pair[1])
        if pair[0] is None or pair[1] is None:
            yield bare
        else:
            yield bare.model_copy(update=_difference(pair[0].estimate, pair[1].estimate, margin))


def _place(verdict: Verdict) -> tuple[Cell, str, str, str]:
    return verdict.cell, verdict.metric, verdict.baseline, verdict.system


def _difference(first: Estimate, second: Estimate, margin: float) -> dict[str, object]:
    if first.ratio is None or second.ratio is None:
        return {}
    ratio = second.ratio / first.ratio
    half = _half_width(first, second)
    if half is None:
        return {"ratio": ratio, "word": Agreeing.NOT_SHOWN}
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    return {"ratio": ratio, "low": low, "high": high, "word": _word(low, high, margin)}


def _half_width(first: Estimate, second: Estimate) -> float | None:
    """Half of Welch's interval of the difference of two mean ln ratios."""
    parts = []
    for estimate in (first, second):
        if estimate.log_sd is None or estimate.blocks < BLOCKS_MIN:
            return None
        parts.append((estimate.log_sd**2 / estimate.blocks, estimate.blocks))
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(part**2 / (blocks - 1) for part, blocks in parts)
    return student_quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(variance)


def _word(low: float, high: float, margin: float) -> Agreeing:
    word, _ = word_of(low, high, margin)
    if word is Word.EQUIVALENT:
        return Agreeing.AGREE
    return Agreeing.NOT_SHOWN if word is Word.UNDECIDED else Agreeing.DIFFER
