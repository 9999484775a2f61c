"""A publication's claims held against this run, cell by cell.

A claim is a range of ratios (`plan.publication.Claim`). A cell supports it if the whole interval of
its ratio lies within that range, and contradicts it if the whole interval lies outside. An interval
which crosses an end of the range leaves the claim open. The intervals of a claim hold together at
95 % over its cells, as for verdicts (docs/how-it-works/verdicts.md); there is no correction for
multiplicity between claims.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from dbdyno.judge.audit import Sound
from dbdyno.judge.checks.course import SECONDS_MIN, rates_of
from dbdyno.judge.estimate import Estimate, Pairs, Unsettled, estimate_of
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.verdict import Adjusted, adjusted, settled
from dbdyno.measurement.measurement import RATES, Cell
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Better, Metric
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import Plan
from dbdyno.plan.publication import RATE_VARIATION, Claim
from dbdyno.plan.systems import MeasuredArm

VARIATION: Final = Metric(RATE_VARIATION, "", Better.LOWER)
"""Of a single window: windows are compared within blocks, and never merged."""


class ClaimWord(StrEnum):
    """Outcome of a claim in a cell."""

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
    """A claim with all of its cells in this run, empty where the run leaves them out."""

    claim: Claim
    cells: tuple[ClaimedCell, ...]

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
    compared = [_compared(claim, pairs, of, than, plan) for of, than in arms]
    together = adjusted([estimate for estimate, _ in compared], plan.design)
    return JudgedClaim(
        claim=claim,
        cells=tuple(
            _claimed(claim, estimate, held, unsettled, _doubts(findings, both))
            for (estimate, unsettled), held, both in zip(compared, together, arms, strict=True)
        ),
    )


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
    claim: Claim, pairs: Pairs, of: MeasuredArm, than: MeasuredArm, plan: Plan
) -> tuple[Estimate, Unsettled | None]:
    """The ratio within blocks, with the bounds of its warm-ups' remainder."""
    cell, above, below = of.cell, of.system, f"{than.system} at {than.cell.threads}"
    both = pairs.filed([(cell, above, of), (cell, below, than)])
    if both.stood_still(above, cell) or both.stood_still(below, cell):
        return estimate_of([], cell, PRIMARY, below, above, plan.design), None
    if claim.metric == RATE_VARIATION:
        over, under = (_variations(both, cell, label) for label in (above, below))
        logs = {block: over[block] - under[block] for block in under if block in over}
        return estimate_of(list(logs.values()), cell, VARIATION, below, above, plan.design), None
    metric = BY_NAME[claim.metric]
    logs = both.log_ratios(cell, below, above, metric)
    estimate = estimate_of(list(logs.values()), cell, metric, below, above, plan.design)
    return estimate, both.unsettled(cell, below, above) if metric.name in RATES else None


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
    claim: Claim,
    estimate: Estimate,
    held: Adjusted | None,
    unsettled: Unsettled | None,
    doubts: tuple[str, ...],
) -> ClaimedCell:
    shown = settled(held, unsettled)
    low, high = (shown.low, shown.high) if shown else (None, None)
    return ClaimedCell(
        cell=estimate.cell,
        word=_word(claim, low, high),
        ratio=estimate.ratio,
        low=low,
        high=high,
        blocks=estimate.blocks,
        doubts=doubts,
    )


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
