"""Warm-up left in measured windows: a fit of the approach to the settled rate, with limits
(docs/how-it-works/verdicts.md).

A single trial of some seconds does not tell a warm-up from noise. So all trials of a system are
averaged second by second of their loads, and saturation curves are fitted to the mean: exponential
with time constants from a second to four times the series, and hyperbolic, with a longer tail.
There are two fits: from the second second of the load, where a warm-up is largest, and to the
residuals in the window, as a quick warm-up can hide the tail of a slow warm-up. If a fit is
significant, the best curve decides the part of the window to leave out, and all curves of nearly
equal fit give limits for the remaining bias: the limits of a profile likelihood (Venzon and
Moolgavkar 1988), a curve's amplitude varied as far as its own fit leaves room. At most half of a
window is left out, equal for all systems. Invisible to the fit is a warm-up far longer than the
series, flat within it or far from its apparent level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.stats.distributions import Numbers, batch_means, student_quantile

CHANCE: Final = 0.0015
"""How often a flat series of one system is taken for an approach, at each of its two looks."""
CHANCE_LEFT: Final = 0.05
"""The same where the first look found one, as then more of it is likely."""
NEAR: Final = 0.005
"""A rate this close to the one that is approached is steady; nothing is done about less."""
CUT_NEAR: Final = 0.002
"""What is left out is so much that the fitted curve is that close in the mean of the rest."""
BEGIN_S: Final = 1
"""Connections begin in the first second, which is slow for that: no point of an approach. With it,
curves with a long tail fit every load of a real server."""
LONGEST: Final = 4.0
"""The longest time constant that is looked for, in lengths of the series."""
SLOW: Final = 0.5
"""The longest one of a curve that falls hyperbolically, which has half its height left by then."""
STEP: Final = 1.03
"""From one time constant to the next."""
POINTS_MAX: Final = 120
"""Longer series are taken in means of some seconds."""
MODEL_FREEDOM: Final = 8.0
"""What the noise within trials weighs beside the differences between trials, which are few."""
SURE: Final = 0.98
"""Student's t at this probability is how far from the best fit the limits are, in its errors."""
FLAT: Final = 2.0
"""Below this t a system beside one that is not steady counts as flat."""
NOISE_MIN: Final = 1e-3
"""No rate of a second is more even than that."""


class Tail(NamedTuple):
    """ln(settled rate / counted rate) of a system: the best fit and its limits."""

    low: float
    best: float
    high: float


NO_TAIL: Final = Tail(0.0, 0.0, 0.0)


class Settling(NamedTuple):
    """Result for a cell with unsteady systems.

    Attributes:
        cut_s: seconds to leave out at the beginning of every window, half of it at most.
        left: each system's remaining bias after the cut.
        until_s: seconds since the load began until the slowest system is within `NEAR` of its
            settled rate, for an exponential approach.
    """

    cut_s: int
    left: tuple[Tail, ...]
    until_s: float


class _Shapes(NamedTuple):
    """Curves falling to 0: plain, centred, squares of the centred values, and their products at
    each lag.

    The first `exponential` ones are exp(-second / constant), others 1 / (1 + second / constant).
    """

    constants: Numbers
    exponential: int
    curves: Numbers
    centred: Numbers
    squares: Numbers
    products: Numbers


class _Fit(NamedTuple):
    """Amplitudes of every curve for each system, and their standard errors."""

    shapes: _Shapes
    amplitudes: Numbers
    errors: Numbers
    freedom: float


class _Tails(NamedTuple):
    """Missing shares of the settled rate by (system, points left out), with limits.

    Attributes:
        until: points until the slowest is near.
        shapes: the fitted curve of each system around 1, by point.
    """

    low: Numbers
    best: Numbers
    high: Numbers
    until: float
    shapes: Numbers


