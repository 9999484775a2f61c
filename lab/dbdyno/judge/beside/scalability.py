"""How throughput grows with threads: where it peaks and how high, or why that cannot be said.

The Universal Scalability Law is fitted to each block's ladder by itself, and the blocks' fits give
the intervals: blocks repeat whole, levels and seconds do not (method.md 1.d, E6: N* is covered in
93.5 to 96.6 %). A law has an answer also where the ladder has none, so `usl_refusals` comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from dbdyno.judge.audit import Sound
from dbdyno.judge.beside import usl_refusals
from dbdyno.judge.beside.usl_refusals import Refusal
from dbdyno.judge.finding import Finding
from dbdyno.judge.typical import Typical, typical, typical_of_logs
from dbdyno.language.words import Text, name
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.measurement_parts import Noun
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import DesignPlan, Plan, cells
from dbdyno.stats import usl
from dbdyno.stats.usl import Laws, Numbers

LEVELS_MIN: Final = 5
"""Three are needed for the numbers; the others say whether the law holds."""
CURVE_POINTS: Final = 33
"""Enough for a smooth line over three powers of ten."""
OF_CLIENT: Final = "client-bound"
"""The check that says so."""

Ladder = tuple[str, str]
"""Workload and setting: what one curve is about."""


class LadderPoint(Noun):
    """What was measured at one level; `off` is ln(measured / law), None without a law."""

    threads: int
    per_s: Typical
    off: float | None = None


class CurvePoint(Noun):
    """The law at one number of threads, with its 95 % interval over blocks."""

    threads: float
    per_s: float
    low: float
    high: float


class BlockLaw(Noun):
    """One block's fit; the peak is None where it has none.

    Attributes:
        per_s_of_one: λ, transactions a second of one thread.
        sigma, kappa: contention and coherency.
        peak_threads, peak_per_s: N* and X(N*).
    """

    block: int
    per_s_of_one: float
    sigma: float
    kappa: float
    peak_threads: float | None
    peak_per_s: float | None


class Law(Noun):
    """The blocks' fits together, and the curve to be drawn from the least to the most threads."""

    per_s_of_one: Typical
    sigma: Typical
    kappa: Typical
    curve: tuple[CurvePoint, ...]
    blocks: tuple[BlockLaw, ...]


class Peak(Noun):
    """N* and X(N*): the threads at which throughput is greatest, and how great it is there."""

    threads: Typical
    per_s: Typical


class Scalability(Noun):
    """One system's ladder of one workload and setting, of five load levels or more.

    Attributes:
        points: what was measured; there whatever is refused.
        law: the fit; None where it is refused.
        peak: None where it, or the law, is refused.
        refusal, why: the reason; None and empty where there is a peak.
    """

    workload: str
    setting: str
    system: str
    points: tuple[LadderPoint, ...]
    law: Law | None = None
    peak: Peak | None = None
    refusal: Refusal | None = None
    why: Text = name("")


def scalability(
    sound: Iterable[Sound], findings: Sequence[Finding], plan: Plan
) -> list[Scalability]:
    """Every closed loop's ladder of five levels or more with a sound trial, in the order they come.

    Args:
        findings: on all trials, those that are not sound included.
    """
    rates: dict[tuple[Ladder, str], dict[int, dict[int, float]]] = {}
    for one in sound:
        cell, value = one.trial.cell, one.value(PRIMARY)
        if cell.rate_per_s is None and value:
            of_system = rates.setdefault((_ladder(cell), one.trial.system), {})
            of_system.setdefault(one.trial.block, {})[cell.threads] = value
    planned: dict[Ladder, set[int]] = {}
    for cell in cells(plan):
        if cell.rate_per_s is None:
            planned.setdefault(_ladder(cell), set()).add(cell.threads)
    made = []
    for (ladder, system), by_block in rates.items():
        levels = sorted(planned.get(ladder, set()).union(*by_block.values()))
        if len(levels) >= LEVELS_MIN:
            client_bound = _client_bound(findings, ladder, system)
            made.append(_scalability(ladder, system, by_block, levels, client_bound, plan.design))
    return made


def _ladder(cell: Cell) -> Ladder:
    return cell.workload, cell.setting


def _client_bound(findings: Sequence[Finding], ladder: Ladder, system: str) -> list[int]:
    """The levels at which a trial of that system was void as the generator was the limit."""
    return sorted(
        {
            finding.cell.threads
            for finding in findings
            if finding.check == OF_CLIENT
            and finding.system == system
            and finding.cell is not None
            and _ladder(finding.cell) == ladder
        }
    )


