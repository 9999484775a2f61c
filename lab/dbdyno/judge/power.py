"""What a comparison can see before it is made: differences for its blocks, blocks for a difference.

Two systems that are started anew for each block differ by chance from start to start; how much is
not known before the first run, so every answer is given for several sizes of that noise (method.md
1.b and E10). Noise within a window is what a second of throughput scatters, averaged over the
window. "Seen" is: in four of five comparisons the 95 % interval of the ratio leaves 1 outside.
"""

from __future__ import annotations

import math
from typing import Final

from scipy import optimize, stats

from dbdyno.judge.checks_design import BLOCKS_MIN
from dbdyno.judge.estimate import CONFIDENCE
from dbdyno.judge.verdict import BLOCKS_MAX

POWER: Final = 0.8
"""Four of five."""
NOISES: Final = (0.005, 0.01, 0.015, 0.03)
"""Standard deviations of a system's throughput over restarts: a quiet machine to a busy one."""
USUAL_NOISE: Final = 0.015
SECOND_NOISE: Final = 0.06
"""Scatter of a mean over one second when seconds hang together (3 %, autocorrelation 0.6)."""
_LOG_MAX: Final = math.log(100.0)


def log_sd(noise: float, window_s: float) -> float:
    """Standard deviation of ln(B/A) over blocks, for this noise of restarts and this window."""
    return math.sqrt(2 * (noise**2 + SECOND_NOISE**2 / window_s))


def power_of(difference: float, blocks: int, noise: float, window_s: float) -> float:
    """How probably a ratio of 1 + difference is told from 1 by so many blocks."""
    if blocks < BLOCKS_MIN:
        return 0.0
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, blocks - 1)
    off = math.log1p(difference) * math.sqrt(blocks) / log_sd(noise, window_s)
    return float(stats.nct.sf(quantile, blocks - 1, off))


def difference_seen(blocks: int, noise: float, window_s: float) -> float | None:
    """The least ratio difference that is seen, 0.02 = 2 %; None where blocks give no verdict."""
    if blocks < BLOCKS_MIN:
        return None

    def missing(log_difference: float) -> float:
        return power_of(math.expm1(log_difference), blocks, noise, window_s) - POWER

    return math.expm1(float(optimize.brentq(missing, 1e-6, _LOG_MAX)))


def blocks_to_see(difference: float, noise: float, window_s: float) -> int | None:
    """The blocks in which a ratio difference is seen; None if a plan cannot have so many."""
    low, high = BLOCKS_MIN, BLOCKS_MAX
    if power_of(difference, high, noise, window_s) < POWER:
        return None
    while low < high:
        middle = (low + high) // 2
        if power_of(difference, middle, noise, window_s) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low
