"""Measurements and plan in, findings and verdicts out.

Pure: no files, no clock, no random numbers. The same stored trials always give the same judgement.

    audit ─▶ findings, sound trials ─estimate─▶ values, ratios ─verdict─▶ words with reasons
                                          beside/ ─▶ shape and outliers, which change no word
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from dbdyno.judge.audit import Audit, Sound, audit
from dbdyno.judge.beside import grid, ladder
from dbdyno.judge.beside.accounting import Accounting, accountings, cpu_taken
from dbdyno.judge.beside.causes import Causes, causes
from dbdyno.judge.beside.claims import JudgedClaim, judged_claims
from dbdyno.judge.beside.curve import Curve, curves
from dbdyno.judge.beside.functions import Functions, functions_of
from dbdyno.judge.beside.grid import GridSummary, MachineRatio, machine_ratios
from dbdyno.judge.beside.ladder import Crossover, Regression
from dbdyno.judge.beside.outliers import Outlier, outliers
from dbdyno.judge.beside.scalability import Scalability, scalability
from dbdyno.judge.beside.stability import CountPair, Stability, counts, stability
from dbdyno.judge.checks.disturbance import measured_again
from dbdyno.judge.estimate import (
    Estimate,
    Pairs,
    SystemValue,
    estimated,
    estimates,
    system_values,
)
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.rate_limit import RateSearch, rate_searches
from dbdyno.judge.standstill import shared, standstill_of
from dbdyno.judge.verdict import (
    Verdict,
    block_seconds,
    by_comparison,
    verdict_of,
)
from dbdyno.measurement.disturbance import current
from dbdyno.measurement.measurement import Cell, Measurement, without_pilots
from dbdyno.measurement.metric import BY_NAME, NOPM, TABLE, Metric
from dbdyno.measurement.outcome import RunFacts
from dbdyno.measurement.parts import Noun
from dbdyno.plan.known import Fact, Known, known_of
from dbdyno.plan.plan import (
    BLOCKS_MIN,
    DesignPlan,
    Plan,
    cells,
    comparisons,
    metric_of,
    system_pairs,
)
from dbdyno.plan.systems import Comparison, MeasuredArm

OfCell = TypeVar("OfCell", Estimate, Verdict, Accounting, Causes, Functions)


class ArmTrials(Noun):
    """Number of trials of a system in a cell."""

    system: str
    cell: Cell
    trials: int


class Judgement(Noun):
    """All results of a run.

    Attributes:
        values: every metric of every system and cell with a sound trial.
        estimates: every metric of every comparison of the plan; for settings, in cells named by the
            common part of both arms.
        verdicts: on the metric of each cell, for each comparison; absent for rates which serve only
            to find a latency limit.
        slo: the highest sustained rate within the plan's latency limit.
        accountings: each difference split into CPU per transaction and CPU used.
        causes: of each verdict with three sound pairs, what differs besides the metric.
        functions: functions of the servers that differ, where stacks were sampled.
        summaries: all cells of a comparison together, then each workload in each setting.
        curves: the ratio along the load levels of each workload, where it is smooth.
        crossovers: load levels at which a system is better, and worse, where its curve crosses
            nowhere.
        regressions: each system's throughput at its highest level against its middle one.
        scalability: every ladder of a closed loop with five levels or more.
        stability: every sound trial; stability_counts: stalls and dips of two systems.
        outliers: outlying trials; they stay in all numbers.
        machines: the ratios on each machine, where blocks ran on several.
        claims: the claims of the publication followed by the plan, as judged here.
        counted_from_s: of each sound trial, by its key, the second of load from which it counts.
        arms: number of trials of each system in each cell, void ones included.
        known: facts of the run, for the sentences of a report.
    """

    findings: tuple[Finding, ...]
    values: tuple[SystemValue, ...]
    estimates: tuple[Estimate, ...]
    verdicts: tuple[Verdict, ...]
    slo: tuple[RateSearch, ...] = ()
    accountings: tuple[Accounting, ...] = ()
    causes: tuple[Causes, ...] = ()
    functions: tuple[Functions, ...] = ()
    summaries: tuple[GridSummary, ...] = ()
    curves: tuple[Curve, ...] = ()
    crossovers: tuple[Crossover, ...] = ()
    regressions: tuple[Regression, ...] = ()
    scalability: tuple[Scalability, ...] = ()
    stability: tuple[Stability, ...] = ()
    stability_counts: tuple[CountPair, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    machines: tuple[MachineRatio, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()
    counted_from_s: dict[str, float] = {}
    arms: tuple[ArmTrials, ...] = ()
    known: Known = Known()

    def answers(self, design: DesignPlan) -> list[Verdict | GridSummary]:
        """Verdicts at the level of the question, and on the rates within a latency limit."""
        searched = [verdict for search in self.slo for verdict in search.verdicts]
        of_comparisons = (
            grid.at_level(group, self.summaries, design) for group in by_comparison(self.verdicts)
        )
        return [*searched, *(one for answers in of_comparisons for one in answers)]

    def is_decided(self, design: DesignPlan) -> bool:
        """True if no verdict is open at the level at which the run is to end."""
        return not any(answer.is_open for answer in self.answers(design))

    @property
    def all_verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts on cells, then verdicts on the rates within a latency limit."""
        return (*self.verdicts, *(v for search in self.slo for v in search.verdicts))

    def value(self, cell: Cell, system: str, metric_name: str) -> SystemValue | None:
        """The metric's value for a system in a cell; None without a sound trial."""
        wanted = (cell, system, metric_name)
        return next((v for v in self.values if (v.cell, v.system, v.metric) == wanted), None)

    def estimate(self, cell: Cell, baseline: str, system: str, metric_name: str) -> Estimate | None:
        """The metric's estimate for an arm against a baseline; None where they are not compared."""
        wanted = (cell, baseline, system, metric_name)
        return next(
            (e for e in self.estimates if (e.cell, e.baseline, e.system, e.metric) == wanted), None
        )

    def accounting(self, verdict: Verdict) -> Accounting | None:
        """The parts of the verdict's ratio; None where the servers' CPU is unknown."""
        wanted = (verdict.cell, verdict.baseline, verdict.system)
        return next((a for a in self.accountings if (a.cell, a.baseline, a.system) == wanted), None)