def _scalability(
    ladder: Ladder,
    system: str,
    by_block: Mapping[int, Mapping[int, float]],
    levels: Sequence[int],
    client_bound: Sequence[int],
    design: DesignPlan,
) -> Scalability:
    whole = [block for block in sorted(by_block) if len(by_block[block]) == len(levels)]
    points = tuple(_points(levels, by_block.values(), design))
    made = Scalability(workload=ladder[0], setting=ladder[1], system=system, points=points)
    blocks = by_block.values()
    missing = [level for level in levels if any(level not in rates for rates in blocks)]
    refused = usl_refusals.of_ladder(len(blocks), len(whole), missing, client_bound)
    if refused:
        return made.model_copy(update=refused._asdict())
    rates = np.array([[by_block[block][level] for level in levels] for block in whole])
    laws = usl.fit(levels, rates)
    if refused := usl_refusals.of_law(levels, rates, laws, design):
        return made.model_copy(update=refused._asdict())
    off = usl_refusals.residuals(levels, rates, laws).mean(axis=0).tolist()
    fitted = {
        "points": tuple(p.model_copy(update={"off": o}) for p, o in zip(points, off, strict=True)),
        "law": _law(levels, whole, laws, design),
    }
    if refused := usl_refusals.of_peak(levels, laws, design):
        return made.model_copy(update={**fitted, **refused._asdict()})
    return made.model_copy(update={**fitted, "peak": _peak(laws, design)})


def _points(
    levels: Iterable[int], by_block: Iterable[Mapping[int, float]], design: DesignPlan
) -> Iterable[LadderPoint]:
    blocks = list(by_block)
    for level in levels:
        logs = [float(np.log(rates[level])) for rates in blocks if level in rates]
        if found := typical_of_logs(logs, design):
            yield LadderPoint(threads=level, per_s=found)


def _law(levels: Sequence[int], blocks: Sequence[int], laws: Laws, design: DesignPlan) -> Law:
    """The fits of at least three blocks as one."""
    of_one = typical_of_logs(np.log(laws.per_s_of_one).tolist(), design)
    sigma, kappa = (typical(part.tolist(), design) for part in (laws.sigma, laws.kappa))
    if of_one is None or sigma is None or kappa is None:
        raise ValueError("a law wants blocks")
    return Law(
        per_s_of_one=of_one,
        sigma=sigma,
        kappa=kappa,
        curve=tuple(_curve(levels, laws, design)),
        blocks=tuple(_block_law(block, place, laws) for place, block in enumerate(blocks)),
    )


def _curve(levels: Sequence[int], laws: Laws, design: DesignPlan) -> Iterable[CurvePoint]:
    at = np.geomspace(levels[0], levels[-1], CURVE_POINTS)
    for threads, logs in zip(at.tolist(), np.log(usl.throughput(laws, at)).T, strict=True):
        found = typical_of_logs(logs.tolist(), design)
        if found and found.low is not None and found.high is not None:
            yield CurvePoint(threads=threads, per_s=found.value, low=found.low, high=found.high)


def _peak(laws: Laws, design: DesignPlan) -> Peak:
    threads, per_s = _peaks_of(laws)
    at, high = (typical_of_logs(np.log(part).tolist(), design) for part in (threads, per_s))
    if at is None or high is None:
        raise ValueError("a peak wants blocks")
    return Peak(threads=at, per_s=high)


def _block_law(block: int, place: int, laws: Laws) -> BlockLaw:
    threads, per_s = _peaks_of(laws)
    peaked = bool(np.isfinite(threads[place]))
    return BlockLaw(
        block=block,
        per_s_of_one=float(laws.per_s_of_one[place]),
        sigma=float(laws.sigma[place]),
        kappa=float(laws.kappa[place]),
        peak_threads=float(threads[place]) if peaked else None,
        peak_per_s=float(per_s[place]) if peaked else None,
    )


def _peaks_of(laws: Laws) -> tuple[Numbers, Numbers]:
    """N* and X(N*) of every block; where there is no peak the second means nothing."""
    threads = usl.peaks(laws)
    at = np.where(np.isfinite(threads), threads, 1.0)
    per_s = np.diagonal(usl.throughput(laws, at))
    return threads, per_s
