"""What a claim about the method is: a sentence, its limits, and the experiments that try it.

A share's standard error follows from its count, so the number of experiments decides how sharply a
claim is tried: a small run in the tests finds what is plainly wrong, a full one what is off by one
in two hundred. See `method_validation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from validation.noise import Numbers

SLACK: Final = 2.0
"""Standard errors by which chance may move what was seen beyond a target."""


@dataclass(frozen=True)
class Seen:
    """What the experiments gave.

    Attributes:
        value: a share, or a bias as a share of the truth.
        error: its standard error.
        count: experiments behind it.
    """

    value: float
    error: float
    count: int


class Limits(NamedTuple):
    """Limits of a value; None for none on that side."""

    low: float | None
    high: float | None

    def hold(self, seen: Seen, errors: float = SLACK) -> bool:
        """Whether the value lies within, or beyond by that many standard errors."""
        slack = errors * seen.error
        above = self.low is None or seen.value >= self.low - slack
        return above and (self.high is None or seen.value <= self.high + slack)


@dataclass(frozen=True)
class Claim:
    """A sentence about the method with the limits that it promises.

    Attributes:
        words: the claim and its case, "a true difference of 5 % is detected: 12 blocks".
        low, high: the limits of the value; None for none on that side.
        full: experiments of a full run.
        run: runs as many experiments as it is told and says what they gave.
    """

    words: str
    low: float | None
    high: float | None
    full: int
    run: Callable[[int], Seen]

    def seen(self, share: float) -> Seen:
        """Runs that share of the full number of experiments, 20 at least."""
        return self.run(max(20, round(self.full * share)))

    def holds(self, seen: Seen, errors: float = SLACK) -> bool:
        """Whether the value lies within the limits, or beyond them by that many standard errors."""
        return Limits(self.low, self.high).hold(seen, errors)

    @property
    def subject(self) -> str:
        """The claim without its case."""
        return self.words.partition(": ")[0]

    def excess(self, seen: Seen) -> float:
        """How far the value lies beyond the nearer limit; negative within the limits."""
        low = -math.inf if self.low is None else self.low - seen.value
        return max(low, -math.inf if self.high is None else seen.value - self.high)

    @property
    def target(self) -> str:
        """The limits in words."""
        if self.low is None:
            return f"≤ {percent(self.high or 0.0)}"
        if self.high is None:
            return f"≥ {percent(self.low)}"
        return f"{self.low * 100:g} to {percent(self.high)}"


def percent(share: float) -> str:
    """A share with as many digits as it was given."""
    return f"{share * 100:g} %"


def told(seen: Seen) -> str:
    """The value with its standard error, in percent."""
    return f"{seen.value * 100:.2f} % ± {seen.error * 100:.2f}"


def share_of(hits: Numbers | list[bool]) -> Seen:
    """How often it was so."""
    count = len(hits)
    value = float(np.mean(hits))
    # An estimate of 0 or 1 has an error too: that of one case more.
    spread = min(max(value, 1 / count), 1 - 1 / count)
    return Seen(value, math.sqrt(spread * (1 - spread) / count), count)


def mean_of(shares: Sequence[float]) -> Seen:
    """The mean of shares, each from an experiment."""
    count = len(shares)
    # Shares that are all alike have an error too: that of one case more.
    error = max(float(np.std(shares)) / math.sqrt(count), share_of([True] * count).error)
    return Seen(float(np.mean(shares)), error, count)
