"""A trial's seconds as a series: its rates, how alike neighbours are, what rhythm it has.

Seconds of one window are no repetitions (method.md 1.0); they are the shape that stability is read
off, and they say how much of a window's uncertainty comes from within it. Nothing here decides.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dbdyno.measurement import Interval, Measurement

Rates = npt.NDArray[np.float64]

SECONDS_MIN: Final = 10
"""Below that many seconds nothing is said about their course."""
PERIODS_MIN: Final = 3
"""A rhythm is one that was seen that often."""
PERIOD_S_MIN: Final = 3
PERIOD_P_MAX: Final = 0.01
"""How often a series without a rhythm may be said to have one."""
PERIOD_ALIKE: Final = 0.8
PERIOD_ALIKE_MIN: Final = 0.25
"""A peak counts from that share of the greatest peak on, and from that correlation."""
CORRELATION_RANGE: Final = (-0.5, 0.97)


def whole_seconds(measurement: Measurement) -> list[Interval]:
    """The measured intervals of about a second; what is left over at the end is none."""
    return [i for i in measurement.measured if 0.5 < i.end_s - i.start_s < 1.5]


def rates_of(measurement: Measurement) -> Rates:
    """Events a second in each whole second of the window."""
    return np.array([i.events / (i.end_s - i.start_s) for i in whole_seconds(measurement)])


def running_median(rates: Rates, width: int) -> Rates:
    """The median of the `width` (odd) seconds around each; fewer at the ends."""
    half = width // 2
    beyond = np.full(half, np.nan)
    padded = np.concatenate((beyond, rates, beyond))
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    medians: Rates = np.nanmedian(around, axis=-1)
    return medians


def rho1(rates: Rates) -> float | None:
    """Correlation of neighbouring seconds, with Kendall's correction; None where it has none.

    r + (1 + 4r)/T, held within −0.5 and 0.97 (method.md 1.a.5). None for fewer than ten seconds or
    a rate that never changes.
    """
    count = len(rates)
    off = rates - rates.mean() if count else rates
    total = float((off**2).sum())
    if count < SECONDS_MIN or total == 0:
        return None
    r = float((off[1:] * off[:-1]).sum()) / total
    low, high = CORRELATION_RANGE
    return min(max(r + (1 + 4 * r) / count, low), high)


def period_s(rates: Rates) -> int | None:
    """The rhythm of a series in seconds: after how long it is most like itself; None without one.

    Neighbouring seconds are alike, so a series swings also where nothing drives it. There is a
    rhythm only where some frequency, seen three times at least, holds more power than such a
    series (an AR(1) process of this ρ1) shows with probability `PERIOD_P_MAX` at any of them. Its
    length is then the first peak of the autocorrelation, behind its first fall below 0, that is
    about as high as its greatest: twice a rhythm is as alike as once.
    """
    off = _without_line(rates)
    rho = rho1(off)
    if rho is None or not _swings(off, rho):
        return None
    acf = _autocorrelation(off, len(off) // PERIODS_MIN + 1)
    below = np.flatnonzero(acf < 0)
    first = max(PERIOD_S_MIN, int(below[0])) if below.size else len(acf)
    tops = [k for k in range(first, len(acf) - 1) if acf[k - 1] < acf[k] >= acf[k + 1]]
    enough = max([PERIOD_ALIKE_MIN, *(PERIOD_ALIKE * acf[tops])])
    return next((k for k in tops if acf[k] >= enough), None)


def _without_line(rates: Rates) -> Rates:
    at = np.arange(len(rates))
    if len(rates) < SECONDS_MIN:
        return rates - rates.mean() if len(rates) else rates
    off: Rates = rates - np.polyval(np.polyfit(at, rates, 1), at)
    return off


def _swings(off: Rates, rho: float) -> bool:
    """Whether a frequency holds more power than chance gives: powers are exponential there."""
    power = np.abs(np.fft.rfft(off)) ** 2 / len(off)
    turn = 2 * np.pi * np.fft.rfftfreq(len(off))
    chance = off.var() * (1 - rho**2) / (1 - 2 * rho * np.cos(turn) + rho**2)
    seen = (power / chance)[PERIODS_MIN : len(off) // PERIOD_S_MIN + 1]
    return bool(seen.size) and 1 - (1 - math.exp(-float(seen.max()))) ** seen.size < PERIOD_P_MAX


def _autocorrelation(off: Rates, last: int) -> Rates:
    """Of lags 0 to `last`, each over the seconds it has."""
    count, variance = len(off), float((off**2).mean())
    return np.array([(off[k:] * off[: count - k]).mean() / variance for k in range(last + 1)])