def settling(loads: Sequence[npt.ArrayLike], warmup_s: int) -> Settling | None:
    """Fit the warm-up of a cell's systems.

    Args:
        loads: for each system its trials' rates, (trial, second of the load), all equally long.
        warmup_s: seconds before the window.

    Returns:
        None for steady windows, and for too few data.
    """
    whole = [np.asarray(load, dtype=np.float64) for load in loads]
    points_s = math.ceil(whole[0].shape[1] / POINTS_MAX)
    begin_s = min(BEGIN_S, max(0, warmup_s - 1))
    first_s = begin_s + (warmup_s - begin_s) % points_s
    before = (warmup_s - begin_s) // points_s
    means = [batch_means(load[:, first_s:], points_s) for load in whole]
    tails = _tails(means, before, CHANCE) if before else None
    if tails:
        means = [load / shape for load, shape in zip(means, tails.shapes, strict=True)]
    window = [load[:, before:] for load in means]
    rest = _tails(window, 0, CHANCE_LEFT if tails else CHANCE)
    looks = [look for look in (tails, rest) if look]
    if not looks:
        return None
    best = np.sum([look.best for look in looks], axis=0)
    near = np.flatnonzero(np.abs(best).max(axis=0) <= CUT_NEAR)
    cut = int(near[0]) if len(near) else best.shape[1] - 1
    down = np.linalg.norm([(look.best - look.low)[:, cut] for look in looks], axis=0)
    up = np.linalg.norm([(look.high - look.best)[:, cut] for look in looks], axis=0)
    best = best[:, cut]
    left = zip(_log(best - down), _log(best), _log(best + up), strict=True)
    until = max(tails.until if tails else 0.0, before + rest.until if rest else 0.0)
    until_s = float(first_s + points_s * until)
    return Settling(cut * points_s, tuple(Tail(*ends) for ends in left), until_s)


