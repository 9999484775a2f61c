"""Functions of a server ranked by their share of a difference in CPU per transaction.

A function's own CPU in a block is the samples in which it is the innermost function, times the CPU
for which a sample stands, over the transactions of the sampled time. A difference is the system's
less the baseline's in the same block, both seen by the same sampler.

Few blocks show the noise of a function badly. So its variance, which rises with its cost, is moved
towards the variance of all functions (`stats.moderated`). It is never below the variance of counts
of samples (Poisson), so a function with few samples claims no difference. Intervals hold together
for all functions examined.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final, Literal, get_args

import numpy as np

from dbdyno.judge.audit import Sound
from dbdyno.judge.beside.accounting import paired
from dbdyno.judge.estimate import Estimate, Pairs
from dbdyno.judge.interval import FIXED, LEVEL, typical
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.parts import Noun, StackProfile
from dbdyno.plan.plan import BLOCKS_MIN
from dbdyno.stats.distributions import Numbers
from dbdyno.stats.moderated import moderated

Sampler = Literal["perf", "gdb"]
Profiles = tuple[StackProfile, StackProfile]
"""Of the baseline and of the system in a block."""
SHARE_MIN: Final = 0.001
"""A function with a smaller share of the sampled CPU of both systems is not examined."""
SHOWN_MAX: Final = 10
CALLERS_MAX: Final = 2
CALLED_BY: Final = " ← "
POWERS: Final = (1.0, 2.0)
"""The variance rises with the cost as counts of samples do, or as the square of the cost."""
COUNTED_MIN: Final = 0.01
"""A variance below this part of the variance of counts is chance."""


class FunctionCost(Noun):
    """A function's own CPU (`perf`) or time (`gdb`) per transaction, in µs, means over blocks.

    Attributes:
        difference_us, low_us, high_us: the system's less the baseline's, with its interval.
        share: of the difference of all functions; None where the two systems hardly differ.
        callers: its commonest two callers, the nearest first: "caller ← caller's caller".
    """

    name: str
    baseline_us: float
    system_us: float
    difference_us: float
    low_us: float
    high_us: float
    share: float | None
    callers: str = ""


class Functions(Noun):
    """Functions that differ between two systems in a cell, the largest difference first.

    Attributes:
        sampler_share: CPU of the sampler over the servers' CPU; None if unknown.
        functions: ten at most, each with an interval without 0.
        examined: number of functions compared.
        blocks: number of blocks with stacks of both systems.
    """

    cell: Cell
    baseline: str
    system: str
    sampler: Sampler
    sampler_share: float | None
    functions: tuple[FunctionCost, ...]
    examined: int
    blocks: int


def functions_of(pairs: Pairs, estimates: Iterable[Estimate]) -> Iterator[Functions]:
    """Yield the functions of each estimate's cell with sampled stacks in three blocks or more."""
    for estimate in estimates:
        trials = paired(pairs, estimate)
        for sampler in get_args(Sampler):
            sampled = [
                (first, second)
                for pair in trials
                if (first := profile_of(pair[0].measurement, sampler)) is not None
                and (second := profile_of(pair[1].measurement, sampler)) is not None
            ]
            if len(sampled) < BLOCKS_MIN:
                continue
            functions, examined = ranked(sampled)
            yield Functions(
                cell=estimate.cell,
                baseline=estimate.baseline,
                system=estimate.system,
                sampler=sampler,
                sampler_share=_sampler_share((one for pair in trials for one in pair), sampler),
                functions=functions,
                examined=examined,
                blocks=len(sampled),
            )


def profile_of(measurement: Measurement, sampler: Sampler) -> StackProfile | None:
    """Its profile by this sampler; None without a transaction in the sampled time."""
    profile = measurement.profile
    usable = profile is not None and profile.sampler == sampler and profile.events >= 1
    return profile if usable else None


def costs_us(profiles: Sequence[StackProfile]) -> dict[str, float]:
    """Cost of each stack in µs per transaction, mean over the profiles."""
    costs: dict[str, float] = defaultdict(float)
    for profile in profiles:
        weight_us = _weight_us(profile) / len(profiles)
        for stack, samples in profile.stacks.items():
            costs[stack] += samples * weight_us
    return costs