@dataclass(frozen=True)
class JudgedRun:
    """A run with all parts of its report."""

    plan: Plan
    measurements: Sequence[Measurement]
    judgement: Judgement
    facts: RunFacts

    def versions(self, system: str) -> list[str]:
        """Versions that the system's servers reported."""
        of_system = (m.server.version for m in self.measurements if m.trial.system == system)
        return sorted({version for version in of_system if version})


def judge(measurements: Sequence[Measurement], plan: Plan) -> Judgement:
    """Audit the measurements, estimate from the sound ones, and give verdicts.

    A plan without a comparison has values but no verdicts; imported runs have ratios without
    verdicts.
    """
    compared = without_pilots(current(measurements))
    audited = audit(compared, plan)
    beyond = measured_again(measurements, plan)
    audited = replace(audited, findings=(*audited.findings, *beyond))

    design, pairs, judged = plan.design, Pairs(audited.sound), cells_of(plan, compared)
    block_s, metrics = block_seconds(compared), (*TABLE, NOPM)
    families = [
        _family(one, pairs, judged, metrics, audited, plan, block_s) for one in comparisons(plan)
    ]
    ratios = _by_cell(judged, (one for family in families for one in family.estimates))
    verdicts = _by_cell(judged, (one for family in families for one in family.verdicts))
    judged_pairs = [(family.pairs, family.verdicts) for family in families]
    primary = [(one.pairs, [v.estimate for v in one.verdicts]) for one in families]
    smooth = tuple(one for both in judged_pairs for one in curves(*both, design))
    labels, against = [system.label for system in plan.systems], system_pairs(plan)

    sound = _in_order(audited.sound, judged, labels)
    ladders, even = scalability(sound, audited.findings, plan), stability(sound)
    return Judgement(
        findings=audited.findings,
        values=tuple(system_values(audited.sound, judged, design)),
        estimates=ratios,
        verdicts=verdicts,
        slo=_searches(audited, plan),
        accountings=_by_cell(judged, (one for both in primary for one in accountings(*both))),
        causes=_by_cell(judged, (one for both in judged_pairs for one in causes(*both, design))),
        functions=_by_cell(judged, (one for both in primary for one in functions_of(*both))),
        summaries=tuple(
            one for both in judged_pairs for one in grid.summaries(*both, design, block_s)
        ),
        curves=smooth,
        crossovers=ladder.crossovers(verdicts, smooth),
        regressions=ladder.regressions(pairs, judged, labels, design),
        scalability=tuple(ladders),
        stability=tuple(even),
        stability_counts=tuple(one for pair in against for one in counts(even, *pair)),
        outliers=tuple(outliers(sound, design.margin, partial(metric_of, plan))),
        machines=tuple(one for both in judged_pairs for one in machine_ratios(*both)),
        claims=judged_claims(pairs, judged, audited.findings, plan),
        counted_from_s={
            one.trial.key: one.condensed.measured[0].start_s
            for one in audited.sound
            if one.condensed.measured
        },
        arms=_arms(compared),
        known=known_of(plan, compared),
    )


def _arms(compared: Iterable[Measurement]) -> tuple[ArmTrials, ...]:
    trials = {m.trial.key: (m.trial.system, m.trial.cell) for m in compared}
    return tuple(
        ArmTrials(system=system, cell=cell, trials=times)
        for (system, cell), times in Counter(trials.values()).items()
    )


def enough(measurements: Sequence[Measurement], plan: Plan) -> bool:
    """True if a run until decided may end: no verdict at the level asked for is still open.

    Rates within a latency limit count too. A plan without a comparison has no verdict, and takes
    all of its blocks for its values.
    """
    judged = standing(measurements, plan) if plan.design.stop == "decided" else None
    return judged is not None and judged.is_decided(plan.design)


