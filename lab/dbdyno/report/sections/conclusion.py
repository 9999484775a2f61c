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
from dbdyno.judge.verdict import Verdict, Word, ladders_of
from dbdyno.language.words import Text, capital, count, listed, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact, Known
from dbdyno.plan.plan import BLOCKS_MIN, Plan, comparisons
from dbdyno.plan.systems import Comparison
from dbdyno.report import numbers
from dbdyno.report.numbers import change, decided, share
from dbdyno.report.rows import Attempt, State, workload_name
from dbdyno.report.tell.causes import likeliest, of_samples
from dbdyno.report.tell.findings import check_name, together
from dbdyno.report.tell.headline import COUNTED, headline
from dbdyno.report.tell.levels import Levels, level_sentence, levels_of
from dbdyno.report.tell.measured import cell_title, load_words, metric_label
from dbdyno.report.tell.terms import Sentence, fitting
from dbdyno.report.tell.verdicts import accounting, sentence, stood_still

EACH_MAX: Final = 12
"""Most verdicts of a run for open cells to be told each; with more the table of all has them."""


IMPORTED: Final = Sentence(
    phrase(
        "Another tool measured these results. This report has their numbers and ratios but no "
        "verdict, because their order and machine are unknown."
    ),
    Fact.ELSEWHERE,
)


def conclusion(
    plan: Plan,
    judgement: Judgement,
    run: RunFacts,
    attempts: Sequence[Attempt],
) -> tuple[Text, ...]:
    """Verdicts, then gaps in the run, then doubts; the first line is the answer.

    With sampled stacks the functions that differ are the answer.
    """
    imported = IMPORTED.of(judgement.known)
    if imported and any(attempt.state is State.VALID for attempt in attempts):
        return (*imported, *_what_is_missing(run, attempts, judgement.known))
    parts = [
        *of_samples(judgement),
        *_verdicts(plan, judgement, attempts),
        *_gaps(run, attempts, judgement.known),
    ]
    doubtful = (finding for finding in judgement.findings if finding.level is Level.DOUBTFUL)
    doubts = together(doubtful, judgement.known)
    if doubts and attempts:
        parts.append(
            say(
                "Before you rely on these numbers, read {findings} ({checks}) under Findings.",
                findings=count(len(doubts), "warning"),
                checks=listed(dict.fromkeys(check_name(first.check) for first, *_ in doubts)),
            )
        )
    return tuple(parts)


def _verdicts(plan: Plan, judgement: Judgement, attempts: Sequence[Attempt]) -> list[Text]:
    if not attempts:
        return [say("Nothing has been measured yet.")]
    if not any(attempt.state is State.VALID for attempt in attempts):
        return [say("No trial is valid, so there is no result.")]
    if not comparisons(plan):
        return [
            say(
                "Only {system} was measured, so this report has its numbers and no comparison.",
                system=plan.systems[0].label,
            )
        ]
    verdicts, limits = judgement.verdicts, numbers.sentences(judgement)
    if limits and not verdicts:
        return limits
    if len(verdicts) == 1 and not limits:
        (only,) = verdicts
        text = say("{cell}: {told}.", cell=cell_title(only.cell), told=sentence(only))
        why = likeliest(judgement, 1) or accounted(judgement, only)
        return [*headline([only]), text, meaning(only), *why]
    return [*limits, *tallies(plan, judgement), *likeliest(judgement, 1)]


def tallies(plan: Plan, judgement: Judgement) -> list[Text]:
    """Every comparison of the plan from the top."""
    each = (tally(judgement.verdicts, one, judgement.summaries) for one in comparisons(plan))
    return [line for lines in each for line in lines]


def tally(
    verdicts: Iterable[Verdict], comparison: Comparison, summaries: Sequence[GridSummary] = ()
) -> list[Text]:
    """A comparison from the top: its headline, workloads, all cells where they have a mean, cells.

    A cell that no workload's line heads is told by itself if its size or direction is open.
    """
    verdicts = list(verdicts)
    every = _of_comparison(verdicts, comparison)
    if not every:
        return [say("There is no verdict on {system}.", system=comparison.labels[1])]
    levels = levels_of(every, summaries)
    others = [one for one in _without_a_head(every, levels) if not _is_settled(one)]
    open_cells = others if len(verdicts) <= EACH_MAX else []
    return [
        *headline(_answers(every, levels)),
        *_of_levels(levels.workloads),
        *(
            say("{cell}: {told}.", cell=cell_title(one.cell), told=sentence(one))
            for one in open_cells
        ),
        *_of_levels([levels.mean] if levels.mean else []),
        *([_counted(every)] if levels.workloads else []),
        *_both_ways(every),
    ]


def headlines(plan: Plan, judgement: Judgement) -> list[Text]:
    """The headline of every comparison."""
    groups = (_of_comparison(judgement.verdicts, one) for one in comparisons(plan))
    return [
        line
        for every in groups
        for line in headline(_answers(every, levels_of(every, judgement.summaries)))
    ]


def _of_comparison(verdicts: Iterable[Verdict], comparison: Comparison) -> list[Verdict]:
    return [one for one in verdicts if (one.baseline, one.system) == comparison.labels]


def _answers(verdicts: Sequence[Verdict], levels: Levels) -> list[Verdict | GridSummary]:
    """The workloads of a comparison, and its cells without a workload's line."""
    return [*levels.workloads, *_without_a_head(verdicts, levels)]


