"""Claims about windows in which systems still warm up: what is found, and what it costs the others.

The pair is that of a review: two systems, equal once they are warm, that begin 40 % below their
rate and approach it with time constants of 5 and 15 s. Noise is that of `validation.noise`, and as
large as two runs of one server on a small virtual machine had it: 4.4 % between starts, 14 %
between seconds, which hardly resemble each other there.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.verdict import MARGIN
from validation.noise import CORRELATION, RESTART_SD, SECOND_SD, Numbers, seconds

from dbdyno.judge.estimate import Unsettled
from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.verdict import Word, word_of
from dbdyno.stats.settling import Settling, settling

FALSE: Final = (Word.BETTER, Word.WORSE)
AMPLITUDE: Final = 0.4
BEGINNING: Final = (1.40, 1.18, 1.17, 0.91)
"""What MySQL 8.0.15 with 8 threads made of its later rate in its first seconds, over 16 starts."""


class Noise(NamedTuple):
    """Standard deviations between starts and between seconds, and the seconds' correlation."""

    words: str
    start: float
    second: float
    correlation: float


USUAL: Final = Noise("", RESTART_SD, SECOND_SD, CORRELATION)
LARGE: Final = Noise(", noise of 14 %", 0.044, 0.14, 0.0)
QUIET: Final = Noise(", noise of 1.5 %", 0.008, 0.015, 0.0)
ALIKE: Final = Noise(", noise of 14 % correlated by 0.3", 0.03, 0.14, 0.3)


class Times(NamedTuple):
    """Seconds of warm-up and window, and blocks."""

    warmup_s: int
    window_s: int
    blocks: int

    @property
    def words(self) -> str:
        """As a row of the table says it."""
        return f"{self.warmup_s} + {self.window_s} s, {self.blocks} blocks"


USUAL_TIMES: Final = Times(15, 60, 5)
SHORT: Final = Times(4, 6, 5)
"""About what a run with a time chooses."""


def loads(
    random: np.random.Generator,
    times: Times,
    noise: Noise,
    constants_s: tuple[float, float] | None = None,
    log_ratio: float = 0.0,
) -> Numbers:
    """Rates of (system, block, second of the load); without time constants they are even."""
    length = times.warmup_s + times.window_s
    shape = np.ones((2, length))
    if constants_s:
        second = np.arange(length) + 0.5
        shape -= AMPLITUDE * np.exp(-second / np.array(constants_s)[:, None])
    starts = random.normal(0, noise.start, (2, times.blocks, 1))
    starts[1] += log_ratio
    made = seconds(random, (2, times.blocks, length), noise.correlation) * noise.second / SECOND_SD
    return np.asarray(np.exp(starts + made) * shape[:, None, :])


def word_for(made: Numbers, times: Times, found: Settling | None) -> Word:
    """The word for these loads, with what was found of them."""
    cut_s = found.cut_s if found else 0
    logs = np.log(made[:, :, times.warmup_s + cut_s :].mean(axis=2))
    seen = interval(logs[1] - logs[0], FIXED)
    low, high = float(np.exp(seen.mean - seen.half)), float(np.exp(seen.mean + seen.half))
    if found:
        low, high = Unsettled.of(*found.left, found.until_s).widened(low, high)
    return word_of(low, high, MARGIN)[0]


def called_different(
    times: Times, noise: Noise, constants_s: tuple[float, float] | None, experiments: int
) -> Seen:
    """How often a pair without a difference, once it is warm, gets a winner."""
    random = np.random.default_rng([21, *times, round(noise.second * 100)])
    words = []
    for _ in range(experiments):
        made = loads(random, times, noise, constants_s)
        words.append(word_for(made, times, settling(list(made), times.warmup_s)))
    return share_of([word in FALSE for word in words])


def even_but_taken(times: Times, noise: Noise, experiments: int, first_second: float = 1.0) -> Seen:
    """How often even loads are taken for unsteady ones, or such as begin with a slower second."""
    random = np.random.default_rng([22, *times, round(noise.second * 100)])
    found = []
    for _ in range(experiments):
        made = loads(random, times, noise)
        made[:, :, 0] *= first_second
        found.append(settling(list(made), times.warmup_s) is not None)
    return share_of(found)


