"""A verdict as a sentence, and a ratio as the change it means: 0.769 → "−23.1 %".

The one place for both, so that stdout, tables, charts and files agree on every digit.
"""

from __future__ import annotations

from typing import Final

from dbdyno.judge.checks_design import BLOCKS_FEW, BLOCKS_MIN
from dbdyno.judge.estimate import Estimate
from dbdyno.judge.verdict import BLOCKS_MAX, Verdict, Word
from dbdyno.measurement_control import ControlOutcome
from dbdyno.metric import BY_NAME

THIN: Final = "\u202f"
"""Narrow no-break space between groups of three digits; no locale takes it for a point."""
MULTIPLE_FROM: Final = 10.0
"""From that ratio on, a multiple (×12.3) says more than a percentage."""


def sentence(verdict: Verdict) -> str:
    """The verdict in plain words with its numbers.

    >>> "B is worse than A: TPS −23.1 % [−25.0, −21.2], 3 blocks (few)"
    """
    system, baseline = verdict.system, verdict.baseline
    words = {
        Word.BETTER: f"{system} is better than {baseline}",
        Word.WORSE: f"{system} is worse than {baseline}",
        Word.EQUIVALENT: f"{system} and {baseline} are equivalent within "
        f"{verdict.margin * 100:g} %",
        Word.UNDECIDED: f"{system} against {baseline} is undecided",
        Word.VOID: f"{system} against {baseline} is void",
        Word.NO_VERDICT: f"{system} against {baseline} has no verdict",
    }
    return f"{words[verdict.word]}: {_numbers(verdict)}{_needed(verdict)}"


def change(ratio: float) -> str:
    """A ratio as a change: 0.769 → "−23.1 %", 12.3 → "×12.3"."""
    return _bare(ratio) + ("" if ratio >= MULTIPLE_FROM else " %")


def change_with_interval(estimate: Estimate | ControlOutcome) -> str | None:
    """A ratio with its 95 % interval: "−23.1 % [−25.0, −21.2]"; None without a ratio."""
    if estimate.ratio is None:
        return None
    if estimate.low is None or estimate.high is None:
        return change(estimate.ratio)
    return f"{change(estimate.ratio)} [{_bare(estimate.low)}, {_bare(estimate.high)}]"


def _numbers(verdict: Verdict) -> str:
    estimate, parts = verdict.estimate, []
    told = change_with_interval(estimate)
    if told is not None and verdict.word is not Word.VOID:
        parts.append(f"{BY_NAME[verdict.metric].label} {told}")
    if estimate.blocks < BLOCKS_MIN:
        parts.extend(verdict.reasons)
    else:
        few = " (few)" if estimate.blocks < BLOCKS_FEW else ""
        parts.append(f"{estimate.blocks} blocks{few}")
    return ", ".join(parts)


def _needed(verdict: Verdict) -> str:
    if verdict.word is not Word.UNDECIDED:
        return ""
    needed = verdict.blocks_needed
    blocks = f"more than {BLOCKS_MAX:,}" if needed is None else f"about {needed:,}"
    return f"; to decide would take {blocks} blocks".replace(",", THIN)


def _bare(ratio: float) -> str:
    """One decimal, a true minus sign, no percent sign."""
    if ratio >= MULTIPLE_FROM:
        return f"×{ratio:,.1f}".replace(",", THIN)
    text = f"{(ratio - 1) * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
