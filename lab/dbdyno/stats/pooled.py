"""Intervals of the means of several cells, with noise estimated from all cells together.

Five blocks show a mean well and its noise badly: their standard deviation has four degrees of
freedom. The cells of a workload are alike in noise, so each cell's variance is moved towards the
variance common to its group, as far as the cells are alike (Smyth 2004, the moderated t of limma):

    variance of a cell ~ scaled inverse χ² around `common`, with `alike` degrees of freedom

A share of the cells is unlike its group, with a single degree of freedom. `common` and `alike` are
averaged over their posterior: `alike` on a grid, with a half-normal prior of the scatter of ln σ²,
`common` at points around its estimate. So a run of few cells, which cannot show that they are
alike, keeps wide intervals.

Cells that share a start of the servers go up and down together, and tell less about their noise
than as many cells apart: n cells count as n / (1 + (n − 1) r²), with r² the mean squared
correlation of their blocks.

Intervals hold together: given the variances, the chance that none of them misses is at least the
product of the chances of each, however the cells are correlated (Šidák 1967). That product is
averaged over the posterior, since all cells err together where the noise is underestimated.

docs/how-it-works/statistics.md has the formulas, the assumptions, and how often it errs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats.distributions import (
    Numbers,
    digamma,
    each_level,
    log_beta,
    normal_cdf,
    student_cdf,
    student_freedom,
    student_quantiles,
    trigamma,
)

ALIKE: Final = np.array([1, 2, 3, 5, 8, 14, 30, 1e6])
"""Degrees of freedom by which the variances of cells are alike; the last: all the same."""
ODD: Final = 0.2
"""Chance of a cell, before its blocks are seen, to be unlike its group in noise: cautious, since
a cell taken for alike by mistake has an interval too narrow."""
ODD_ALIKE: Final = np.array(1.0)
"""Degrees of freedom by which such a cell is still like its group."""
BLOCKS_MANY: Final = 16
"""From so many blocks on noise is known well enough for a forecast."""
OWN: Final = 0.1
"""Part of the level for intervals by each cell's own noise. The narrower of both counts, so that a
quiet cell among loud cells can show that it is quiet."""
USUALLY_ALIKE: Final = 7
"""Degrees of freedom by which the 48 cells of a comparison of MySQL 5.7 and 8.0 were alike."""
SCATTER: Final = 1.0
"""Scale of the half-normal prior of the standard deviation of cells' ln variance."""
GROUP_MIN: Final = 4
"""Least cells of a group. In a run with a smaller group all cells are a single group, and fewer
cells than this keep their own noise: two workloads are too unlike to lend each other knowledge."""
CORRELATION_DOUBT: Final = 0.5
"""Added to the mean squared correlation of a single pair of cells, as few pairs show it badly."""
_PARTS: Final = np.arange(-3, 7.25, 0.5)
"""Points at which the distribution of ln `common` is looked at, in its standard deviations."""
_FAR: Final = np.geomspace(0.5, 400, 24)
"""Half widths at which tails are computed, in standard errors."""
_LEAST: Final = 1e-12
"""Least variance of ln ratios: blocks that are equal to the last digit."""


@dataclass(frozen=True)
class Pooled:
    """Means with their noise and intervals; every array has an entry for each cell.

    Attributes:
        mean: of the blocks.
        sd: standard deviation of a block, moved towards the group's.
        freedom: degrees of freedom with which Student's t gives the half width `together`.
        alone: half width of an interval for this cell by itself.
        together: half width of the intervals that hold for all cells at once.
        level: error rate of each of the intervals `together`.
    """

    mean: Numbers
    sd: Numbers
    freedom: Numbers
    alone: Numbers
    together: Numbers
    level: float


def pooled(blocks: Numbers, groups: Sequence[Hashable], level: float) -> Pooled:
    """Estimate the mean of each cell, with intervals that hold together at 1 - level.

    Args:
        blocks: of each block and cell, shape (blocks, cells); NaN where a cell has no value. Every
            cell has two values or more.
        groups: for each cell the group whose noise it shares.

    Raises:
        ValueError: a cell has fewer than two values.
    """
    there = ~np.isnan(blocks)
    count = there.sum(axis=0)
    if (count < 2).any():
        raise ValueError(f"an interval needs two values at least, found {count.min()}")
    mean = np.nanmean(blocks, axis=0)
    residuals = np.where(there, blocks - mean, 0.0)
    own = np.maximum((residuals**2).sum(axis=0) / (count - 1), _LEAST)

    def by_own_noise(level: float) -> Numbers:
        return np.asarray(student_quantiles(1 - level / 2, count - 1.0) * np.sqrt(own / count))

    if len(mean) < GROUP_MIN:
        share = each_level(level, len(mean))
        alone, together = by_own_noise(level), by_own_noise(share)
        return Pooled(mean, np.sqrt(own), count - 1.0, alone, together, share)
    noise = _Noise.of(residuals, own, count - 1.0, _places(groups))
    kept = (1 - OWN) * level
    share, error = noise.share(kept), noise.sd / np.sqrt(count)
    alone = np.minimum(noise.half_widths(kept) * error, by_own_noise(OWN * level))
    own_together = by_own_noise(OWN * level / len(mean))
    together = np.minimum(noise.half_widths(share) * error, own_together)
    freedom = student_freedom(share, together / error)
    return Pooled(mean, noise.sd, freedom, alone, together, share)


