"""Growth of throughput with threads: the peak and its height, or the reason for not giving them.

The Universal Scalability Law is fitted to each block's ladder by itself, and the blocks' fits give
the intervals: blocks repeat whole, levels and seconds do not (docs/how-it-works/scalability.md: N*
is covered in 93 to 97 %). The fit has an answer even where the ladder has none, so `NoFit`
comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import numpy as np

from dbdyno.judge.audit import Sound
from dbdyno.judge.finding import Finding, Reason
from dbdyno.judge.interval import Typical, typical, typical_of_logs
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan, Plan, cells
from dbdyno.stats import usl
from dbdyno.stats.distributions import Numbers, f_tail
from dbdyno.stats.usl import Laws

OFF_MAX: Final = 0.05
"""No level's typical throughput may lie further from the law."""
LACK_OF_FIT_P: Final = 0.01
UNKNOWNS: Final = 3


class NoFit(StrEnum):
    """Reasons for no law, or for no peak (docs/how-it-works/scalability.md).

    A least-squares fit gives three numbers to any ladder; in each of these cases they would be
    wrong while looking right. The first five refuse the law itself, the last three only its peak.
    """

    FEW_BLOCKS = "few blocks"
    CLIENT_BOUND = "client-bound"
    STANDSTILL = "standstill"
    SUPER_LINEAR = "super-linear"
    LACK_OF_FIT = "lack of fit"
    NO_PEAK = "no peak"
    PEAK_NOT_REACHED = "peak not reached"
    FALLS_FROM_START = "falls from the start"


def _refused(refusal: NoFit, **values: object) -> Reason:
    return Reason(kind=refusal.value, values=values)


def of_law(levels: Sequence[int], rates: Numbers, laws: Laws, design: DesignPlan) -> Reason | None:
    """The reason to reject the law for these rates (first axis blocks, last axis levels)."""
    return _super_linear(levels, rates, design) or _lack_of_fit(levels, rates, laws)


def of_peak(levels: Sequence[int], laws: Laws, design: DesignPlan) -> Reason | None:
    """The reason not to call the law's peak a peak of the server."""
    kappa = typical(laws.kappa.tolist(), design)
    most = levels[-1]
    if kappa is None or kappa.low is None or kappa.low <= 0 or (laws.kappa == 0).any():
        return _refused(NoFit.NO_PEAK, threads=most)
    threads = float(np.exp(np.log(usl.peaks(laws)).mean()))
    if threads > most:
        return _refused(NoFit.PEAK_NOT_REACHED, threads=most)
    if threads < levels[0]:
        return _refused(NoFit.FALLS_FROM_START, levels=[levels[0]])
    return None


def residuals(levels: Sequence[int], rates: Numbers, laws: Laws) -> Numbers:
    """ln of each rate over the rate by its block's law at that level."""
    off: Numbers = np.log(rates) - np.log(usl.throughput(laws, levels))
    return off


def lack_of_fit(off: Numbers) -> float:
    """p-value of the lack-of-fit test: the chance of residuals at least this alike over blocks.

    The mean residuals of the levels times the blocks, over the scatter of the blocks about them
    (the pure error): the ratio is F with K − 3 and (n − 1)(K − 3) degrees of freedom, since each
    block's residuals lie in the K − 3 dimensions left by its own fit.
    """
    blocks, levels = off.shape
    mean = off.mean(axis=0)
    between, within = levels - UNKNOWNS, (blocks - 1) * (levels - UNKNOWNS)
    pure = float(((off - mean) ** 2).sum()) / within
    lack = blocks * float((mean**2).sum()) / between
    if pure == 0:
        return 1.0 if lack == 0 else 0.0
    return float(f_tail(lack / pure, between, within))


def _super_linear(levels: Sequence[int], rates: Numbers, design: DesignPlan) -> Reason | None:
    """Refuse a ladder with more throughput per thread at higher levels than contention allows."""
    contention = typical(usl.contention_unbounded(levels, rates).tolist(), design)
    each = np.exp(np.log(rates / np.asarray(levels)).mean(axis=0))
    best = int(each.argmax())
    if contention is None or contention.high is None or contention.high >= 0 or best == 0:
        return None
    gain = float(each[best] / each[0])
    return _refused(NoFit.SUPER_LINEAR, gain=gain, more=[levels[best]], first=[levels[0]])


def _lack_of_fit(levels: Sequence[int], rates: Numbers, laws: Laws) -> Reason | None:
    off = residuals(levels, rates, laws)
    by_level = np.exp(off.mean(axis=0))
    worst = int(np.abs(by_level - 1).argmax())
    seen = {"off": float(by_level[worst]), "levels": [levels[worst]]}
    if abs(by_level[worst] - 1) > OFF_MAX:
        return _refused(NoFit.LACK_OF_FIT, **seen, most=OFF_MAX)
    chance = lack_of_fit(off)
    if chance < LACK_OF_FIT_P:
        return _refused(NoFit.LACK_OF_FIT, **seen, chance=chance)
    return None


LEVELS_MIN: Final = 5
"""Three determine the numbers; the others test the law."""
CURVE_POINTS: Final = 33
"""Enough for a smooth line over three powers of ten."""

Ladder = tuple[str, str]
"""Workload and setting of a curve."""


class LadderPoint(Noun):
    """The measured throughput at a level; `off` is ln(measured / law), None without a law."""

    threads: int
    per_s: Typical
    off: float | None = None


class CurvePoint(Noun):
    """The law at a number of threads, with its 95 % interval over blocks."""

    threads: float
    per_s: float
    low: float
    high: float


