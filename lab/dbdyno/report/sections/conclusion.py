"""Sentences on the meaning of verdicts for somebody who has to decide.

A word and an interval are not yet an answer: the margin decides if a difference matters, and
"undecided" is not "equal". These sentences say so, and claim no more than the interval behind the
word allows: the wider one if several cells hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.standstill import Standstill, chance
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, capital, count, listed, name, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact
from dbdyno.plan.plan import BLOCKS_MIN, Plan, comparisons
from dbdyno.plan.systems import Comparison
from dbdyno.report import numbers
from dbdyno.report.numbers import change, decided, interval, share
from dbdyno.report.rows import Attempt, State
from dbdyno.report.tell.findings import check_name, together
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.terms import Sentence
from dbdyno.report.tell.verdicts import accounting, sentence, stood_still

NAMED_MAX: Final = 4
"""Most cells of a verdict to name; more are counted."""
DECIDED: Final = (Word.BETTER, Word.WORSE, Word.EQUIVALENT)
COUNTED: Final[Mapping[Word, str]] = {
    Word.BETTER: phrase("better in {count}"),
    Word.WORSE: phrase("worse in {count}"),
    Word.EQUIVALENT: phrase("equivalent in {count}"),
    Word.UNDECIDED: phrase("undecided in {count}"),
    Word.VOID: phrase("void in {count}"),
    Word.NO_VERDICT: phrase("no verdict in {count}"),
}
NAMED: Final[Mapping[Word, str]] = {
    Word.BETTER: phrase("Better: {cells}."),
    Word.WORSE: phrase("Worse: {cells}."),
    Word.EQUIVALENT: phrase("Equivalent: {cells}."),
    Word.UNDECIDED: phrase("Undecided, which is not equal: {cells}."),
    Word.VOID: phrase("Void: {cells}."),
    Word.NO_VERDICT: phrase("No verdict: {cells}."),
}


IMPORTED: Final = Sentence(
    phrase(
        "These are results of another tool: this report has their numbers and ratios, and no"
        " verdict, as nobody saw in which order and on what they were measured."
    ),
    Fact.ELSEWHERE,
)


def conclusion(
    plan: Plan,
    judgement: Judgement,
    run: RunFacts,
    attempts: Sequence[Attempt],
) -> tuple[Text, ...]:
    """Verdicts, then gaps in the run, then doubts; the first line is the answer."""
    imported = IMPORTED.of(judgement.known)
    if imported and any(attempt.state is State.SOUND for attempt in attempts):
        return (*imported, *_what_is_missing(run, attempts))
    parts = [*_verdicts(plan, judgement, attempts), *_gaps(run, attempts)]
    doubtful = (finding for finding in judgement.findings if finding.level is Level.DOUBTFUL)
    doubts = together(doubtful, judgement.known)
    if doubts and attempts:
        parts.append(
            say(
                "{findings} ({checks}) must be weighed with these numbers; see Findings.",
                findings=count(len(doubts), "doubtful finding"),
                checks=listed(dict.fromkeys(check_name(first.check) for first, *_ in doubts)),
            )
        )
    return tuple(parts)


def _verdicts(plan: Plan, judgement: Judgement, attempts: Sequence[Attempt]) -> list[Text]:
    if not attempts:
        return [say("Nothing has been measured yet, so nothing can be said about any system.")]
    if not any(attempt.state is State.SOUND for attempt in attempts):
        return [say("No trial is usable, so nothing can be said about any system.")]
    if not comparisons(plan):
        return [
            say(
                "Only {system} was measured: this report has its numbers and compares it with "
                "nothing.",
                system=plan.systems[0].label,
            )
        ]
    verdicts, limits = judgement.verdicts, numbers.sentences(judgement)
    if limits and not verdicts:
        return limits
    if len(verdicts) == 1 and not limits:
        (only,) = verdicts
        text = say("{cell}: {told}.", cell=cell_title(only.cell), told=sentence(only))
        return [text, meaning(only), *accounted(judgement, only)]
    tallied = (tally(verdicts, one, judgement.summaries) for one in comparisons(plan))
    return [*limits, *(line for lines in tallied for line in lines)]


def tally(
    verdicts: Iterable[Verdict], comparison: Comparison, summaries: Iterable[GridSummary] = ()
) -> list[Text]:
    """A comparison's verdicts together: how many of each word, and their sum; many word by word."""
    baseline, system = comparison.labels
    of_system = [one for one in verdicts if (one.baseline, one.system) == (baseline, system)]
    if not of_system:
        return [say("There is no verdict on {system}.", system=system)]
    words = [verdict.word for verdict in of_system]
    head = say(
        "{system} against {baseline} in {cells}: {counts}.",
        system=system,
        baseline=baseline,
        cells=count(len(words), "cell"),
        counts=listed(
            say(COUNTED[word], count=words.count(word)) for word in Word if word in words
        ),
    )
    overall = (
        _overall(one)
        for one in summaries
        if (one.baseline, one.system, one.setting) == (baseline, system, "")
    )
    groups = ([v for v in of_system if v.word is word] for word in Word)
    return [
        head,
        *(line for line in overall if line),
        *decision(of_system),
        *(_of_word(group) for group in groups if group and len(of_system) > NAMED_MAX),
        *_together(of_system),
    ]


