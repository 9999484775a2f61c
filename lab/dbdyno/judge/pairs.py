"""Sound trials by place, and the one number that each block gives: a logarithm, or a difference.

Everything that compares takes its samples from here, so that a block counts as one sample in
grids and ladders exactly as it does in a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dbdyno.judge.audit import Sound
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import Metric


class Pairs:
    """The sound trials of a run by cell, system and block."""

    def __init__(self, sound: Iterable[Sound]) -> None:
        self._arms: dict[tuple[Cell, str], dict[int, Sound]] = {}
        for one in sound:
            arm = self._arms.setdefault((one.trial.cell, one.trial.system), {})
            arm.setdefault(one.trial.block, one)

    def arm(self, cell: Cell, system: str) -> Mapping[int, Sound]:
        """That system's trials of that cell by block, in the order stored."""
        return self._arms.get((cell, system), {})

    def arms_of(self, cell: Cell) -> dict[str, Mapping[int, Sound]]:
        """Every system's trials of that cell, the systems in the order in which they came."""
        return {system: arm for (of, system), arm in self._arms.items() if of == cell}

    def logs(self, cell: Cell, system: str, metric: Metric) -> dict[int, float]:
        """ln of the metric in every block that showed it, in the order of blocks."""
        found = {block: _log_value(one, metric) for block, one in self.arm(cell, system).items()}
        return {block: log for block, log in sorted(found.items()) if log is not None}

    def log_ratios(
        self, cell: Cell, baseline: str, system: str, metric: Metric
    ) -> dict[int, float]:
        """ln(system / baseline) of every block in which both are sound and showed the metric."""
        below, above = (self.logs(cell, label, metric) for label in (baseline, system))
        return {block: above[block] - below[block] for block in below if block in above}


def _log_value(one: Sound, metric: Metric) -> float | None:
    value = one.value(metric)
    return math.log(value) if value is not None and value > 0 else None