def _without_a_head(verdicts: Sequence[Verdict], levels: Levels) -> list[Verdict]:
    """Verdicts on cells that no workload's line heads."""
    heads = {(one.workload, one.setting) for one in levels.workloads}
    return [one for one in verdicts if one.cell.rate_per_s or one.cell.ladder not in heads]


def _is_settled(verdict: Verdict) -> bool:
    """True if the headline says all of a verdict: beyond the margin, or the same within it."""
    return verdict.material or verdict.word is Word.EQUIVALENT


def _of_levels(summaries: Iterable[GridSummary]) -> Iterator[Text]:
    return (say("{verdict}.", verdict=level_sentence(one)) for one in summaries)


def _counted(verdicts: Sequence[Verdict]) -> Text:
    """Number of a comparison's cells by word."""
    words = [verdict.word for verdict in verdicts]
    return say(
        "{system} against {baseline} in {cells}: {counts}.",
        system=verdicts[0].system,
        baseline=verdicts[0].baseline,
        cells=count(len(words), "cell"),
        counts=listed(
            say(COUNTED[word], count=words.count(word)) for word in Word if word in words
        ),
    )


def _both_ways(verdicts: Sequence[Verdict]) -> Iterator[Text]:
    """Tell of each workload whose cells have verdicts of opposite sign, by their largest ones."""
    for (workload, setting), ladder in ladders_of(verdicts).items():
        better = [verdict for verdict in ladder if verdict.word is Word.BETTER]
        worse = [verdict for verdict in ladder if verdict.word is Word.WORSE]
        if better and worse:
            yield say(
                "For {workload}, the faster system depends on the load level: {system} is ahead "
                "most at {most}, behind most at {least}. Use the load level most like your own.",
                workload=workload_name(workload, setting),
                system=ladder[0].system,
                most=_largest(better),
                least=_largest(worse),
            )


def _largest(verdicts: Sequence[Verdict]) -> Text:
    """The largest difference, with its load."""
    picked = max(verdicts, key=_distance)
    return say(
        "{load} ({metric} {change})",
        metric=metric_label(BY_NAME[picked.metric]),
        change=decided(picked),
        load=load_words(picked.cell),
    )


def _distance(verdict: Verdict) -> float:
    """Distance of the ratio from 1, in ln; infinite for a standstill."""
    ratio = verdict.estimate.ratio
    return math.inf if ratio is None else abs(math.log(ratio))


INCOMPLETE: Final = (
    Sentence(
        phrase("The run is not complete: {done} of {planned} trials are done."),
        Fact.HERE,
    ),
    Sentence(
        phrase(
            "The import was interrupted: {done} of {planned} results are stored. Import the files "
            "again."
        ),
        Fact.ELSEWHERE,
    ),
)


def _what_is_missing(run: RunFacts, attempts: Sequence[Attempt], known: Known) -> Iterator[Text]:
    if not run.complete:
        gone = (State.FAILED, State.REPEATED)
        ended = (one.measurement for one in attempts if one.state not in gone)
        done = len({one.trial.key for one in ended})
        yield fitting(INCOMPLETE, known, done=done, planned=run.trials_planned)


def _gaps(run: RunFacts, attempts: Sequence[Attempt], known: Known) -> Iterator[Text]:
    yield from _what_is_missing(run, attempts, known)
    states = [attempt.state for attempt in attempts]
    void, failed = states.count(State.VOID), states.count(State.FAILED)
    lost = [
        *([say("{count} void", count=void)] if void else []),
        *([say("{count} failed", count=failed)] if failed else []),
    ]
    if lost:
        attempted = count(len(states), "attempt")
        yield say(
            "Of {attempts}, these do not count: {lost}.", attempts=attempted, lost=listed(lost)
        )


# One verdict by itself.

SIZE_OPEN: Final = phrase(
    "{range} The direction is certain, but the difference may lie within the margin of {margin}. "
    "More blocks would show whether the difference matters."
)
MEANINGS: Final[Mapping[tuple[Word, bool], str]] = {
    (Word.BETTER, True): phrase(
        "{range} The whole interval lies beyond the margin of {margin}: in this cell, {system} is "
        "better by enough to matter."
    ),
    (Word.WORSE, True): phrase(
        "{range} The whole interval lies beyond the margin of {margin}: in this cell, {system} is "
        "worse by enough to matter."
    ),
    (Word.BETTER, False): SIZE_OPEN,
    (Word.WORSE, False): SIZE_OPEN,
    (Word.EQUIVALENT, True): phrase(
        "{range} The whole interval lies within the margin of {margin}. A difference exists, but "
        "it is too small to matter. Choose between the two on other grounds."
    ),
    (Word.EQUIVALENT, False): phrase(
        "{range} The whole interval lies within the margin of {margin}. Choose between the two on "
        "other grounds."
    ),
    (Word.UNDECIDED, False): phrase(
        "{range} The data do not show which system is better, nor that the difference is too small "
        "to matter. Not enough data does not mean that the systems are the same."
    ),
    (Word.VOID, False): phrase(
        "Too many trials of this comparison are void, so it has no result. Remove the cause "
        "named under Findings and repeat the trials."
    ),
    (Word.NO_VERDICT, False): phrase(
        "Fewer than three blocks have a value to compare, so this comparison has no result."
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
            "{said}: these blocks have no ratio, and the others alone would hide the standstill. "
            "Find out what the server waited for before you compare.",
            said=said,
        )
    return say(
        "{said}, and the other system worked in all of them. If both stood still equally often, "
        "at most {chance:.2g} % of runs would look like this. A verdict needs {level:.2g} % or "
        "less.",
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
