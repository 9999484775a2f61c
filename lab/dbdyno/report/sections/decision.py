"""What all verdicts on a system mean together for somebody who has to choose, in a sentence or two.

A tally of words still leaves the reader to do the sum. The sum is simple as long as it says no more
than the verdicts: what is proven speaks for or against a system, what is equivalent speaks for
neither, and what is undecided must be named, since it may hide a difference that matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.numbers import change, decided, share

OPEN = (Word.UNDECIDED, Word.VOID, Word.NO_VERDICT)


def decision(verdicts: Sequence[Verdict]) -> list[Text]:
    """What the verdicts on one system mean; nothing for fewer than two.

    Args:
        verdicts: those on one system, all against the same baseline.
    """
    if len(verdicts) < 2:
        return []
    better = [verdict for verdict in verdicts if verdict.word is Word.BETTER]
    worse = [verdict for verdict in verdicts if verdict.word is Word.WORSE]
    left = [verdict for verdict in verdicts if verdict.word in OPEN]
    return [_sum(verdicts, better, worse), *_rest(verdicts, left)]


def _sum(verdicts: Sequence[Verdict], better: Sequence[Verdict], worse: Sequence[Verdict]) -> Text:
    names = {"system": verdicts[0].system, "baseline": verdicts[0].baseline}
    if better and worse:
        return say(
            "For a decision: it depends on the load. {system} is better by {most} and worse by "
            "{least}; choose by the cells that are like your own load.",
            **names,
            most=_selected(better),
            least=_selected(worse),
        )
    if better:
        return say(
            "For a decision: what is proven speaks for {system}, by {most}; nothing proven speaks "
            "for {baseline}.",
            **names,
            most=_selected(better),
        )
    if worse:
        return say(
            "For a decision: what is proven speaks against {system}, by {most}; nothing proven "
            "speaks against {baseline}.",
            **names,
            most=_selected(worse),
        )
    if any(verdict.word is Word.EQUIVALENT for verdict in verdicts):
        return say(
            "For a decision: where it is settled, {system} and {baseline} differ by less than the "
            "margin of {margin}; choose on other grounds.",
            **names,
            margin=share(verdicts[0].margin),
        )
    return say(
        "For a decision: nothing is settled between {system} and {baseline}; these data are a "
        "reason for neither.",
        **names,
    )


def _rest(verdicts: Sequence[Verdict], left: Sequence[Verdict]) -> list[Text]:
    """What stays open, and how far it might go."""
    if not left or len(left) == len(verdicts):
        return []
    counts = {"left": len(left), "all": len(verdicts)}
    known = [verdict for verdict in left if verdict.low is not None]
    if not known:
        return [say("Open: {left} of {all} cells.", **counts)]
    return [
        say(
            "Open: {left} of {all} cells, whose intervals reach from {low} to {high}.",
            **counts,
            low=change(min(verdict.low or 1.0 for verdict in known)),
            high=change(max(verdict.high or 1.0 for verdict in known)),
        )
    ]


def _selected(verdicts: Sequence[Verdict]) -> Text:
    """The cell whose ratio is farthest from none, said to be picked for that."""
    picked = max(verdicts, key=lambda verdict: abs(math.log(verdict.estimate.ratio or 1.0)))
    words = {
        "metric": BY_NAME[picked.metric].label,
        "change": decided(picked),
        "cell": picked.cell.title,
    }
    if len(verdicts) == 1:
        return say("{metric} {change} in {cell}", **words)
    return say("{metric} {change} in {cell}, the largest of {count}", **words, count=len(verdicts))