def _places(groups: Sequence[Hashable]) -> list[NDArray[np.intp]]:
    """The places of each group's cells."""
    by_group: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        by_group.setdefault(group, []).append(place)
    if min(map(len, by_group.values())) < GROUP_MIN:
        return [np.arange(len(groups))]
    return [np.array(places) for places in by_group.values()]


def usual_half_width(blocks: int, cells: int, level: float = 0.05) -> float:
    """Half width of intervals that hold together, as it usually comes out for independent cells.

    Returns:
        The median over cells and simulated runs, in standard errors √(σ²/blocks) of a cell.
    """
    return _usual_half_width(min(blocks, BLOCKS_MANY), cells, round(level, 6))


@cache
def _usual_half_width(blocks: int, cells: int, level: float) -> float:
    random = np.random.default_rng([blocks, cells])
    half_widths = []
    for _ in range(max(4, 40 // cells)):
        sd = np.sqrt(USUALLY_ALIKE / random.chisquare(USUALLY_ALIKE, cells))
        noise = pooled(random.normal(0, sd, (blocks, cells)), ["usual"] * cells, level)
        half_widths.append(noise.together * np.sqrt(blocks) / sd)
    return float(np.median(np.concatenate(half_widths)))


def effective_number(residuals: Numbers) -> float:
    """Number of cells that would tell as much about the noise if they were not correlated.

    Args:
        residuals: of each block and cell, with a mean of zero over blocks.
    """
    blocks, cells = residuals.shape
    freedom = blocks - 1
    if cells == 1 or freedom < 2:
        return 1.0
    norms = np.maximum(np.sqrt((residuals**2).sum(axis=0)), np.sqrt(_LEAST))
    squares = ((residuals.T @ residuals) / np.outer(norms, norms)) ** 2
    pairs = cells * (cells - 1) / 2
    seen = (squares.sum() - np.trace(squares)) / (2 * pairs)
    by_chance = 1 / freedom
    square = max(0.0, (seen - by_chance) / (1 - by_chance))
    square += CORRELATION_DOUBT * (1 - square) / np.sqrt(pairs)
    return float(cells / (1 + (cells - 1) * min(1.0, square)))


@dataclass(frozen=True)
class _Noise:
    """Posterior of the cells' noise: chances to miss, by `alike`, part of `common`, cell and half
    width."""

    sd: Numbers
    weights: Numbers
    parts: list[Numbers]
    logs: Numbers
    places: list[NDArray[np.intp]]

    @classmethod
    def of(
        cls, residuals: Numbers, own: Numbers, freedom: Numbers, places: list[NDArray[np.intp]]
    ) -> _Noise:
        shape = (len(ALIKE), len(_PARTS), len(own))
        weights, parts = _prior().copy(), []
        variances, odd = np.empty((2, *shape)), np.empty(shape)
        kinds = np.stack(np.broadcast_arrays(ALIKE[:, None, None], ODD_ALIKE))
        for cells in places:
            effective = effective_number(residuals[:, cells])
            common, density, odd[..., cells] = _common(own[cells], freedom[cells], effective)
            likelihood = density.sum(axis=1, keepdims=True)  # 0 where cells are not alike at all
            weights *= likelihood[:, 0]
            parts.append(density / np.maximum(likelihood, np.finfo(float).tiny))
            moved = kinds * common[..., None] + freedom[cells] * own[cells]
            variances[..., cells] = moved / (kinds + freedom[cells])
        weights /= weights.sum()
        shares = np.stack([1 - odd, odd])
        log_variances = (shares * np.log(variances)).sum(axis=0)
        log_variance = np.empty(len(own))
        for cells, of_group in zip(places, parts, strict=True):
            log_variance[cells] = np.einsum(
                "k,kq,kqc->c", weights, of_group, log_variances[..., cells]
            )
        sd: Numbers = np.exp(log_variance / 2)
        ratios = (sd / np.sqrt(variances))[..., None]
        total = np.minimum(kinds + freedom, 1e5)[..., None]
        tails = 2 * (shares[..., None] * student_cdf(-ratios * _FAR, total)).sum(axis=0)
        return cls(sd, weights, parts, np.log(np.maximum(tails, 1e-300)), places)

    @cached_property
    def chances(self) -> Numbers:
        """Log chance of each cell to be missed by an interval of each half width."""
        chances = np.empty(self.logs.shape[2:])
        for cells, parts in zip(self.places, self.parts, strict=True):
            tails = np.exp(self.logs[:, :, cells])
            chances[cells] = np.einsum("k,kq,kqch->ch", self.weights, parts, tails)
        return np.log(chances)

    def half_widths(self, level: float) -> Numbers:
        """Half width of each cell's interval at this level, in standard errors."""
        logs = [np.interp(-np.log(level), -chance, np.log(_FAR)) for chance in self.chances]
        return np.asarray(np.exp(logs), dtype=np.float64)

    def share(self, level: float) -> float:
        """The level of each interval with which all of them together miss at `level`."""
        low, high = np.log(level / self.logs.shape[2]), np.log(level)
        for _ in range(14):
            middle = (low + high) / 2
            if self._any_misses(self.half_widths(float(np.exp(middle)))) > level:
                high = middle
            else:
                low = middle
        return float(np.exp(low))

    def _any_misses(self, half_widths: Numbers) -> float:
        step = (np.log(half_widths) - np.log(_FAR[0])) / np.log(_FAR[1] / _FAR[0])
        below = np.clip(step.astype(int), 0, len(_FAR) - 2)
        cells = np.arange(len(half_widths))
        left, right = self.logs[:, :, cells, below], self.logs[:, :, cells, below + 1]
        holds = 1 - np.minimum(1.0, np.exp(left + (step - below) * (right - left)))
        all_hold = self.weights.copy()
        for of_group, parts in zip(self.places, self.parts, strict=True):
            all_hold *= (np.prod(holds[:, :, of_group], axis=2) * parts).sum(axis=1)
        return float(1 - all_hold.sum())


def _common(own: Numbers, freedom: Numbers, effective: float) -> tuple[Numbers, Numbers, Numbers]:
    """Variances common to a group, the density of each, and each cell's chance to be odd, by
    `ALIKE`.

    The density is the likelihood of the cells' variances, each a scaled F, as if there were so many
    cells as are effective.
    """
    alike = ALIKE[:, None]
    centre = (np.log(own) + _log_bias(alike) - _log_bias(freedom)).mean(axis=1)
    scatter = (trigamma(freedom / 2) + trigamma(alike / 2)).mean(axis=1) / effective
    steps = np.sqrt(scatter)[:, None] * _PARTS
    log_common = centre[:, None] + steps
    log_ratio = np.log(own) - log_common[..., None]
    usual = (1 - ODD) * _density(log_ratio, freedom, ALIKE[:, None, None])
    odd = ODD * _density(log_ratio, freedom, ODD_ALIKE)
    logs = np.log(usual + odd).mean(axis=2) * effective + np.log(np.sqrt(scatter))[:, None]
    return np.exp(log_common), np.exp(logs - logs.max()), odd / (usual + odd)


def _density(log_ratio: Numbers, freedom: Numbers, alike: Numbers) -> Numbers:
    """Density of ln F, for F a cell's variance over the common variance."""
    logs = (
        freedom / 2 * (log_ratio + np.log(freedom / alike))
        - (freedom + alike) / 2 * np.log1p(freedom / alike * np.exp(log_ratio))
        - log_beta(freedom / 2, alike / 2)
    )
    return np.asarray(np.exp(np.maximum(logs, -600.0)))


def _log_bias(freedom: Numbers) -> Numbers:
    """Mean of ln(χ²/freedom)."""
    return np.asarray(digamma(freedom / 2) - np.log(freedom / 2))


@cache
def _prior() -> Numbers:
    """Weights of `ALIKE` by the half-normal prior of the scatter of ln variances."""
    scatter = np.sqrt(trigamma(ALIKE / 2))
    edges = np.concatenate([[np.inf], np.sqrt(scatter[1:] * scatter[:-1]), [0.0]])
    below = normal_cdf(edges / SCATTER)
    weights: Numbers = (below[:-1] - below[1:]) / (below[0] - below[-1])
    return weights
