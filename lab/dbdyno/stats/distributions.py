"""Distribution functions of numpy's arrays, means of batches, and a straight line through points.

The engine computes the functions, by the Rust crate cdflib (docs/how-it-works/decisions.md). Their
arguments are broadcast. Where an argument is out of range the value is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno import _engine

Numbers = NDArray[np.float64]


def each_level(level: float, number: int) -> float:
    """Error rate of each of so many intervals, for all to hold in 1 - level (Šidák 1967)."""
    return -math.expm1(math.log1p(-level) / number)


def batch_means(values: Numbers, length: int) -> Numbers:
    """Means of consecutive batches along the last axis, without an incomplete last batch."""
    whole = values.shape[-1] // length
    batches = values[..., : whole * length].reshape(*values.shape[:-1], whole, length)
    means: Numbers = batches.mean(axis=-1)
    return means


def student_cdf(t: ArrayLike, freedom: ArrayLike) -> Numbers:
    """Share of Student's t below `t`."""
    return _each(_engine.student_cdf, t, freedom)


def student_quantiles(share: ArrayLike, freedom: ArrayLike) -> Numbers:
    """Student's t below which `share` of it lies."""
    return _each(_engine.student_quantile, share, freedom)


def student_quantile(share: float, freedom: float) -> float:
    """The same for a single number."""
    return float(student_quantiles(share, freedom))


def student_freedom(share: ArrayLike, t: ArrayLike) -> Numbers:
    """Degrees of freedom, 0.5 to 100,000, with which ±t leave `share` of Student's t outside."""
    return _each(_engine.student_freedom, share, t)


def chi_square_quantile(share: ArrayLike, freedom: ArrayLike) -> Numbers:
    """χ² below which `share` of it lies."""
    return _each(_engine.chi_square_quantile, share, freedom)


def f_tail(ratio: ArrayLike, between: ArrayLike, within: ArrayLike) -> Numbers:
    """Share of F above `ratio`, with these degrees of freedom of its numerator and denominator."""
    return _each(_engine.f_tail, ratio, between, within)


def normal_cdf(value: ArrayLike) -> Numbers:
    """Share of the standard normal distribution below `value`."""
    return _each(_engine.normal_cdf, value)


def noncentral_t_cdf(t: ArrayLike, freedom: ArrayLike, shift: ArrayLike) -> Numbers:
    """Share of (normal deviate + shift) / √(χ²/freedom) below `t`, which is 0 to a million.

    `shift` is 0 or more. The error is absolute, about 1e-13, so a tiny share may come out as 0.
    """
    return _each(_engine.noncentral_t_cdf, t, freedom, shift)


def noncentral_t_shift(share: ArrayLike, t: ArrayLike, freedom: ArrayLike) -> Numbers:
    """The shift, 0 or more, with which `share` of the noncentral t lies below `t`."""
    return _each(_engine.noncentral_t_shift, share, t, freedom)


def log_beta(a: ArrayLike, b: ArrayLike) -> Numbers:
    """ln B(a, b)."""
    return _each(_engine.log_beta, a, b)


def digamma(value: ArrayLike) -> Numbers:
    """ψ, the derivative of ln Γ."""
    return _each(_engine.digamma, value)


def trigamma(value: ArrayLike) -> Numbers:
    """ψ′, of numbers above 0."""
    return _each(_engine.trigamma, value)


def _each(function: Callable[..., None], *arguments: ArrayLike) -> Numbers:
    """Values of a function of the engine at each place of its arguments."""
    shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
    columns = [
        np.ascontiguousarray(np.broadcast_to(argument, shape), dtype=np.float64)
        for argument in arguments
    ]
    values = np.empty_like(columns[0])
    function(*(column.data for column in columns), values.data)
    return values.reshape(shape)


class FittedLine(NamedTuple):
    """A least-squares line: its slope, and the p value of a slope as steep by chance."""

    slope: float
    chance: float


def line(places: NDArray[Any], values: Numbers) -> FittedLine:
    """The least-squares line through three points or more; Student's two-sided test of its slope.

    Places must differ.
    """
    across, along = values - values.mean(), places - places.mean()
    squares = float(along @ along)
    slope = float(along @ across) / squares
    freedom = len(values) - 2
    left = across - slope * along
    error = math.sqrt(float(left @ left) / freedom / squares)
    if error == 0:
        return FittedLine(slope, 0.0 if slope else 1.0)
    return FittedLine(slope, 2 * float(student_cdf(-abs(slope) / error, freedom)))
