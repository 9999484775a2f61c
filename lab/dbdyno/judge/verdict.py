"""The decision table from an estimate to a word (docs/how-it-works/verdicts.md).

With the ratio's 95 % interval [L, U], turned so as to make above 1 good, and the plan's margin δ:

    L ≥ 1 + δ                       better, material
    1/(1+δ) < L and U < 1 + δ       equivalent, even if 1 lies outside
    L > 1                           better, its size undecided against the margin
    mirror images                   worse
    anything else                   undecided, with the blocks which would probably decide
    stood still in every block      worse than the side at work (`standstill`)
    stood still in some             undecided: these blocks have no ratio

One interval serves all rows, so the whole table errs in 5 % of cases at most. With several cells it
is the simultaneous interval (`interval.together`). Fewer than three sound pairs give no word: void
if some are missing because of void trials, else "no verdict".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from statistics import median

from dbdyno.judge.estimate import Estimate, Unsettled
from dbdyno.judge.finding import Finding, Level, Reason
from dbdyno.judge.interval import FIXED, LEVEL, Held
from dbdyno.judge.standstill import Standstill, longest_of
from dbdyno.judge.uses.power import Noise, blocks_to_decide
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import BY_NAME, Better, Metric
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_FEW, BLOCKS_MIN, DesignPlan

FEW_REQUESTS = "few-requests"
"""The check, and the reason of cells without a verdict because of it."""


class Word(StrEnum):
    """Outcome for a system against the baseline."""

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
        estimate: the cell by itself, with its own 95 % interval.
        low, high: ends of the interval behind the word: the estimate's own, or a wider simultaneous
            interval with the other cells; None below 3 blocks.
        level: error rate of this interval alone.
        cells: number of cells of this system to hold together at 95 %.
        margin: ratio difference of practical importance, 0.02 = 2 %.
        blocks_needed: for UNDECIDED, total blocks which would probably decide; None if over 1000.
        seconds_needed: time for the missing blocks here; None if unknown.
        steady_after_s: seconds of load until the rates would be steady; None where they were. More
            blocks do not help then, and the interval is wider by the warm-up's remainder.
        reasons: clauses to weaken or explain the word.
        standstill: counts of the blocks with a standstill; None without a standstill.
        outside_rates: of a highest rate within a latency limit: in some block the limit lay outside
            the measured rates.
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
    reasons: tuple[Reason, ...]
    low: float | None = None
    high: float | None = None
    level: float = LEVEL
    cells: int = 1
    seconds_needed: float | None = None
    steady_after_s: float | None = None
    standstill: Standstill | None = None
    outside_rates: bool = False

    @property
    def blocks(self) -> int:
        """Number of sound pairs, with or without a ratio."""
        return self.standstill.pairs if self.standstill else self.estimate.blocks

    @property
    def cpu_taken(self) -> float:
        """Logarithm of the ratio's part that CPU taken by others may explain; 0 without one."""
        parts = (one.values["part"] for one in self.reasons if one.kind == "cpu-taken")
        return math.log1p(next(parts, 0.0))

    @property
    def lacks_requests(self) -> bool:
        """True if trials had too few requests for the percentile, so there is no verdict."""
        return any(reason.kind == FEW_REQUESTS for reason in self.reasons)

    @property
    def is_open(self) -> bool:
        """True if more blocks could still change the word, so a run until decided goes on.

        A cell without any sound pair is not open: trials void in every block have a cause, named by
        the report. Cells with a standstill in some blocks, or with the latency limit outside the
        rates in some, are not open either: more blocks do not undo these.
        """
        if self.outside_rates:
            return False
        if self.word is Word.UNDECIDED:
            return self.standstill is None or self.standstill.is_whole
        return self.word in (Word.VOID, Word.NO_VERDICT) and self.blocks > 0


