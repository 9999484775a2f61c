"""Ladders of throughput with a known law: as arrays of blocks, and as trials."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dbdyno.measurement.measurement import Measurement
from support import making

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)
PEAKING = (0.03, 0.0004)
"""σ and κ with a peak at √(0.97 / 0.0004) = 49.2 threads."""
PEAK_THREADS = 49.244
FLAT = (0.05, 0.0)


def law(
    threads: NDArray[np.float64], sigma: float, kappa: float, of_one: float = 100.0
) -> NDArray[np.float64]:
    """X(N) of the Universal Scalability Law."""
    return of_one * threads / (1 + sigma * (threads - 1) + kappa * threads * (threads - 1))


def noisy(
    levels: tuple[int, ...],
    truth: tuple[float, float],
    shape: tuple[int, ...],
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Rates of (…, block, level): restarts scatter by 1.5 %, cells of a restart by 1.2 %."""
    restarts = random.standard_normal((*shape, 1)) * 0.015
    cells = random.standard_normal((*shape, len(levels))) * 0.012
    return law(np.array(levels, dtype=float), *truth) * np.exp(restarts + cells)


def trials(
    system: str, rates: NDArray[np.float64], levels: tuple[int, ...] = LEVELS, **same: object
) -> list[Measurement]:
    """One trial for each block (row) and level (column), without histograms."""
    return [
        making.measurement(
            system,
            block,
            threads,
            float(rate),
            sequence=block * len(levels) + place,
            histograms=False,
            window_s=2,
            **same,  # type: ignore[arg-type]
        )
        for block, of_block in enumerate(rates)
        for place, (threads, rate) in enumerate(zip(levels, of_block, strict=True))
    ]
