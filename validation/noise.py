"""Noise as databases make it, with the truth known: what the statistics are tried on.

A trial's log rate is the sum of three parts: what the machine did (drift), what its server's start
did (placements, caches, luck), and seconds that resemble the one before (an AR(1) process). Where a
start now and then goes badly, the mean differs from the typical start; the truth that comes with
the numbers is the mean's. Sizes are those of docs/how-it-works/method.md: 1.5 % or 4 % from start
to start, 3 % from second to second, correlation 0.6.

A machine that drifts changes from one arm to the next, so what it does to a pair depends on which
system comes first. That is read off `order.system_order`, as in a run.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dbdyno.experiment.schedule.order import system_order
from dbdyno.plan.plan import DesignPlan, Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan

Numbers = NDArray[np.float64]

RESTART_SD: Final = 0.015
HERE_SD: Final = 0.04
"""From start to start on a virtual machine with two cores."""
SECOND_SD: Final = 0.03
CORRELATION: Final = 0.6
ARM_DRIFT: Final = -0.01
ARM_SD: Final = 0.01
"""A machine that drifts becomes slower by 1 % from one arm to the next, give or take 1 %."""
KINDS: Final = ("normal", "drift", "bimodal", "t3", "slow10", "slowB", "unequal")
"""Seven kinds of starts: even; on a machine that drifts; of two modes; with heavy tails; one in ten
5 % slow, on both systems or only on the second; three times as uneven on the second."""
ORDERS: Final = 512
ORDERED_BLOCKS: Final = 30


def seconds(
    random: np.random.Generator, shape: tuple[int, ...], correlation: float = CORRELATION
) -> Numbers:
    """Log rates of seconds along the last axis, stationary around 0 with `SECOND_SD`."""
    steps = random.normal(0, SECOND_SD * math.sqrt(1 - correlation**2), shape)
    steps[..., 0] = random.normal(0, SECOND_SD, shape[:-1])
    made: Numbers = lfilter([1.0], [1.0, -correlation], steps, axis=-1)
    return made


def restarts(random: np.random.Generator, shape: tuple[int, ...], kind: str, arm: int) -> Numbers:
    """What each start does to the log rate of system 0 (baseline) or 1; see `mean_of_restarts`."""
    z = random.standard_normal(shape)
    if kind == "unequal":
        return np.asarray((0.0067, 0.0201)[arm] * z)
    if kind == "bimodal":
        return np.asarray(0.0145 * random.choice((-1.0, 1.0), shape) + 0.004 * z)
    if kind == "t3":
        return np.asarray(RESTART_SD / math.sqrt(3) * random.standard_t(3, shape))
    if kind == "slow10" or (kind == "slowB" and arm == 1):
        return np.asarray(0.009 * z - 0.05 * (random.random(shape) < 0.1))
    return np.asarray((0.009 if kind == "slowB" else RESTART_SD) * z)


def mean_of_restarts(kind: str, arm: int) -> float:
    """The mean of `restarts`."""
    return -0.005 if kind == "slow10" or (kind == "slowB" and arm == 1) else 0.0


def levels(
    random: np.random.Generator,
    experiments: int,
    blocks: int,
    kind: str,
    log_ratio: float,
    scale: float = 1.0,
) -> tuple[Numbers, float]:
    """Log rates of (experiment, block, system) without their seconds, and the true log ratio.

    Args:
        scale: how many times as uneven as here starts are.
    """
    arms = [scale * restarts(random, (experiments, blocks), kind, arm) for arm in (0, 1)]
    both = np.stack([arms[0], arms[1] + log_ratio], axis=-1)
    if kind == "drift":
        both += drift(random, experiments, blocks)
    shifted = scale * (mean_of_restarts(kind, 1) - mean_of_restarts(kind, 0))
    return both, log_ratio + shifted


def drift(random: np.random.Generator, experiments: int, blocks: int) -> Numbers:
    """What a machine that becomes slower, and wanders, does to (experiment, block, system)."""
    steps = random.normal(ARM_DRIFT, ARM_SD, (experiments, 2 * blocks))
    by_place = np.cumsum(steps, axis=1).reshape(experiments, blocks, 2)
    second_first = orders()[random.integers(0, ORDERS, experiments), :blocks, None]
    made: Numbers = np.where(second_first, by_place[..., ::-1], by_place)
    return made


@lru_cache(maxsize=1)
def orders() -> NDArray[np.bool_]:
    """Whether system 1 comes first, by seed and block, in the order that the lab draws."""
    systems = tuple(SystemPlan(label=label, reference="mysql:8.0.15") for label in "AB")
    plan = Plan(
        systems=systems,
        workloads=(WorkloadPlan(name="oltp_read_write", label="rw"),),
        design=DesignPlan(),
    )
    plans = [plan.model_copy(update={"seed": seed}) for seed in range(ORDERS)]
    return np.array(
        [[system_order(one, block)[0] == "B" for block in range(ORDERED_BLOCKS)] for one in plans]
    )


def log_ratios(
    random: np.random.Generator,
    experiments: int,
    blocks: int,
    kind: str,
    log_ratio: float = 0.0,
    *,
    window_s: int = 60,
    correlation: float = CORRELATION,
    scale: float = 1.0,
) -> tuple[Numbers, float]:
    """ln(system / baseline) of (experiment, block) from trials of `window_s`, and the truth."""
    level, truth = levels(random, experiments, blocks, kind, log_ratio, scale)
    rates = log_rates(random, level, window_s=window_s, correlation=correlation)
    return rates[..., 1] - rates[..., 0], truth


def log_rates(
    random: np.random.Generator,
    level: Numbers,
    *,
    window_s: int = 60,
    correlation: float = CORRELATION,
) -> Numbers:
    """The numbers of trials at these levels: the logarithms of their mean rates."""
    within = seconds(random, (*level.shape, window_s), correlation)
    return np.asarray(np.log(np.exp(level[..., None] + within).mean(axis=-1)))
