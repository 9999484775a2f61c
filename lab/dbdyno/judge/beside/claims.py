"""A publication's claims held against this run: the cells of a claim together, then each.

A claim is a range of ratios (`plan.publication.Claim`). It is supported if the whole interval of
the mean ratio of its cells lies within that range, and contradicted if the whole interval lies
outside. An interval which crosses an end of the range leaves the claim open. The intervals of its
cells hold together at 95 %, as for verdicts (docs/how-it-works/verdicts.md); there is no correction
for multiplicity between claims.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, TypedDict

from dbdyno.judge.audit import Sound
from dbdyno.judge.beside.grid import sample_of, weights
from dbdyno.judge.checks.course import SECONDS_MIN, rates_of
from dbdyno.judge.estimate import Estimate, Pairs, Sample, Unsettled, estimated
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.interval import Held
from dbdyno.judge.verdict import settled
from dbdyno.measurement.measurement import RATES, Cell
from dbdyno.measurement.metric import BY_NAME, Better, Metric
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan, Plan
from dbdyno.plan.publication import RATE_VARIATION, Claim
from dbdyno.plan.systems import MeasuredArm

VARIATION: Final = Metric(RATE_VARIATION, "", Better.LOWER)
"""Of a single window: windows are compared within blocks, and never merged."""


class ClaimWord(StrEnum):
    """Outcome of a claim, or of a claim in a cell."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    OPEN = "open"


class ClaimedCell(Noun):
    """A claim in one cell.

    Attributes:
        ratio: `of` / `than`, geometric mean over blocks; None without a block with both, or if
            either stood still in some block.
        low, high: confidence interval, simultaneous over the claim's cells; None below 3 blocks.
        doubts: checks with doubtful findings on either side.
    """

    cell: Cell
    word: ClaimWord
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    doubts: tuple[str, ...] = ()


class JudgedClaim(Noun):
    """A claim with all of its cells in this run, empty where the run leaves them out.

    Attributes:
        word: of the cells together.
        ratio: geometric mean over the cells, of which workloads weigh alike; None where a cell has
            no ratio.
        low, high: its 95 % interval; None with a cell below 3 blocks.
    """

    claim: Claim
    cells: tuple[ClaimedCell, ...]
    word: ClaimWord
    ratio: float | None
    low: float | None
    high: float | None

    def count(self, word: ClaimWord) -> int:
        """Number of cells with this outcome."""
        return sum(one.word is word for one in self.cells)


def judged_claims(
    pairs: Pairs, cells: Sequence[Cell], findings: Sequence[Finding], plan: Plan
) -> tuple[JudgedClaim, ...]:
    """Judge every claim of the publication followed by the plan."""
    claims = plan.published.claims if plan.published else ()
    return tuple(_judged(claim, pairs, cells, findings, plan) for claim in claims)


def _judged(
    claim: Claim,
    pairs: Pairs,
    cells: Sequence[Cell],
    findings: Sequence[Finding],
    plan: Plan,
) -> JudgedClaim:
    arms = [arms for cell in cells if (arms := _arms(claim, cell, cells, plan))]
    compared = [_compared(claim, pairs, of, than) for of, than in arms]
    each = estimated([sample for sample, _ in compared], plan.design)
    return JudgedClaim(
        claim=claim,
        cells=tuple(
            _claimed(claim, estimate, settled(held, unsettled), _doubts(findings, both))
            for (estimate, held), (_, unsettled), both in zip(each, compared, arms, strict=True)
        ),
        **_together(claim, compared, plan.design),
    )


class _Outcome(TypedDict):
    word: ClaimWord
    ratio: float | None
    low: float | None
    high: float | None


