"""Gunther's Universal Scalability Law and its least-squares fit.

    X(N) = λN / (1 + σ(N − 1) + κN(N − 1))

λ is the throughput of a single thread, σ the serial share (queueing), κ the cost of coherency for
each pair of threads. N/X is a polynomial in N, so the fit is linear with a unique answer. Weights
(X/N)² make every level's relative error count alike (docs/how-it-works/scalability.md). σ and κ
cannot be negative: each is left out in turn, and the closest valid fit is taken, which is exact for
three unknowns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.stats.distributions import Numbers

TERMS: Final = ((0, 1, 2), (0, 1), (0, 2), (0,))
"""Which of 1, N − 1 and N(N − 1) take part; all of them first."""
RISE_LEAST: Final = 1e-9
"""Where σ is 1 and more a second thread only disturbs: the peak is then left of every N."""


class Laws(NamedTuple):
    """Fitted laws of several ladders; all arrays have the ladders' shape.

    Attributes:
        per_s_of_one: λ, throughput of a thread. sigma: σ, contention; kappa: κ, coherency; without
            unit.
    """

    per_s_of_one: Numbers
    sigma: Numbers
    kappa: Numbers


def fit(threads: npt.ArrayLike, rates_per_s: npt.ArrayLike) -> Laws:
    """The closest law with σ and κ not below 0, for each ladder along the last axis of the rates.

    Args:
        threads: the ladder's levels, each once and at least three.
        rates_per_s: throughput at each of them, above 0.
    """
    rates = np.asarray(rates_per_s, dtype=np.float64)
    levels = np.asarray(threads, dtype=np.float64)
    best = np.zeros((*rates.shape[:-1], 3))
    least = np.full(rates.shape[:-1], np.inf)
    for terms in TERMS:
        coefficients, error = _solve(levels, rates, terms)
        obeys = (coefficients >= 0).all(axis=-1) & (coefficients[..., 0] > 0)
        closer = obeys & (error < least * (1 - 1e-9))
        least = np.where(closer, error, least)
        best = np.where(closer[..., None], coefficients, best)
    return Laws(1 / best[..., 0], best[..., 1] / best[..., 0], best[..., 2] / best[..., 0])


def contention_unbounded(threads: npt.ArrayLike, rates_per_s: npt.ArrayLike) -> Numbers:
    """The unconstrained second term in units of the first level's N/X. Below 0 the ladder starts
    super-linearly, against this law.
    """
    rates = np.asarray(rates_per_s, dtype=np.float64)
    levels = np.asarray(threads, dtype=np.float64)
    coefficients, _ = _solve(levels, rates, TERMS[0])
    relative: Numbers = coefficients[..., 1] * rates[..., 0] / levels[0]
    return relative


def throughput(laws: Laws, threads: npt.ArrayLike) -> Numbers:
    """X(N) of each law (first axes) at each number of threads (last axis)."""
    n = np.asarray(threads, dtype=np.float64)
    per_s_of_one, sigma, kappa = (np.asarray(part)[..., None] for part in laws)
    rates: Numbers = per_s_of_one * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))
    return rates


def peaks(laws: Laws) -> Numbers:
    """N* = √((1 − σ)/κ), where throughput is greatest; infinite without κ."""
    rise = np.maximum(1 - laws.sigma, RISE_LEAST)
    peak: Numbers = np.sqrt(
        np.divide(rise, laws.kappa, out=np.full_like(rise, np.inf), where=laws.kappa > 0)
    )
    return peak


def _solve(levels: Numbers, rates: Numbers, terms: tuple[int, ...]) -> tuple[Numbers, Numbers]:
    """Coefficients of 1, N − 1, N(N − 1), 0 unless in `terms`; sum of squared errors."""
    taken = list(terms)
    columns = np.stack([np.ones_like(levels), levels - 1, levels * (levels - 1)], axis=-1)
    scale = columns.max(axis=0)  # the last column is thousands of times the first
    weights = rates / levels
    design = (columns / scale)[:, taken] * weights[..., None]
    amounts = np.linalg.pinv(design).sum(axis=-1)  # weighted, every N/X is 1
    errors = (np.einsum("...kp,...p->...k", design, amounts) - 1) ** 2
    coefficients = np.zeros((*rates.shape[:-1], 3))
    coefficients[..., taken] = amounts / scale[taken]
    return coefficients, errors.sum(axis=-1)
