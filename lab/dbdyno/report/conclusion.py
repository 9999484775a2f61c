"""What a verdict means for somebody who has to decide, in sentences.

A word and an interval are not yet an answer: whether a difference matters depends on the margin,
and "undecided" is not "equal". These sentences say it, and say no more than the interval allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge import Judgement, Level, Verdict, Word, sentence
from dbdyno.judge.wording import change_decided
from dbdyno.metric import BY_NAME
from dbdyno.plan import Plan
from dbdyno.report.facts import RunFacts
from dbdyno.report.numbers import change, count, share
from dbdyno.report.trials import Attempt, State
from dbdyno.words import say

NAMED_MAX: Final = 4
"""More cells of one word are counted, not named."""


def meaning(verdict: Verdict) -> str:
    """What the interval means for a decision between the two systems."""
    margin = share(verdict.margin)
    match verdict.word:
        case Word.BETTER | Word.WORSE if verdict.material:
            side = "for" if verdict.word is Word.BETTER else "against"
            return (
                f"{_range(verdict)} The whole interval lies beyond the margin of {margin}: "
                f"a reason {side} {verdict.system} in this cell."
            )
        case Word.BETTER | Word.WORSE:
            return (
                f"{_range(verdict)} The direction is settled, but the difference may be as small "
                f"as the margin of {margin} or smaller; more blocks would show whether it matters."
            )
        case Word.EQUIVALENT:
            real = "A difference exists, but it is too small to matter. " * _is_real(verdict)
            return (
                f"{_range(verdict)} All of it lies within the margin of {margin}. {real}"
                "Choose between the two on other grounds."
            )
        case Word.UNDECIDED:
            return (
                f"{_range(verdict)} That allows both a difference that matters and none: "
                "these data are a reason for neither system. Undecided is not equal."
            )
        case Word.VOID:
            return (
                "Trials that this comparison needs are void, so no decision can rest on it; "
                "remove the cause named under Findings and repeat them."
            )
        case Word.NO_VERDICT:
            return "There are too few sound blocks for an interval: no decision can rest on it."


def _range(verdict: Verdict) -> str:
    cells = verdict.cells
    return say(
        "With 95 % confidence{together}, {metric} of {system} differs from that of {baseline} by "
        "{low} to {high}.",
        together=say(" in all {cells} cells together", cells=cells) if cells > 1 else "",
        metric=BY_NAME[verdict.metric].label,
        system=verdict.system,
        baseline=verdict.baseline,
        low=change(verdict.low),
        high=change(verdict.high),
    )


def _is_real(verdict: Verdict) -> bool:
    low, high = verdict.low, verdict.high
    return low is not None and high is not None and not low <= 1 <= high


def conclusion(
    plan: Plan, judgement: Judgement, run: RunFacts, attempts: Sequence[Attempt]
) -> tuple[str, ...]:
    """Verdicts, then what is missing, then what throws doubt on it; the first line says it all."""
    parts = [*_verdicts(plan, judgement, attempts)]
    if gaps := _gaps(run, attempts):
        parts.append(" ".join(gaps))
    doubts = [finding for finding in judgement.findings if finding.level is Level.DOUBTFUL]
    if doubts and attempts:
        checks = ", ".join(dict.fromkeys(finding.check for finding in doubts))
        parts.append(
            f"{count(len(doubts), 'doubtful finding')} ({checks}) must be weighed with these "
            "numbers; see Findings."
        )
    return tuple(parts)


def _verdicts(plan: Plan, judgement: Judgement, attempts: Sequence[Attempt]) -> list[str]:
    if not attempts:
        return ["Nothing has been measured yet, so nothing can be said about any system."]
    if not any(attempt.state is State.SOUND for attempt in attempts):
        return ["No trial is usable, so nothing can be said about any system."]
    if len(plan.systems) == 1:
        return [
            f"Only {plan.systems[0].label} was measured: "
            "this report has its numbers and compares it with nothing."
        ]
    verdicts = judgement.verdicts
    if len(verdicts) == 1:
        return [f"{verdicts[0].cell.title}: {sentence(verdicts[0])}.", meaning(verdicts[0])]
    return [line for system in plan.systems[1:] for line in tally(verdicts, system.label)]


def tally(verdicts: Sequence[Verdict], system: str) -> list[str]:
    """A system's verdicts word by word: which cells, and by how much where that is decided."""
    of_system = [verdict for verdict in verdicts if verdict.system == system]
    if not of_system:
        return [f"There is no verdict on {system}."]
    words = [verdict.word for verdict in of_system]
    counts = ", ".join(f"{word.value} in {words.count(word)}" for word in Word if word in words)
    head = f"{system} against {of_system[0].baseline} in {count(len(words), 'cell')}: {counts}."
    groups = ([v for v in of_system if v.word is word] for word in Word)
    return [head, *(_of_word(group) for group in groups if group)]


def _of_word(verdicts: Sequence[Verdict]) -> str:
    """The cells of one word, each by its name if they are few."""
    word, metric = verdicts[0].word, BY_NAME[verdicts[0].metric].label
    decided = word in (Word.BETTER, Word.WORSE, Word.EQUIVALENT)
    if len(verdicts) <= NAMED_MAX:
        told = "; ".join(
            verdict.cell.title + (f": {metric} {change_decided(verdict)}" if decided else "")
            for verdict in verdicts
        )
    elif decided:
        ratios = [v.estimate.ratio for v in verdicts if v.estimate.ratio is not None]
        told = f"{len(verdicts)} cells: {metric} {change(min(ratios))} to {change(max(ratios))}"
    else:
        told = f"{len(verdicts)} cells"
    not_equal = ", which is not equal" if word is Word.UNDECIDED else ""
    return f"{word.value.capitalize()}{not_equal}: {told}{_material(verdicts)}."


def _material(verdicts: Sequence[Verdict]) -> str:
    """In how many of the cells the whole interval lies beyond the margin."""
    material, margin = sum(verdict.material for verdict in verdicts), share(verdicts[0].margin)
    if material == 0:
        return ""
    where = f" in {material} of {len(verdicts)}" if material < len(verdicts) else ""
    return f" (beyond the margin of {margin}{where})"


def _gaps(run: RunFacts, attempts: Sequence[Attempt]) -> list[str]:
    states = [attempt.state for attempt in attempts]
    gaps = []
    if not run.complete:
        done = len({a.measurement.trial.key for a in attempts if a.state is not State.FAILED})
        gaps.append(f"The run is not complete: {done} of {run.trials_planned} trials are done.")
    lost = [(states.count(state), state.value) for state in (State.VOID, State.FAILED)]
    named = [f"{number} {word}" for number, word in lost if number]
    if named:
        gaps.append(f"Not counted of {count(len(attempts), 'attempt')}: {', '.join(named)}.")
    return gaps