def standing(measurements: Sequence[Measurement], plan: Plan) -> Judgement | None:
    """Verdicts after the blocks so far, without values, charts' numbers and claims.

    Returns:
        None below three blocks, and for a plan without a comparison.
    """
    compared = without_pilots(current(measurements))
    blocks = max((measurement.trial.block + 1 for measurement in compared), default=0)
    if not comparisons(plan) or blocks < BLOCKS_MIN:
        return None
    audited = audit(compared, plan)
    pairs, judged = Pairs(audited.sound), cells_of(plan, compared)
    metrics = list(dict.fromkeys(metric_of(plan, cell) for cell in judged))
    families = [_family(one, pairs, judged, metrics, audited, plan) for one in comparisons(plan)]
    summarised = (grid.summaries(one.pairs, one.verdicts, plan.design) for one in families)
    return Judgement(
        findings=audited.findings,
        values=(),
        estimates=(),
        verdicts=tuple(verdict for family in families for verdict in family.verdicts),
        slo=_searches(audited, plan),
        summaries=tuple(one for of_family in summarised for one in of_family),
    )


class _Family(NamedTuple):
    """A comparison in all its cells, with simultaneous intervals; the trials of its two arms."""

    estimates: Sequence[Estimate]
    verdicts: Sequence[Verdict]
    pairs: Pairs


def _family(
    comparison: Comparison,
    every: Pairs,
    judged: Sequence[Cell],
    metrics: Sequence[Metric],
    audited: Audit,
    plan: Plan,
    block_s: float | None = None,
) -> _Family:
    pairs, (baseline, arm) = every.of(comparison), comparison.labels
    ratios = estimates(pairs, comparison.cells(judged), baseline, arm, plan.design, metrics)
    primary = [estimate for estimate in ratios if _has_verdict(estimate, plan)]
    counted = {one.trial.key for one in audited.sound}
    standstills = [standstill_of(pairs, estimate) for estimate in primary]
    still, level = shared(standstills, primary)
    rated = [one for one, stood in zip(primary, still, strict=True) if stood is None]
    samples = [pairs.sample(one.cell, baseline, arm, BY_NAME[one.metric]) for one in rated]
    held = {one.estimate.cell: one.held for one in estimated(samples, plan.design, level)}
    verdicts = [
        verdict_of(
            estimate,
            plan.design.margin,
            _concerning(comparison.places(estimate.cell), audited, counted),
            held=held.get(estimate.cell),
            design=plan.design,
            block_s=block_s,
            standstill=standstill,
            unsettled=pairs.unsettled(estimate.cell, estimate.baseline, estimate.system),
            taken=cpu_taken(pairs, estimate),
        )
        for estimate, standstill in zip(primary, still, strict=True)
    ]
    return _Family(ratios, verdicts if known_of(plan).has(Fact.HERE) else [], pairs)


def _by_cell(judged: Sequence[Cell], items: Iterable[OfCell]) -> tuple[OfCell, ...]:
    """By cells, then as they came; the cells of settings compared stand after all others."""
    places = {cell: place for place, cell in enumerate(judged)}
    return tuple(sorted(items, key=lambda one: places.get(one.cell, len(places))))


def _searches(audited: Audit, plan: Plan) -> tuple[RateSearch, ...]:
    counted = {one.trial.key for one in audited.sound}
    return rate_searches(audited.sound, plan, lambda arms: _concerning(arms, audited, counted))


def _has_verdict(estimate: Estimate, plan: Plan) -> bool:
    """True for the primary metric of its cell, unless the cell is a rate in search of a limit."""
    cell = estimate.cell
    return estimate.metric == metric_of(plan, cell).name and not plan.load.is_rung(cell.rate_per_s)


def cells_of(plan: Plan, measurements: Iterable[Measurement]) -> list[Cell]:
    """The plan's cells, then the cells found only in the measurements."""
    seen = (measurement.trial.cell for measurement in measurements)
    return list(dict.fromkeys([*cells(plan), *seen]))


def _concerning(arms: Sequence[MeasuredArm], audited: Audit, counted: set[str]) -> list[Finding]:
    """Findings on any of these arms, without void findings on an attempt since made good."""
    return [
        finding
        for finding in audited.findings
        if any(finding.concerns(arm.cell, arm.system) for arm in arms)
        and not (finding.level is Level.VOID and finding.trial in counted)
    ]


def _in_order(sound: Iterable[Sound], judged: Sequence[Cell], labels: Sequence[str]) -> list[Sound]:
    """By cells, systems and blocks, as people read; trials come in the order in which they ran."""

    of_cell = {cell: place for place, cell in enumerate(judged)}
    of_system = {label: place for place, label in enumerate(labels)}

    def place(sound: Sound) -> tuple[int, int, int]:
        trial = sound.trial
        return of_cell[trial.cell], of_system.get(trial.system, len(of_system)), trial.block

    return sorted(sound, key=place)
