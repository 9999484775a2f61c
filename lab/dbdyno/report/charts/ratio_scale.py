"""The axis of ratios: where its ticks stand, and what lies outside of the view.

A ratio is drawn by its logarithm, so that a half and a double lie equally far from none; it is
labelled as the change it means. Three blocks can give intervals that reach from a tenth to the
tenfold; drawn whole they would press everything else into one line, so such an interval ends at the
edge with an arrow, and its numbers stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dbdyno.judge.wording import change

TICKS_APART: Final = 0.3
"""Least distance of two ticks, in reaches: room for their words."""
STEPS_PERCENT: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25)
LINEAR_MAX: Final = math.log(1.6)
"""Up to that ratio equal steps of the change look like equal steps."""
LOSSES_PERCENT: Final = (-10, -20, -30, -40, -50, -60, -70, -80, -90, -95, -99, -99.9)
GAINS_PERCENT: Final = (10, 20, 30, 50, 100, 200, 300, 500, 900, 1900, 4900, 9900, 99900)
MARGINS_SHOWN: Final = 2.5
"""The view reaches at least so far beyond none, in margins."""
ROOM: Final = 1.25
INTERVAL_ROOM: Final = 3.0
"""An interval is shown whole up to that multiple of the farthest ratio and the margins."""


@dataclass(frozen=True)
class View:
    """The part of the axis that is shown: from 1/ratio to ratio, as its logarithm."""

    reach: float

    @property
    def domain(self) -> list[float]:
        """Both ends, as logarithms."""
        return [-self.reach, self.reach]

    def within(self, ratio: float) -> float:
        """The ratio's place, at the edge if it lies outside."""
        return max(-self.reach, min(self.reach, math.log(ratio)))

    def holds(self, ratio: float) -> bool:
        """Whether the ratio can be seen."""
        return abs(math.log(ratio)) <= self.reach

    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels, round numbers of change, none in the middle."""
        ratios = self._linear() if self.reach <= LINEAR_MAX else self._uneven()
        return [(math.log(ratio), _label(ratio)) for ratio in ratios]

    def _linear(self) -> list[float]:
        for step in STEPS_PERCENT:
            below = int((1 - math.exp(-self.reach)) * 100 / step)
            above = int((math.exp(self.reach) - 1) * 100 / step)
            ratios = [1 + place * step / 100 for place in range(-below, above + 1)]
            if all(self._apart(before, after) for before, after in pairwise(ratios)):
                return ratios
        return self._uneven()

    def _uneven(self) -> list[float]:
        """Round changes, from none outwards on either side, as far as there is room for them."""
        below, above = (
            self._outwards([1 + percent / 100 for percent in side])
            for side in (LOSSES_PERCENT, GAINS_PERCENT)
        )
        return [*reversed(below), 1.0, *above]

    def _outwards(self, ratios: Iterable[float]) -> list[float]:
        kept = [1.0]
        for ratio in ratios:
            if self.holds(ratio) and self._apart(kept[-1], ratio):
                kept.append(ratio)
        return kept[1:]

    def _apart(self, one: float, other: float) -> bool:
        return abs(math.log(other / one)) >= TICKS_APART * self.reach


def view_of(ratios: Iterable[float], ends: Iterable[float], margin: float) -> View:
    """A view that shows every ratio and the margin, and the ends of intervals if they are near."""
    farthest = max((abs(math.log(ratio)) for ratio in ratios), default=0.0)
    needed = max(farthest, MARGINS_SHOWN * math.log1p(margin))
    widest = max((abs(math.log(end)) for end in ends), default=0.0)
    return View(max(needed, min(widest, INTERVAL_ROOM * needed)) * ROOM)


def _label(ratio: float) -> str:
    """As the judge says a change, without a decimal that is zero."""
    return "0" if ratio == 1 else change(ratio).replace(".0", "")
