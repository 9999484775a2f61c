"""What a run tells whoever is watching it; the command line draws it, tests collect it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dbdyno.measurement.measurement import Measurement, Trial


class Progress(Protocol):
    """Called from the run's own thread, in the order of events; must return soon."""

    def stage(self, text: str) -> None:
        """What is being done between trials: "mysql:8.0.15: restoring the dataset"."""

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Trial `number` (from 1) of `total` begins; those stored before are counted."""

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The engine finished one interval: at_s, phase, events, latency_ms by percentile …"""

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The trial ended and is stored, failed or not."""