class BlockLaw(Noun):
    """The fit of one block.

    Attributes:
        per_s_of_one: λ, transactions per second of a single thread.
        sigma, kappa: contention and coherency.
        peak_threads, peak_per_s: N* and X(N*); None without a peak.
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
    """N* and X(N*): the threads of greatest throughput, and the throughput there."""

    threads: Typical
    per_s: Typical


class Scalability(Noun):
    """A system's ladder in a workload and setting, of five load levels or more.

    Attributes:
        points: the measured throughputs; present even if the law is refused.
        law: the fit; None where it is refused.
        peak: None where it, or the law, is refused.
        refusal, why: the reason and its evidence; None if there is a peak.
    """

    workload: str
    setting: str
    system: str
    points: tuple[LadderPoint, ...]
    law: Law | None = None
    peak: Peak | None = None
    refusal: NoFit | None = None
    why: Reason | None = None


def scalability(
    sound: Iterable[Sound], findings: Sequence[Finding], plan: Plan
) -> list[Scalability]:
    """Fit each closed loop's ladder of five levels or more with a sound trial, in the given order.

    Args:
        findings: on all trials, sound or not.
    """
    rates: dict[tuple[Ladder, str], dict[int, dict[int, float]]] = {}
    still: dict[tuple[Ladder, str], set[int]] = {}
    for measured in sound:
        cell, value = measured.trial.cell, measured.value(PRIMARY)
        if cell.rate_per_s is None and value:
            of_system = rates.setdefault((cell.ladder, measured.trial.system), {})
            of_system.setdefault(measured.trial.block, {})[cell.threads] = value
        elif cell.rate_per_s is None and value is not None:
            still.setdefault((cell.ladder, measured.trial.system), set()).add(cell.threads)
    planned: dict[Ladder, set[int]] = {}
    for cell in cells(plan):
        if cell.rate_per_s is None:
            planned.setdefault(cell.ladder, set()).add(cell.threads)
    ladders = []
    for (ladder, system), by_block in rates.items():
        levels = sorted(planned.get(ladder, set()).union(*by_block.values()))
        if len(levels) >= LEVELS_MIN:
            spoilt = {
                NoFit.CLIENT_BOUND: _client_bound(findings, ladder, system),
                NoFit.STANDSTILL: sorted(still.get((ladder, system), ())),
            }
            ladders.append(_scalability(ladder, system, by_block, levels, spoilt, plan.design))
    return ladders


def _client_bound(findings: Sequence[Finding], ladder: Ladder, system: str) -> list[int]:
    """The levels with a trial of that system void because the generator was the limit."""
    return sorted(
        {
            finding.cell.threads
            for finding in findings
            if finding.check == "client-bound"
            and finding.system == system
            and finding.cell is not None
            and finding.cell.ladder == ladder
        }
    )


def _scalability(
    ladder: Ladder,
    system: str,
    by_block: Mapping[int, Mapping[int, float]],
    levels: Sequence[int],
    spoilt: Mapping[NoFit, Sequence[int]],
    design: DesignPlan,
) -> Scalability:
    """Judge the ladder of a single system.

    Args:
        spoilt: levels at which, in any block, the generator was the limit or the system stood
            still; a selection of the other blocks would be biased.
    """
    whole = [block for block in sorted(by_block) if len(by_block[block]) == len(levels)]
    points = tuple(_points(levels, by_block.values(), design))
    scalability = Scalability(workload=ladder[0], setting=ladder[1], system=system, points=points)

    def refused(why: Reason, **fitted: object) -> Scalability:
        return scalability.model_copy(update={**fitted, "refusal": NoFit(why.kind), "why": why})

    for refusal, spoilt_levels in spoilt.items():
        if spoilt_levels:
            return refused(_refused(refusal, levels=list(spoilt_levels)))
    blocks = by_block.values()
    if len(whole) < BLOCKS_MIN:
        seen = {"whole": len(whole), "blocks": len(blocks), "least": BLOCKS_MIN}
        missing = [level for level in levels if any(level not in rates for rates in blocks)]
        return refused(_refused(NoFit.FEW_BLOCKS, **seen, levels=missing))
    rates = np.array([[by_block[block][level] for level in levels] for block in whole])
    laws = usl.fit(levels, rates)
    if why := of_law(levels, rates, laws, design):
        return refused(why)
    off = residuals(levels, rates, laws).mean(axis=0).tolist()
    fitted = {
        "points": tuple(p.model_copy(update={"off": o}) for p, o in zip(points, off, strict=True)),
        "law": _law(levels, whole, laws, design),
    }
    if why := of_peak(levels, laws, design):
        return refused(why, **fitted)
    return scalability.model_copy(update={**fitted, "peak": _peak(laws, design)})


def _points(
    levels: Iterable[int], by_block: Iterable[Mapping[int, float]], design: DesignPlan
) -> Iterable[LadderPoint]:
    blocks = list(by_block)
    for level in levels:
        logs = [float(np.log(rates[level])) for rates in blocks if level in rates]
        if typical_log := typical_of_logs(logs, design):
            yield LadderPoint(threads=level, per_s=typical_log)


def _law(levels: Sequence[int], blocks: Sequence[int], laws: Laws, design: DesignPlan) -> Law:
    """Combine the fits of at least three blocks."""
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
        typical_log = typical_of_logs(logs.tolist(), design)
        if typical_log and typical_log.low is not None and typical_log.high is not None:
            yield CurvePoint(
                threads=threads, per_s=typical_log.value, low=typical_log.low, high=typical_log.high
            )


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
    """N* and X(N*) of every block; without a peak the second is meaningless."""
    threads = usl.peaks(laws)
    at = np.where(np.isfinite(threads), threads, 1.0)
    per_s = np.diagonal(usl.throughput(laws, at))
    return threads, per_s
