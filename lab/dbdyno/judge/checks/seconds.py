"""A trial's seconds as a series: which are whole, and their rates.

Seconds of one window are no repetitions (method.md 1.0); they are the shape that stability is read
off. Nothing here decides.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.measurement_parts import Interval

Rates = npt.NDArray[np.float64]

SECONDS_MIN: Final = 10
"""Below that many seconds nothing is said about their course."""


def whole_seconds(measurement: Measurement) -> list[Interval]:
    """The measured intervals of about a second; what is left over at the end is none."""
    return [i for i in measurement.measured if 0.5 < i.end_s - i.start_s < 1.5]


def rates_of(measurement: Measurement) -> Rates:
    """Events a second in each whole second of the window."""
    return np.array([i.events / (i.end_s - i.start_s) for i in whole_seconds(measurement)])