def _together(
    claim: Claim, compared: Sequence[tuple[Sample, Unsettled | None]], design: DesignPlan
) -> _Outcome:
    """The outcome of the claim in all of its cells together."""
    if not compared:
        return _Outcome(word=ClaimWord.OPEN, ratio=None, low=None, high=None)
    ((estimate, held),) = estimated([sample_of([sample for sample, _ in compared])], design)
    if any(len(sample.logs) < BLOCKS_MIN for sample, _ in compared):
        held = None  # the blocks would not show this cell's noise
    share = weights([sample.cell for sample, _ in compared])
    for sample, unsettled in compared:
        held = settled(held, unsettled and unsettled.shared(share[sample.cell]))
    return _outcome(claim, estimate, held)


def _outcome(claim: Claim, estimate: Estimate, held: Held | None) -> _Outcome:
    low, high = (held.low, held.high) if held else (None, None)
    return _Outcome(word=_word(claim, low, high), ratio=estimate.ratio, low=low, high=high)


def _arms(
    claim: Claim, cell: Cell, cells: Sequence[Cell], plan: Plan
) -> tuple[MeasuredArm, MeasuredArm] | None:
    """The two sides compared in a cell; None if outside the claim or not in the run."""
    than = claim.than or claim.of
    levels = {"threads": claim.than_threads} if claim.than_threads else {}
    beside = cell.model_copy(update=levels)
    is_claimed = (
        cell.rate_per_s is None
        and cell.workload in (claim.workloads or [cell.workload])
        and cell.threads in (claim.threads or [cell.threads])
        and (than, beside) != (claim.of, cell)
    )
    if is_claimed and beside in cells and {claim.of, than} <= {one.label for one in plan.systems}:
        return MeasuredArm(cell, claim.of), MeasuredArm(beside, than)
    return None


def _compared(
    claim: Claim, pairs: Pairs, of: MeasuredArm, than: MeasuredArm
) -> tuple[Sample, Unsettled | None]:
    """The ratio within blocks, with the bounds of its warm-ups' remainder."""
    cell, above, below = of.cell, of.system, f"{than.system} at {than.cell.threads}"
    both = pairs.filed([(cell, above, of), (cell, below, than)])
    sample = Sample(cell, claim.metric, below, above, {})
    if both.stood_still(above, cell) or both.stood_still(below, cell):
        return sample, None
    if claim.metric == RATE_VARIATION:
        over, under = (_variations(both, cell, label) for label in (above, below))
        logs = {block: over[block] - under[block] for block in under if block in over}
        return replace(sample, logs=logs), None
    sample = both.sample(cell, below, above, BY_NAME[claim.metric])
    return sample, both.unsettled(cell, below, above) if claim.metric in RATES else None


def _variations(pairs: Pairs, cell: Cell, label: str) -> dict[int, float]:
    """ln of the variation by block, for windows of at least ten seconds."""
    variations = {block: _variation(one) for block, one in pairs.arm(cell, label).items()}
    return {block: math.log(value) for block, value in sorted(variations.items()) if value}


def _variation(sound: Sound) -> float | None:
    rates = rates_of(sound.condensed)
    if len(rates) < SECONDS_MIN or not rates.any():
        return None
    return float(rates.std(ddof=1) / rates.mean())


def _claimed(
    claim: Claim, estimate: Estimate, held: Held | None, doubts: tuple[str, ...]
) -> ClaimedCell:
    outcome = _outcome(claim, estimate, held)
    return ClaimedCell(cell=estimate.cell, blocks=estimate.blocks, doubts=doubts, **outcome)


def _word(claim: Claim, low: float | None, high: float | None) -> ClaimWord:
    if low is None or high is None:
        return ClaimWord.OPEN
    if claim.ratio_min <= low and high <= claim.ratio_bound:
        return ClaimWord.SUPPORTED
    outside = high < claim.ratio_min or low > claim.ratio_bound
    return ClaimWord.CONTRADICTED if outside else ClaimWord.OPEN


def _doubts(findings: Sequence[Finding], arms: tuple[MeasuredArm, MeasuredArm]) -> tuple[str, ...]:
    doubtful = (one for one in findings if one.level is Level.DOUBTFUL)
    touching = (
        one.check for one in doubtful if any(one.concerns(arm.cell, arm.system) for arm in arms)
    )
    return tuple(dict.fromkeys(touching))
