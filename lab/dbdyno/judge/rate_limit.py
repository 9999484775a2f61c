"""Throughput at an equal latency limit: the highest sustained rate of each system within it.

Every system is measured at the same rates. In each block they give one number per system, the rate
at which its latency meets the limit (`open_loop.rate_at_limit`). The block is the unit of
replication for its logarithm, as everywhere, and two systems are compared within blocks. A block
with the limit outside the rates has no such number. Leaving it out would select blocks by their
result, so a single such block takes the verdict away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from dbdyno.judge.audit import Sound
from dbdyno.judge.estimate import Sample, estimated
from dbdyno.judge.finding import Finding, Reason
from dbdyno.judge.interval import typical_of_logs
from dbdyno.judge.verdict import Verdict, Word, verdict_of
from dbdyno.measurement.measurement import Cell, is_sustained
from dbdyno.measurement.metric import RATE_AT_LIMIT, Metric
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import Plan, cells, comparisons, latency_of
from dbdyno.plan.settings import setting_names
from dbdyno.plan.systems import Comparison, MeasuredArm
from dbdyno.stats.open_loop import Point, RateSide, rate_at_limit

FindingsOf = Callable[[Sequence[MeasuredArm]], Sequence[Finding]]


class BlockLimit(Noun):
    """The rate at which a system met the limit in a block.

    Attributes:
        side: between two of the rates, or above or below all of them.
        rate_per_s: the rate there; for above and below the last rate tried.
        points: the trials behind it, rates rising.
    """

    block: int
    side: RateSide
    rate_per_s: float | None
    points: tuple[Point, ...]


class RateLimit(Noun):
    """The highest sustained rate of a system within the limit.

    Attributes:
        rate_per_s: geometric mean over the blocks with the limit between two rates; None if there
            are no such blocks.
        low, high: its 95 % interval; None below 3 blocks, and where the limit lay outside the rates
            in some: the others were selected by their result.
        blocks: number of blocks with the limit between two rates.
        by_block: every block, with the limit between the rates or outside.
    """

    system: str
    rate_per_s: float | None
    low: float | None
    high: float | None
    blocks: int
    by_block: tuple[BlockLimit, ...]

    def count(self, side: RateSide) -> int:
        """Number of blocks with the limit on this side."""
        return sum(block.side is side for block in self.by_block)


class RateSearch(Noun):
    """A workload and setting: each system's sustained rate within the limit, and the verdicts on
    it.

    Attributes:
        connections: number of connections for the rates.
        metric: name of the limited latency.
        limits: by system, in the plan's order.
        verdicts: on `metric.RATE_AT_LIMIT`, for each comparison of an arm with this setting.
    """

    workload: str
    setting: str
    connections: int
    metric: str
    limit_ms: float
    limits: tuple[RateLimit, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def cell(self) -> Cell:
        """All its rates as a single cell, without a rate."""
        return Cell(workload=self.workload, threads=self.connections, setting=self.setting)


def rate_searches(
    sound: Iterable[Sound], plan: Plan, findings_of: FindingsOf
) -> tuple[RateSearch, ...]:
    """Search each workload and setting with sound trials, in a plan with a latency limit.

    Args:
        findings_of: findings on any of these arms.
    """
    if plan.load.slo is None:
        return ()
    limit_ms, by_place = plan.load.slo.limit_ms, dict[tuple[str, str], list[Sound]]()
    for measured in sound:
        if measured.trial.cell.rate_per_s is not None:
            by_place.setdefault(measured.trial.cell.ladder, []).append(measured)
    limits = [
        _search(plan, workload.label, setting, by_place[workload.label, setting], limit_ms)
        for setting in setting_names(plan.settings)
        for workload in plan.workloads
        if (workload.label, setting) in by_place
    ]
    verdicts: dict[Cell, list[Verdict]] = {search.cell: [] for search in limits}
    for comparison in comparisons(plan):
        for of_arm, verdict in _verdicts(plan, limits, comparison, findings_of):
            verdicts[of_arm].append(verdict)
    return tuple(
        search.model_copy(update={"verdicts": tuple(verdicts[search.cell])}) for search in limits
    )


def _search(
    plan: Plan, workload: str, setting: str, sound: Sequence[Sound], limit_ms: float
) -> RateSearch:
    metric = latency_of(plan)
    cell = Cell(workload=workload, threads=plan.load.connections, setting=setting)
    return RateSearch(
        workload=workload,
        setting=setting,
        connections=plan.load.connections,
        metric=metric.name,
        limit_ms=limit_ms,
        limits=tuple(_limit(plan, cell, s.label, sound, metric, limit_ms) for s in plan.systems),
        verdicts=(),
    )


def _limit(
    plan: Plan, cell: Cell, system: str, sound: Sequence[Sound], metric: Metric, limit_ms: float
) -> RateLimit:
    blocks: dict[int, list[Point]] = {}
    for measured in sound:
        if measured.trial.system == system:
            rate = measured.trial.cell.rate_per_s or 0.0
            point = Point(rate, measured.value(metric), is_sustained(measured.measurement))
            blocks.setdefault(measured.trial.block, []).append(point)
    by_block = tuple(
        BlockLimit(
            block=block,
            **rate_at_limit(blocks[block], limit_ms)._asdict(),
            points=tuple(sorted(blocks[block])),
        )
        for block in sorted(blocks)
    )
    logs = list(_logs(by_block).values())
    usual = typical_of_logs(logs, plan.design)
    is_within = len(logs) == len(by_block)
    return RateLimit(
        system=system,
        rate_per_s=usual.value if usual else None,
        low=usual.low if usual and is_within else None,
        high=usual.high if usual and is_within else None,
        blocks=len(logs),
        by_block=by_block,
    )


def _logs(blocks: Iterable[BlockLimit]) -> dict[int, float]:
    """ln of the rate at the limit in every block in which it lay between two rates."""
    return {
        b.block: math.log(b.rate_per_s)
        for b in blocks
        if b.side is RateSide.BETWEEN and b.rate_per_s
    }


def _verdicts(
    plan: Plan, searches: Sequence[RateSearch], comparison: Comparison, findings_of: FindingsOf
) -> Iterator[tuple[Cell, Verdict]]:
    """A comparison's verdicts, each after the arm's own cell, with simultaneous intervals as for
    cells."""
    limits = {(one.cell, limit.system): limit for one in searches for limit in one.limits}
    compared = comparison.cells(search.cell for search in searches)
    sides = [[limits[at.cell, at.system] for at in comparison.places(one)] for one in compared]
    samples = [
        _sample(comparison, cell, below, above)
        for cell, (below, above) in zip(compared, sides, strict=True)
    ]
    judged = estimated(samples, plan.design)
    for (estimate, held), (below, above) in zip(judged, sides, strict=True):
        findings = findings_of(_rungs(plan, comparison, estimate.cell))
        outside = [*_outside(below), *_outside(above)]
        # Where some blocks have no number, the others would be selected by their result.
        shown = estimate.model_copy(update={"low": None, "high": None}) if outside else estimate
        within = None if outside else held
        verdict = verdict_of(shown, plan.design.margin, findings, held=within, design=plan.design)
        if outside:
            changes = {"word": Word.NO_VERDICT, "reasons": (*outside, *verdict.reasons)}
            verdict = verdict.model_copy(update={**changes, "outside_rates": True})
        yield comparison.places(estimate.cell)[1].cell, verdict


def _sample(comparison: Comparison, cell: Cell, baseline: RateLimit, arm: RateLimit) -> Sample:
    below, above = _logs(baseline.by_block), _logs(arm.by_block)
    logs = {block: above[block] - below[block] for block in sorted(below.keys() & above.keys())}
    return Sample(cell, RATE_AT_LIMIT.name, *comparison.labels, logs)


def _rungs(plan: Plan, comparison: Comparison, cell: Cell) -> list[MeasuredArm]:
    """Both arms at all of their rates, which a pilot finds for each setting by itself."""
    return [
        MeasuredArm(rung, at.system)
        for at in comparison.places(cell)
        for rung in cells(plan)
        if rung.rate_per_s and rung.ladder == at.cell.ladder
    ]


def _outside(limit: RateLimit) -> Iterator[Reason]:
    """Reasons why a system's limit was not found in some blocks."""
    sides = (RateSide.ABOVE, RateSide.BELOW, RateSide.UNKNOWN)
    seen = {side.value: times for side in sides if (times := limit.count(side))}
    if seen:
        values = {"system": limit.system, "blocks": len(limit.by_block), "sides": seen}
        yield Reason(kind="limit-outside", values=values)
