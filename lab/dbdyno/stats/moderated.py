"""Student's t of many counters at once, each variance moved towards the variance common to all.

Five blocks show the variance of a counter badly, and among hundreds of counters some seem quiet by
chance. So a counter's variance is averaged with the common one, weighted by degrees of freedom
(Smyth 2004, limma): few where counters are unlike in noise, many where they are alike. Both come
from the moments of the counters' ln variances.

`pooled` does the same for few cells by a posterior, which takes too long for hundreds of counters
and does not suit them: their noise differs a thousandfold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dbdyno.stats.distributions import Numbers, digamma, each_level, student_quantiles, trigamma
from dbdyno.stats.pooled import effective_number

PRIORS: Final = np.geomspace(0.1, 1e5, 121)
"""Degrees of freedom by which variances may be alike; the last: all the same."""
_LEAST: Final = 1e-12
"""Least variance, of values that are equal to the last digit."""


@dataclass(frozen=True)
class Moderated:
    """Means over blocks with their noise; every array has an entry for each counter.

    Attributes:
        error: standard error of the mean; freedom: its degrees of freedom.
    """

    mean: Numbers
    error: Numbers
    freedom: Numbers

    def half_widths(self, level: float) -> Numbers:
        """Half widths of intervals that hold together at 1 - level (Šidák 1967)."""
        share = each_level(level, len(self.mean))
        return np.asarray(student_quantiles(1 - share / 2, self.freedom) * self.error)


def moderated(blocks: Numbers, least: Numbers) -> Moderated:
    """Estimate the mean of each counter.

    Args:
        blocks: of each block and counter; NaN where a counter has no value. Every counter has two
            values or more, and there is a counter.
        least: variance of a block that a counter has at least, by its own small counts.
    """
    there = ~np.isnan(blocks)
    count = there.sum(axis=0)
    mean = np.nanmean(blocks, axis=0)
    residuals = np.where(there, blocks - mean, 0.0)
    freedom, least = count - 1.0, np.maximum(least, _LEAST)
    own = np.maximum((residuals**2).sum(axis=0) / freedom, least)
    prior, common = _prior(own, freedom)
    # Counters that go up and down together tell no more of the common variance than a few do.
    prior = min(prior, (effective_number(residuals) - 1) * float(freedom.mean()))
    total = prior + freedom
    variance = np.maximum((prior * common + freedom * own) / total, least)
    return Moderated(mean, np.sqrt(variance / count), total)


def _prior(own: Numbers, freedom: Numbers) -> tuple[float, float]:
    """Degrees of freedom by which the counters' variances are alike, and the common variance."""
    if len(own) < 2:
        return 0.0, 0.0
    logs = np.log(own) - digamma(freedom / 2) + np.log(freedom / 2)
    scatter = float(logs.var(ddof=1) - trigamma(freedom / 2).mean())
    scatters = trigamma(PRIORS / 2)
    known = np.log(np.clip(scatter, scatters[-1], scatters[0]))
    prior = float(np.exp(np.interp(known, np.log(scatters)[::-1], np.log(PRIORS)[::-1])))
    bias = float(digamma(prior / 2)) - np.log(prior / 2)
    return prior, float(np.exp(logs.mean() + bias))
