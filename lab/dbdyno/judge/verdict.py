"""From an estimate to a word, by one table (method.md 1.b); `wording` says it.

With the ratio's 95 % interval [L, U], turned so that above 1 is good, and the plan's margin δ:

    L ≥ 1 + δ                       better, material
    1/(1+δ) < L and U < 1 + δ       equivalent, even if 1 lies outside
    L > 1                           better, its size undecided against the margin
    mirror images                   worse
    anything else                   undecided, with the blocks that would probably decide

One interval serves all rows, so the whole table errs in 5 % of cases at most. Fewer than three
sound pairs give no word: void where void trials are missing from them, else "no verdict".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from scipy import stats

from dbdyno.judge.checks_design import BLOCKS_FEW, BLOCKS_MIN
from dbdyno.judge.estimate import CONFIDENCE, Estimate
from dbdyno.judge.finding import Finding, Level
from dbdyno.measurement import Cell, Noun
from dbdyno.metric import BY_NAME, Better
from dbdyno.words import Text

BLOCKS_MAX: Final = 1000
"""A plan has no more blocks; a need beyond that is none that can be met."""


class Word(StrEnum):
    """What can be said about a system against the baseline."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    VOID = "void"
    NO_VERDICT = "no verdict"  # below three sound blocks: numbers only


class Verdict(Noun):
    """A system against the baseline in one cell: "system is <word> than baseline".

    Attributes:
        material: the whole interval lies beyond the margin.
        margin: ratio difference that matters, 0.02 = 2 %.
        blocks_needed: for UNDECIDED, blocks in all that would probably decide; None if over 1000.
        reasons: what weakens or explains the word, one clause each.
    """

    cell: Cell
    metric: str
    baseline: str
    system: str
    word: Word
    material: bool
    estimate: Estimate
    margin: float
    blocks_needed: int | None
    reasons: tuple[Text, ...]


def verdict_of(estimate: Estimate, margin: float, findings: Sequence[Finding] = ()) -> Verdict:
    """The verdict on an estimate.

    Args:
        findings: those that concern the cell and its two systems; a void one is about a trial that
            is missing from the estimate.
    """
    lost = [finding for finding in findings if finding.level is Level.VOID]
    word, material = _word(estimate, margin, bool(lost))
    undecided = word is Word.UNDECIDED
    return Verdict(
        cell=estimate.cell,
        metric=estimate.metric,
        baseline=estimate.baseline,
        system=estimate.system,
        word=word,
        material=material,
        estimate=estimate,
        margin=margin,
        blocks_needed=blocks_needed(estimate, margin) if undecided else None,
        reasons=tuple(_reasons(estimate, word, material, margin, findings)),
    )


def word_of(low: float, high: float, margin: float) -> tuple[Word, bool]:
    """The table: word and whether it is material, for an interval where above 1 is good."""
    if low >= 1 + margin:
        return Word.BETTER, True
    if high <= 1 / (1 + margin):
        return Word.WORSE, True
    if low > 1 / (1 + margin) and high < 1 + margin:
        return Word.EQUIVALENT, False
    if low > 1:
        return Word.BETTER, False
    if high < 1:
        return Word.WORSE, False
    return Word.UNDECIDED, False


def blocks_needed(estimate: Estimate, margin: float) -> int | None:
    """Blocks in all that would decide if the next ones are like these: n ≈ (t·s/h)².

    h is the half width that is enough: narrow enough to leave 1 outside, or to lie inside the
    margin, whichever is easier. t depends on n, so the least n that satisfies it is looked up.

    Returns:
        At least one block more than there are; None without an interval or beyond 1000 blocks.
    """
    if estimate.ratio is None or estimate.log_sd is None:
        return None
    off = abs(math.log(estimate.ratio))
    enough = max(off, math.log1p(margin) - off)
    n = np.arange(max(estimate.blocks + 1, BLOCKS_MIN), BLOCKS_MAX + 1)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * estimate.log_sd / np.sqrt(n)
    deciding = n[half < enough]
    return int(deciding[0]) if deciding.size else None


def few_blocks(blocks: int) -> str:
    """The reason that stands where a sentence has "(few)"."""
    return f"few blocks: {blocks} ({BLOCKS_FEW} or more are good)"


def _word(estimate: Estimate, margin: float, lost: bool) -> tuple[Word, bool]:
    if estimate.low is None or estimate.high is None:
        return (Word.VOID if lost else Word.NO_VERDICT), False
    if BY_NAME[estimate.metric].better is Better.HIGHER:
        return word_of(estimate.low, estimate.high, margin)
    return word_of(1 / estimate.high, 1 / estimate.low, margin)


def _reasons(
    estimate: Estimate, word: Word, material: bool, margin: float, findings: Sequence[Finding]
) -> list[str]:
    reasons = []
    blocks = estimate.blocks
    if blocks < BLOCKS_MIN:
        reasons.append(f"{_count(blocks, 'sound block')}; {BLOCKS_MIN} are the least for a verdict")
    elif blocks < BLOCKS_FEW:
        reasons.append(few_blocks(blocks))
    if word in (Word.BETTER, Word.WORSE) and not material:
        reasons.append(f"whether by more than the margin of {margin * 100:g} % is undecided")
    void = [finding for finding in findings if finding.level is Level.VOID]
    if void:
        trials = len({finding.trial or finding.evidence for finding in void})
        reasons.append(f"{_count(trials, 'void trial')} left out: {_checks(void)}")
    doubtful = [finding for finding in findings if finding.level is Level.DOUBTFUL]
    if doubtful:
        reasons.append(f"doubtful: {_checks(doubtful)}")
    return reasons


def _checks(findings: Sequence[Finding]) -> str:
    """The checks' names, each once, with how often it fired if more than once."""
    names = [finding.check for finding in findings]
    return ", ".join(
        name if names.count(name) == 1 else f"{name} ({names.count(name)}×)"
        for name in dict.fromkeys(names)
    )


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