def _tails(loads: Sequence[Numbers], begin: int, chance: float) -> _Tails | None:
    """Bias of the window from point `begin` on; None without a significant fit.

    Systems are tested alone and together: a common warm-up shows sooner together.
    """
    fit = _fitted(loads)
    if fit is None:
        return None
    shapes, amplitudes, errors, freedom = fit
    limit = -student_quantile(chance / 2, freedom)
    together = amplitudes.mean(axis=0) * len(loads) / np.sqrt((errors**2).sum(axis=0))
    all_found = bool(np.abs(together).max() > limit)
    places = shapes.curves.shape[1] - begin
    tails = _tail_means(shapes.curves)[:, begin : begin + places // 2 + 1]
    low, best, high = np.zeros((3, len(loads), tails.shape[1]))
    sure = student_quantile(SURE, freedom) ** 2
    curves = np.ones((len(loads), shapes.curves.shape[1]))
    alarm, until = False, 0.0
    for system, (amplitude, error) in enumerate(zip(amplitudes, errors, strict=True)):
        most = float(np.abs(amplitude / error).max())
        if most < FLAT:
            continue
        gains = amplitude**2 * shapes.squares
        chosen = int(gains.argmax())
        room = sure - (gains[chosen] - gains) / (error[chosen] ** 2 * shapes.squares[chosen])
        fits = room >= 0
        settled = np.maximum(1 - amplitude * shapes.curves.mean(axis=1), 0.2)
        off = (-amplitude / settled)[:, None] * tails
        unsure = (error * np.sqrt(np.maximum(room, 0)) / settled)[:, None] * tails
        best[system] = off[chosen]
        high[system] = (off + unsure)[fits].max(axis=0)
        low[system] = (off - unsure)[fits].min(axis=0)
        if (all_found or most > limit) and max(high[system, 0], -low[system, 0]) > NEAR:
            alarm = True
        plain = int(gains[: shapes.exponential].argmax())
        share = abs(amplitude[plain]) / settled[plain]
        if share > NEAR:
            until = max(until, shapes.constants[plain] * math.log(share / NEAR))
        curves[system] += amplitude[chosen] * shapes.centred[chosen]
    return _Tails(low, best, high, until, curves) if alarm else None


def _fitted(loads: Sequence[Numbers]) -> _Fit | None:
    """Least squares for every curve; None for series too short to estimate their noise.

    The variance of an amplitude is the mean of two estimates: from noise within the trials, with
    correlated neighbouring seconds, and from its scatter between a system's trials.
    """
    relative = [
        load / load.mean(axis=1, keepdims=True) for load in loads if load.mean(axis=1).all()
    ]
    length = loads[0].shape[1]
    if len(relative) < len(loads) or length < 2:
        return None
    shapes = _shapes(length)
    own = [trials @ shapes.centred.T / shapes.squares for trials in relative]
    amplitudes = np.array([one.mean(axis=0) for one in own])
    best = (amplitudes**2 * shapes.squares).argmax(axis=1)
    residuals = np.concatenate(
        [
            trials - 1 - amplitudes[system, curve] * shapes.centred[curve]
            for system, (trials, curve) in enumerate(zip(relative, best, strict=True))
        ]
    )
    between = sum(len(trials) - 1 for trials in own)
    within = min(MODEL_FREEDOM, len(residuals) * (length - 1) / 3) if length >= 4 else 0.0
    if within + between == 0:
        return None
    spread = sum(((one - one.mean(axis=0)) ** 2).sum(axis=0) for one in own)
    noise = within * _noise(residuals, shapes, len(loads)) if within else 0.0
    variance = (noise + spread) / (within + between)
    variance = np.maximum(variance, NOISE_MIN**2 / shapes.squares)
    trials_of = np.array([[len(one)] for one in own])
    return _Fit(shapes, amplitudes, np.sqrt(variance / trials_of), within + between)


def _noise(residuals: Numbers, shapes: _Shapes, systems: int) -> Numbers:
    """Variance of each amplitude from noise within a trial.

    The correlation of neighbours is raised by its standard error, since short series underestimate
    it and a series centred on its own mean varies too little.
    """
    trials, length = residuals.shape
    total = float((residuals**2).sum())
    if total == 0:
        return np.zeros(len(shapes.squares))
    raw = float((residuals[:, 1:] * residuals[:, :-1]).sum()) / total * length / (length - 1)
    lag = min(max(raw + (1 + 4 * raw) / length + 1 / math.sqrt(residuals.size), 0.0), 0.95)
    apart = np.arange(length)
    alike = lag**apart * np.where(apart, 2.0, 1.0)
    lost = (float(alike @ (1 - apart / length)) - 1) / (length - 1)
    second = total / max(trials * (length - 1) - 2 * systems, 1) / max(1 - lost, 0.2)
    swollen = shapes.products @ alike / shapes.squares
    return np.asarray(second * swollen / shapes.squares)


@lru_cache(maxsize=32)
def _shapes(length: int) -> _Shapes:
    most = LONGEST * length
    least = max(1.0, length / 32)
    steps = np.arange(math.floor(math.log(most / least, STEP)) + 1, dtype=np.float64)
    constants: Numbers = most * STEP**-steps
    slow = constants[constants <= SLOW * length]
    points = np.arange(length) + 0.5
    curves = np.concatenate(
        [np.exp(-points / constants[:, None]), 1 / (1 + points / slow[:, None])]
    )
    centred = curves - curves.mean(axis=1, keepdims=True)
    every = np.concatenate([constants, slow])
    products = np.array([np.correlate(one, one, "full")[length - 1 :] for one in centred])
    return _Shapes(every, len(constants), curves, centred, products[:, 0], products)


def _tail_means(curves: Numbers) -> Numbers:
    """The mean of each curve from each point to its end."""
    counts = np.arange(curves.shape[1], 0, -1)
    return np.asarray(curves[:, ::-1].cumsum(axis=1)[:, ::-1] / counts)


def _log(off: Numbers) -> list[float]:
    """ln(settled rate / counted rate) from the missing shares of the settled rate."""
    return [float(one) for one in -np.log1p(-np.clip(off, -2.0, 0.8))]
