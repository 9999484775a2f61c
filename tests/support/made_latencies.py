"""Latency histograms of a chosen count, mean and spread, for made measurements.

The engine's Histogram takes one value at a time, so a hundred values of the wanted shape are
recorded and then added to themselves until there are enough.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dbdyno._engine import Histogram


@lru_cache(maxsize=4096)
def latencies(events: int, mean_ns: int, spread: float) -> tuple[bytes, int, int, int]:
    """A histogram of lognormal latencies: its blob, and the sum, least and greatest in ns."""
    points = max(1, min(events, 100))
    normal = np.array([_normal_quantile((i + 0.5) / points) for i in range(points)])
    shape = np.exp(spread * normal)
    values = np.maximum(1, np.rint(shape * (mean_ns / shape.mean()))).astype(int)
    histogram = Histogram()
    if events == 0:
        return histogram.encode(), 0, 0, 0
    for value in values:
        histogram.record(int(value))
    whole = _times(histogram, events // points)
    rest = values[np.linspace(0, points - 1, events % points).astype(int)]
    for value in rest:
        whole.record(int(value))
    total = int(values.sum()) * (events // points) + int(rest.sum())
    return whole.encode(), total, int(values.min()), int(values.max())


def _times(histogram: Histogram, times: int) -> Histogram:
    """The histogram added to itself `times` times, by doubling."""
    result = Histogram()
    power = Histogram.decode(histogram.encode())
    while times:
        if times & 1:
            result.add(power)
        power.add(Histogram.decode(power.encode()))
        times >>= 1
    return result


def _normal_quantile(share: float) -> float:
    """Tukey's lambda approximation of the normal quantile; its shape is all that is needed."""
    return float((share**0.1349 - (1 - share) ** 0.1349) / 0.1975)