def still_found(times: Times, noise: Noise, experiments: int) -> Seen:
    """Of the experiments with a true 5 % that find it, those that do so with this rule as well."""
    random = np.random.default_rng([23, *times, round(noise.second * 100)])
    kept = []
    while len(kept) < experiments:
        made = loads(random, times, noise, log_ratio=math.log1p(0.05))
        if word_for(made, times, None) is Word.BETTER:
            found = settling(list(made), times.warmup_s)
            kept.append(word_for(made, times, found) is Word.BETTER)
    return share_of(kept)


def found_in_spite(times: Times, noise: Noise, experiments: int) -> Seen:
    """How often a true 5 % is found between systems that begin unevenly."""
    random = np.random.default_rng([24, *times, round(noise.second * 100)])
    words = []
    for _ in range(experiments):
        made = loads(random, times, noise, log_ratio=math.log1p(0.05))
        made[:, :, : len(BEGINNING)] *= BEGINNING
        words.append(word_for(made, times, settling(list(made), times.warmup_s)))
    return share_of([word is Word.BETTER for word in words])


REVIEWED: Final = (5.0, 15.0)
SHORT_TIMES: Final = tuple(Times(4, 10, blocks) for blocks in (3, 5, 10))
LATER: Final = Times(4, 10, 8)
"""About what a run of ten minutes chooses for two cells."""
PAIRS: Final = (
    *(
        (times, noise, REVIEWED)
        for noise in (USUAL, LARGE)
        for times in (USUAL_TIMES, *SHORT_TIMES)
    ),
    (SHORT_TIMES[1], ALIKE, REVIEWED),
    (SHORT_TIMES[1], USUAL, (2.0, 8.0)),
    (USUAL_TIMES, USUAL, (5.0, 30.0)),
    (SHORT_TIMES[1], USUAL, (5.0, 30.0)),
    (SHORT_TIMES[1], USUAL, (10.0, 40.0)),
)

CLAIMS: Final = (
    *(
        Claim(
            f"systems equal once warm are called different: after {first:g} and {second:g} s, "
            f"{times.words}{noise.words}",
            *(None, 0.06, 2000, partial(called_different, times, noise, (first, second))),
        )
        for times, noise, (first, second) in PAIRS
    ),
    *(
        Claim(
            "equal systems with steady throughput are called different: "
            f"{times.words}{noise.words}",
            *(None, 0.055, 4000, partial(called_different, times, noise, None)),
        )
        for noise in (USUAL, LARGE)
        for times in (USUAL_TIMES, SHORT_TIMES[0])
    ),
    *(
        Claim(
            f"steady throughput is taken for a warm-up: {times.words}{noise.words}",
            *(None, 0.02, 2000, partial(even_but_taken, times, noise)),
        )
        for noise in (USUAL, ALIKE)
        for times in (USUAL_TIMES, SHORT_TIMES[0], Times(2, 2, 5), Times(15, 300, 5))
    ),
    *(
        Claim(
            f"steady throughput is taken for a warm-up: first second half as fast, "
            f"{SHORT.words}{n.words}",
            *(None, 0.02, 2000, partial(even_but_taken, SHORT, n, first_second=0.5)),
        )
        for n in (USUAL, LARGE)
    ),
    *(
        Claim(
            "a detected difference of 5 % is detected with extended intervals too: "
            f"{times.words}{noise.words}",
            *(0.9, None, 1000, partial(still_found, times, noise)),
        )
        for noise in (USUAL, LARGE)
        for times in (USUAL_TIMES, SHORT_TIMES[1])
    ),
    Claim(
        "a true difference of 5 % is detected though starts are uneven: "
        f"{LATER.words}{QUIET.words}",
        *(0.9, None, 1000, partial(found_in_spite, LATER, QUIET)),
    ),
)