def ranked(blocks: Sequence[Profiles]) -> tuple[tuple[FunctionCost, ...], int]:
    """Functions that surely differ, the largest difference first; and the number examined.

    Args:
        blocks: three profiles or more of each system.
    """
    own = [tuple(map(_own_us, profiles)) for profiles in blocks]
    wholes = [math.fsum(above.values()) - math.fsum(below.values()) for below, above in own]
    totals: dict[str, float] = defaultdict(float)
    for of_system in (costs for pair in own for costs in pair):
        for function, cost in of_system.items():
            totals[function] += cost
    least = SHARE_MIN * math.fsum(totals.values())
    names = sorted(function for function, cost in totals.items() if cost > 0 and cost >= least)
    if not names:
        return (), 0
    table = np.array([[[costs.get(n, 0.0) for n in names] for costs in pair] for pair in own])
    weights = np.array([[_weight_us(profile) for profile in pair] for pair in blocks])
    differences = table[:, 1] - table[:, 0]
    counted = (table * weights[..., None]).sum(axis=1).mean(axis=0)
    mean = differences.mean(axis=0)
    half = _half_widths(differences, table.mean(axis=(0, 1)), counted)
    places = [at for at in np.argsort(-np.abs(mean)).tolist() if abs(mean[at]) > half[at]]
    shown = places[:SHOWN_MAX]
    whole = _whole_difference(wholes)
    callers = _callers({names[at] for at in shown}, blocks)
    numbers = np.array([*table.mean(axis=0), mean, mean - half, mean + half]).T.tolist()
    functions = (
        FunctionCost(
            name=names[at],
            baseline_us=numbers[at][0],
            system_us=numbers[at][1],
            difference_us=numbers[at][2],
            low_us=numbers[at][3],
            high_us=numbers[at][4],
            share=numbers[at][2] / whole if whole is not None else None,
            callers=callers[names[at]],
        )
        for at in shown
    )
    return tuple(functions), len(names)


def _weight_us(profile: StackProfile) -> float:
    """Cost of a sample in µs per transaction."""
    return profile.period_us / profile.events


def _own_us(profile: StackProfile) -> dict[str, float]:
    """Cost of each function's own code."""
    own: dict[str, float] = defaultdict(float)
    for stack, cost in costs_us([profile]).items():
        own[stack.rpartition(";")[2]] += cost
    return own


def _whole_difference(wholes: Sequence[float]) -> float | None:
    """Difference of all functions together; None if its interval includes 0."""
    whole = typical(wholes, FIXED)
    if whole is None or whole.low is None or whole.high is None:
        return None
    return None if whole.low <= 0 <= whole.high else whole.value


def _half_widths(differences: Numbers, costs: Numbers, counted: Numbers) -> Numbers:
    """Half widths of intervals that hold together.

    Args:
        differences: of each block and function.
        costs: of each function.
        counted: variance of a block's difference by the counts of samples alone.
    """
    seen = np.maximum(differences.var(axis=0, ddof=1), COUNTED_MIN * counted)
    logs = np.log(costs) - np.log(costs).mean()
    slope = float(logs @ np.log(seen)) / max(float(logs @ logs), 1e-9)
    scale = costs ** (min(max(slope, POWERS[0]), POWERS[1]) / 2)
    scaled = moderated(differences / scale, counted / scale**2)
    widths: Numbers = scaled.half_widths(LEVEL) * scale
    return widths


def _callers(functions: set[str], blocks: Sequence[Profiles]) -> dict[str, str]:
    """The commonest callers of each function."""
    chains: dict[str, Counter[str]] = {function: Counter() for function in functions}
    for profile in (profile for pair in blocks for profile in pair):
        for stack, samples in profile.stacks.items():
            *outer, function = stack.split(";")
            if function in chains:
                nearest = outer[1:][-CALLERS_MAX:]
                chains[function][CALLED_BY.join(reversed(nearest))] += samples
    return {function: chain.most_common(1)[0][0] for function, chain in chains.items()}


def _sampler_share(trials: Iterable[Sound], sampler: Sampler) -> float | None:
    """CPU of the sampler over the servers' CPU in the sampled time."""
    shares = [
        profile.sampler_cpu_s * one.window_s / (one.server.cpu_s * profile.window_s)
        for one in (sound.measurement for sound in trials)
        if (profile := profile_of(one, sampler)) and one.server.cpu_s and profile.window_s
    ]
    return fmean(shares) if shares else None