def verdict_of(
    estimate: Estimate,
    margin: float,
    findings: Sequence[Finding] = (),
    *,
    held: Held | None = None,
    design: DesignPlan = FIXED,
    block_s: float | None = None,
    standstill: Standstill | None = None,
    unsettled: Unsettled | None = None,
    taken: float = 0.0,
) -> Verdict:
    """The verdict on an estimate.

    Args:
        findings: findings on the cell and its two systems; a void finding is about a trial missing
            from the estimate.
        held: the simultaneous interval with the other cells; default the estimate's own.
        design: the run's stopping rule, which decides the number of blocks needed.
        block_s: duration of a block of the whole plan here.
        standstill: counts of the blocks with a standstill; None without a standstill.
        unsettled: the warm-ups' remainder in the ratio.
        taken: logarithm of the ratio's part that CPU taken by others may explain (`cpu_taken`).
    """
    lost = any(finding.level is Level.VOID for finding in findings)
    alone = _own(estimate)
    held = held or alone
    undisturbed = settled(held, unsettled)
    own, shown = (_allowing_for(one, taken) for one in (settled(alone, unsettled), undisturbed))
    word, material = _word(estimate.metric, shown, margin, lost)
    level = shown.level if shown else LEVEL
    is_quieter = (word, material) != _word(estimate.metric, undisturbed, margin, lost)
    is_helped = word is Word.UNDECIDED and unsettled is None and not is_quieter
    needed = blocks_needed(estimate, held, margin, design) if is_helped else None
    blocks = estimate.blocks
    if standstill is not None:
        word, material, needed = _word_of_standstill(standstill, lost)
        blocks = standstill.pairs
    missing_s = None if needed is None or block_s is None else (needed - blocks) * block_s
    warm_up = [{"low": math.expm1(u.low), "high": math.expm1(u.high)} for u in [unsettled] if u]
    return Verdict(
        cell=estimate.cell,
        metric=estimate.metric,
        baseline=estimate.baseline,
        system=estimate.system,
        word=word,
        material=material,
        estimate=estimate,
        margin=margin,
        blocks_needed=needed,
        seconds_needed=missing_s,
        reasons=(
            *_reasons(blocks, word, material, margin, findings),
            *(longest_of(findings) if standstill else ()),
            *(_alone(estimate, own, word, material, margin, shown) if not standstill else ()),
            *_beyond_the_run(needed, design),
            *(Reason(kind="warm-up", values=ends) for ends in warm_up),
            *_taken(estimate, taken),
        ),
        low=shown.low if shown else None,
        high=shown.high if shown else None,
        level=level,
        cells=standstill.cells if standstill else shown.cells if shown else 1,
        standstill=standstill,
        steady_after_s=unsettled.until_s if unsettled else None,
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


def word_for(metric: Metric, low: float, high: float, margin: float) -> tuple[Word, bool]:
    """The table for an interval of a metric's ratio, with the metric's better direction."""
    if metric.better is Better.HIGHER:
        return word_of(low, high, margin)
    return word_of(1 / high, 1 / low, margin)


def blocks_needed(
    estimate: Estimate, held: Held | None, margin: float, design: DesignPlan = FIXED
) -> int | None:
    """Total blocks for a run like this to decide, in four of five such runs.

    Returns:
        At least one block more than there are; None without an interval or beyond 1000 blocks.
    """
    if estimate.ratio is None or held is None:
        return None
    noise = Noise(held.sd, held.freedom, estimate.blocks)
    return blocks_to_decide(math.log(estimate.ratio), noise, margin, design, held.level)


def _own(estimate: Estimate) -> Held | None:
    """The estimate's interval by itself."""
    low, high, sd = estimate.low, estimate.high, estimate.log_sd
    if low is None or high is None or sd is None:
        return None
    return Held(low, high, low, high, sd, estimate.blocks - 1, LEVEL, 1)


def settled(held: Held | None, unsettled: Unsettled | None) -> Held | None:
    """The interval with room for the warm-ups' remainder."""
    if held is None or unsettled is None:
        return held
    low, high = unsettled.widened(held.low, held.high)
    return replace(held, low=low, high=high)


def beyond_cpu_taken(low: float, high: float, taken: float) -> tuple[float, float]:
    """The ends of a ratio's interval with room for the CPU that others took (`cpu_taken`)."""
    return low * math.exp(min(0.0, taken)), high * math.exp(max(0.0, taken))


def _allowing_for(held: Held | None, taken: float) -> Held | None:
    if held is None or taken == 0:
        return held
    low, high = beyond_cpu_taken(held.low, held.high, taken)
    return replace(held, low=low, high=high)


def _taken(estimate: Estimate, taken: float) -> list[Reason]:
    """The CPU that others took from a system, where it may explain a part of the ratio."""
    if taken == 0:
        return []
    who = estimate.system if taken > 0 else estimate.baseline
    return [Reason(kind="cpu-taken", values={"system": who, "part": math.expm1(taken)})]


def _word(metric: str, shown: Held | None, margin: float, lost: bool) -> tuple[Word, bool]:
    if shown is None:
        return (Word.VOID if lost else Word.NO_VERDICT), False
    return word_for(BY_NAME[metric], shown.low, shown.high, margin)


def _word_of_standstill(standstill: Standstill, lost: bool) -> tuple[Word, bool, int | None]:
    """Word, whether it is material, and the blocks needed; None if more blocks do not help."""
    if standstill.pairs < BLOCKS_MIN:
        return (Word.VOID if lost else Word.NO_VERDICT), False, None
    if not standstill.is_whole:
        return Word.UNDECIDED, False, None
    if standstill.pairs < standstill.pairs_needed:
        return Word.UNDECIDED, False, standstill.pairs_needed
    return (Word.WORSE if standstill.system else Word.BETTER), True, None


def _beyond_the_run(needed: int | None, design: DesignPlan) -> list[Reason]:
    """The block limit of a run until decided, where it is below the blocks needed."""
    may_grow = design.stop == "blocks" or design.time_s is not None  # time can be added
    if may_grow or needed is None or needed <= design.blocks:
        return []
    return [Reason(kind="most-blocks", values={"blocks": design.blocks})]


def _alone(
    estimate: Estimate,
    own: Held | None,
    word: Word,
    material: bool,
    margin: float,
    shown: Held | None,
) -> list[Reason]:
    """The word of the cell by itself, where it differs from its word among all cells."""
    if shown is None or shown.cells == 1:
        return []
    alone, beyond = _word(estimate.metric, own, margin, lost=False)
    values = {"word": alone, "material": beyond, "cells": shown.cells}
    return [] if (alone, beyond) == (word, material) else [Reason(kind="alone", values=values)]


def _reasons(
    blocks: int, word: Word, material: bool, margin: float, findings: Sequence[Finding]
) -> list[Reason]:
    reasons = []
    short = [finding.values for finding in findings if finding.check == FEW_REQUESTS]
    if word is Word.NO_VERDICT and short:
        shortest = min(short, key=itemgetter("requests"))
        reasons.append(Reason(kind=FEW_REQUESTS, values=dict(shortest)))
    elif blocks < BLOCKS_MIN:
        least = {"blocks": blocks, "least": BLOCKS_MIN}
        reasons.append(Reason(kind="too-few-blocks", values=least))
    elif blocks < BLOCKS_FEW:
        reasons.append(Reason(kind="few-blocks", values={"blocks": blocks, "good": BLOCKS_FEW}))
    if word in (Word.BETTER, Word.WORSE) and not material:
        reasons.append(Reason(kind="size-undecided", values={"margin": margin}))
    if void := [finding for finding in findings if finding.level is Level.VOID]:
        trials = len({finding.trial or finding.model_dump_json() for finding in void})
        reasons.append(Reason(kind="void", values={"trials": trials, "checks": _times(void)}))
    if doubtful := [finding for finding in findings if finding.level is Level.DOUBTFUL]:
        reasons.append(Reason(kind="doubtful", values={"checks": _times(doubtful)}))
    return reasons


def _times(findings: Sequence[Finding]) -> dict[str, int]:
    return dict(Counter(finding.check for finding in findings))


def by_comparison(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """The verdicts of each comparison, in the order of their first ones."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.baseline, verdict.system), []).append(verdict)
    return list(groups.values())


def ladders_of(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], list[Verdict]]:
    """The verdicts of a comparison by workload and setting, in the order of their first ones."""
    ladders: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        ladders.setdefault(verdict.cell.ladder, []).append(verdict)
    return ladders


def block_seconds(measurements: Sequence[Measurement]) -> float | None:
    """Median duration of a block in seconds, from its start to the next block's.

    Machines which run blocks beside each other share this time. With a single block it is the time
    of its loads, without starts and restored data; None without a trial, or without recorded start
    times. A pause between two labs at work on the run affects one block of many, so the median is
    robust to it.
    """
    machines: dict[str, dict[int, float]] = {}
    loads_s = 0.0
    for measurement in measurements:
        if (at_s := measurement.started_s) is not None:
            begun, block = machines.setdefault(measurement.machine, {}), measurement.trial.block
            begun[block] = min(at_s, begun.get(block, at_s))
            loads_s += measurement.load_s
    begins_s = [sorted(begun.values()) for begun in machines.values()]
    steps = [later - earlier for of_machine in begins_s for earlier, later in pairwise(of_machine)]
    if rising := [step for step in steps if step > 0]:
        return median(rising) / len(machines)
    return loads_s / sum(map(len, begins_s)) / len(machines) if loads_s else None