def _together(verdicts: Sequence[Verdict]) -> list[Text]:
    """A sentence on why intervals are wider than the cells' own; empty for a single cell."""
    cells = verdicts[0].cells
    if cells == 1:
        return []
    return [say("Intervals are as wide as it takes for all {cells} cells to hold.", cells=cells)]


def _overall(summary: GridSummary) -> Text:
    """All cells as one number; empty for a single cell or without a ratio."""
    if summary.ratio is None or summary.cells < 2:
        return name("")
    return say(
        "Over all {cells} cells taken together, {metric} differs by {change} (geometric mean; "
        "workloads weigh alike, and so do the cells of one).",
        cells=summary.cells,
        metric=metric_label(BY_NAME[summary.metric]),
        change=interval(summary.ratio, summary.low, summary.high),
    )


def _of_word(verdicts: Sequence[Verdict]) -> Text:
    """A sentence on the cells with the same word, by name if they are few."""
    return say(
        NAMED[verdicts[0].word],
        cells=say("{cells}{material}", cells=_named(verdicts), material=_material(verdicts)),
    )


def _named(verdicts: Sequence[Verdict]) -> Text:
    first = verdicts[0]
    is_decided, metric = first.word in DECIDED, metric_label(BY_NAME[first.metric])
    if len(verdicts) <= NAMED_MAX:
        return listed((_one(v) if is_decided else cell_title(v.cell) for v in verdicts), "; ")
    cells = count(len(verdicts), "cell")
    if not is_decided:
        return cells
    ratios = [v.estimate.ratio for v in verdicts if v.estimate.ratio is not None]
    if not ratios:
        return cells
    return say(
        "{cells}: {metric} {least} to {most}",
        cells=cells,
        metric=metric,
        least=change(min(ratios)),
        most=change(max(ratios)),
    )


def _one(verdict: Verdict) -> Text:
    return say(
        "{cell}: {metric} {change}",
        cell=cell_title(verdict.cell),
        metric=metric_label(BY_NAME[verdict.metric]),
        change=decided(verdict),
    )


def _material(verdicts: Sequence[Verdict]) -> Text:
    """In how many of the cells the whole interval lies beyond the margin."""
    material, margin = sum(verdict.material for verdict in verdicts), share(verdicts[0].margin)
    if material == 0:
        return name("")
    if material == len(verdicts):
        return say(" (beyond the margin of {margin})", margin=margin)
    return say(
        " (beyond the margin of {margin} in {material} of {all})",
        margin=margin,
        material=material,
        all=len(verdicts),
    )


def _what_is_missing(run: RunFacts, attempts: Sequence[Attempt]) -> Iterator[Text]:
    if not run.complete:
        gone = (State.FAILED, State.REPEATED)
        ended = (one.measurement for one in attempts if one.state not in gone)
        yield say(
            "The run is not complete: {done} of {planned} trials are done.",
            done=len({one.trial.key for one in ended}),
            planned=run.trials_planned,
        )


def _gaps(run: RunFacts, attempts: Sequence[Attempt]) -> Iterator[Text]:
    yield from _what_is_missing(run, attempts)
    states = [attempt.state for attempt in attempts]
    void, failed = states.count(State.VOID), states.count(State.FAILED)
    lost = [
        *([say("{count} void", count=void)] if void else []),
        *([say("{count} failed", count=failed)] if failed else []),
    ]
    if lost:
        attempted = count(len(states), "attempt")
        yield say("Not counted of {attempts}: {lost}.", attempts=attempted, lost=listed(lost))


# All verdicts on one system together: better and worse count for and against it, equivalent counts
# for neither, and undecided cells are named, since they may hide a difference that matters.

OPEN = (Word.UNDECIDED, Word.VOID, Word.NO_VERDICT)


