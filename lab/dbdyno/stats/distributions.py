"""Quantiles and tails of the distributions that judging needs, and a line through points; scipy's.

`scipy.stats` takes half a second to load, as long as everything else of the lab together. Here it
is loaded when a figure is first asked for, so that neither `dbdyno servers list` nor a run's first
block waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class FittedLine(NamedTuple):
    """A least-squares line: its slope, and how likely chance alone makes one as steep."""

    slope: float
    chance: float


def student_quantile(share: float, freedom: float) -> float:
    """Student's t below which `share` of it lies."""
    from scipy import stats  # noqa: PLC0415 - see above

    return float(stats.t.ppf(share, freedom))


def noncentral_student_tail(value: float, freedom: float, off: float) -> float:
    """The share of Student's t, off by `off`, that lies above `value`."""
    from scipy import stats  # noqa: PLC0415

    return float(stats.nct.sf(value, freedom, off))


def normal_share(values: Numbers) -> Numbers:
    """The shares of the normal distribution below each of `values`."""
    from scipy import special  # noqa: PLC0415

    return np.asarray(special.ndtr(values), dtype=np.float64)


def chi_square_quantiles(shares: Numbers, freedom: float) -> Numbers:
    """The values of χ² below which `shares` of it lie."""
    from scipy import stats  # noqa: PLC0415

    return np.asarray(stats.chi2.ppf(shares, freedom), dtype=np.float64)


def beta_quantile(share: float, left: float, right: float) -> float:
    """The value below which `share` of the beta distribution with these two shapes lies."""
    from scipy import stats  # noqa: PLC0415

    return float(stats.beta.ppf(share, left, right))


def fisher_tail(value: float, between: int, within: int) -> float:
    """The share of Fisher's F, with these degrees of freedom, above `value`."""
    from scipy import stats  # noqa: PLC0415

    return float(stats.f.sf(value, between, within))


def binomial_exceeded(share: float, total: int, chance: float) -> int:
    """The least count that `total` draws, each won by `chance`, exceed in at most `share`."""
    from scipy import stats  # noqa: PLC0415

    return int(stats.binom.isf(share, total, chance))


def line(places: NDArray[Any], values: Numbers) -> FittedLine:
    """The least-squares line through points, and Student's two-sided test of its slope."""
    from scipy import stats  # noqa: PLC0415

    fit = stats.linregress(places, values)
    return FittedLine(float(fit.slope), float(fit.pvalue))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that changes sign between `low` and `high` is zero (Brent).

    Raises:
        ValueError: it has the same sign at both.
    """
    from scipy import optimize  # noqa: PLC0415

    return float(optimize.brentq(function, low, high))
