"""Quantiles and tails of distributions, means of batches, and a straight line through points.

scipy loads `scipy.special` when it is first used, in a second or less; `scipy.stats` would take
three times as long, so the lab does without it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def batch_means(values: Numbers, length: int) -> Numbers:
    """Means of consecutive batches along the last axis, without an incomplete last batch."""
    whole = values.shape[-1] // length
    batches = values[..., : whole * length].reshape(*values.shape[:-1], whole, length)
    means: Numbers = batches.mean(axis=-1)
    return means


def student_quantile(share: float, freedom: float) -> float:
    """Student's t below which `share` of it lies."""
    return float(scipy.special.stdtrit(freedom, share))


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
    return FittedLine(slope, 2 * float(scipy.special.stdtr(freedom, -abs(slope) / error)))