def decision(verdicts: Sequence[Verdict]) -> list[Text]:
    """Summary of the verdicts on one system; empty for fewer than two.

    Args:
        verdicts: verdicts on one system, all against the same baseline.
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
    """Undecided cells, and the range of their intervals."""
    if not left or len(left) == len(verdicts):
        return []
    counts = {"left": len(left), "all": len(verdicts)}
    known = [verdict for verdict in left if verdict.low is not None and not verdict.standstill]
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
    """The cell with the largest difference, named as the largest of several."""
    picked = max(verdicts, key=_distance)
    words = {
        "metric": metric_label(BY_NAME[picked.metric]),
        "change": decided(picked),
        "cell": cell_title(picked.cell),
    }
    if len(verdicts) == 1:
        return say("{metric} {change} in {cell}", **words)
    return say("{metric} {change} in {cell}, the largest of {count}", **words, count=len(verdicts))


def _distance(verdict: Verdict) -> float:
    """Distance of the ratio from 1, in ln; infinite for a standstill."""
    ratio = verdict.estimate.ratio
    return math.inf if ratio is None else abs(math.log(ratio))


# One verdict by itself.

SIZE_OPEN: Final = phrase(
    "{range} The direction is settled, but the difference may be as small as the margin of "
    "{margin} or smaller; more blocks would show whether it matters."
)
MEANINGS: Final[Mapping[tuple[Word, bool], str]] = {
    (Word.BETTER, True): phrase(
        "{range} The whole interval lies beyond the margin of {margin}: a reason for {system} in "
        "this cell."
    ),
    (Word.WORSE, True): phrase(
        "{range} The whole interval lies beyond the margin of {margin}: a reason against {system} "
        "in this cell."
    ),
    (Word.BETTER, False): SIZE_OPEN,
    (Word.WORSE, False): SIZE_OPEN,
    (Word.EQUIVALENT, True): phrase(
        "{range} All of it lies within the margin of {margin}. A difference exists, but it is too "
        "small to matter. Choose between the two on other grounds."
    ),
    (Word.EQUIVALENT, False): phrase(
        "{range} All of it lies within the margin of {margin}. Choose between the two on other "
        "grounds."
    ),
    (Word.UNDECIDED, False): phrase(
        "{range} That allows both a difference that matters and none: these data are a reason for "
        "neither system. Undecided is not equal."
    ),
    (Word.VOID, False): phrase(
        "Trials that this comparison needs are void, so no decision can rest on it; remove the "
        "cause named under Findings and repeat them."
    ),
    (Word.NO_VERDICT, False): phrase(
        "There are too few sound blocks for an interval: no decision can rest on it."
    ),
}
"""By the word, and whether it is beyond the margin (for equivalent: whether 1 is outside)."""


def meaning(verdict: Verdict) -> Text:
    """Meaning of the interval behind a verdict's word."""
    if verdict.standstill is not None and verdict.blocks >= BLOCKS_MIN:
        return _meaning_of_standstill(verdict, verdict.standstill)
    further = _is_real(verdict) if verdict.word is Word.EQUIVALENT else verdict.material
    return say(
        MEANINGS[verdict.word, further],
        range=_range(verdict),
        margin=share(verdict.margin),
        system=verdict.system,
    )


def _meaning_of_standstill(verdict: Verdict, standstill: Standstill) -> Text:
    said = stood_still(standstill, verdict.baseline, verdict.system)
    if not standstill.is_whole:
        return say(
            "{said}: those blocks have no ratio, and the others alone would hide them. Look for "
            "what the server waited for before you compare.",
            said=said,
        )
    return say(
        "{said}, and the other one worked in all of them. Two systems that stand still equally "
        "often show that in {chance:.2g} % of runs at most; a word may rest on {level:.2g} %.",
        said=said,
        chance=chance(standstill.pairs) * 100,
        level=standstill.level * 100,
    )


def accounted(judgement: Judgement, verdict: Verdict) -> list[Text]:
    """The part of a difference due to CPU per transaction, if it is known and worth a sentence."""
    is_different = verdict.word in (Word.BETTER, Word.WORSE)
    parts = judgement.accounting(verdict) if is_different else None
    text = accounting(parts) if parts else None
    return [capital(text)] if text else []


def _range(verdict: Verdict) -> Text:
    alone = phrase(
        "With 95 % confidence, {metric} of {system} differs from that of {baseline} by {low} to "
        "{high}."
    )
    together = phrase(
        "With 95 % confidence in all {cells} cells together, {metric} of {system} differs from "
        "that of {baseline} by {low} to {high}."
    )
    return say(
        alone if verdict.cells == 1 else together,
        cells=verdict.cells,
        metric=metric_label(BY_NAME[verdict.metric]),
        system=verdict.system,
        baseline=verdict.baseline,
        low=change(verdict.low),
        high=change(verdict.high),
    )


def _is_real(verdict: Verdict) -> bool:
    low, high = verdict.low, verdict.high
    return low is not None and high is not None and not low <= 1 <= high
