"""Does a robust centre serve better than the mean where a start now and then goes badly?

The ln ratios of one cell, 5 or 20 % from block to block, with a start in twenty, in four or in two
30 % slower: on either side, so that the truth is 0, or on the second system alone, where the mean's
truth is not that of a usual start. Three intervals at 95 %: Student's t of the mean, Yuen's of
the mean without the least and greatest fifth (Yuen 1974), and that of a likelihood of Student's t
with 4 degrees of freedom (the posterior with a flat prior of the location and of ln scale, which
holds in 95 % where the noise is just that).

    .venv/bin/python -m validation.robust --experiments 4000
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Final

import numpy as np
from validation.noise import Numbers

from dbdyno.judge.interval import FIXED, interval
from dbdyno.stats.distributions import student_quantile

BLOCKS: Final = (5, 8, 12)
BAD_SHARES: Final = {"one in 20": 0.05, "one in 4": 0.25, "one in 2": 0.5}
BAD: Final = math.log(0.7)
CELL_SDS: Final = (0.05, 0.2)
TRIMMED: Final = 0.2
FREEDOM: Final = 4
LOCATIONS: Final = np.linspace(-1, 1, 241)
"""Points of the location, in half ranges of the search."""
LN_SCALES: Final = np.linspace(-3.5, 2.0, 45)
"""Points of ln scale, from that of the blocks' standard deviation."""
Ends = tuple[Numbers, Numbers]


def of_mean(samples: Numbers) -> Ends:
    """Student's t of the mean, as the judge has it."""
    found = interval(samples, FIXED)
    return found.mean - found.half, found.mean + found.half


def of_trimmed_mean(samples: Numbers) -> Ends:
    """Yuen's interval: squares of the sample with its ends drawn in to the outermost kept."""
    blocks = samples.shape[1]
    cut = int(TRIMMED * blocks)
    ordered = np.sort(samples, axis=1)
    kept = ordered[:, cut : blocks - cut]
    drawn_in = np.clip(ordered, kept[:, :1], kept[:, -1:])
    left = blocks - 2 * cut
    error = np.sqrt(((drawn_in - drawn_in.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    error /= math.sqrt(left * (left - 1))
    half = student_quantile(0.975, left - 1) * error
    centre = kept.mean(axis=1)
    return centre - half, centre + half


def of_t_likelihood(samples: Numbers) -> Ends:
    """The 95 % in the middle of the location's posterior, its scale integrated out."""
    ends = [_posterior_ends(sample) for sample in samples]
    low, high = zip(*ends, strict=True)
    return np.array(low), np.array(high)


def _posterior_ends(sample: Numbers) -> tuple[float, float]:
    centre, spread = float(np.median(sample)), float(sample.std(ddof=1))
    reach = 12 / math.sqrt(len(sample)) * spread
    # Points lie closer to each other near the centre.
    location = centre + reach * np.sign(LOCATIONS) * np.abs(LOCATIONS) ** 1.7
    scale = spread * np.exp(LN_SCALES)[:, None, None]
    squares = ((sample - location[:, None]) / scale) ** 2
    logs = -(FREEDOM + 1) / 2 * np.log1p(squares / FREEDOM) - np.log(scale)
    joint = logs.sum(axis=2)
    density = np.exp(joint - joint.max()).sum(axis=0)
    steps = np.diff(location) * (density[1:] + density[:-1]) / 2
    below = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()
    low, high = np.interp([0.025, 0.975], below, location)
    return float(low), float(high)


CENTRES: Final = {
    "mean": of_mean,
    "20 % trimmed": of_trimmed_mean,
    "t likelihood": of_t_likelihood,
}


def draw(
    random: np.random.Generator, shape: tuple[int, int], sd: float, share: float, on_both: bool
) -> Numbers:
    """Log ratios of (experiment, block) with that share of bad starts."""
    is_bad = random.random((2, *shape)) < share
    shift = BAD * (is_bad[1] * 1.0 - is_bad[0] * on_both)
    return np.asarray(sd * random.standard_normal(shape) + shift)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--experiments", type=int, default=4000)
    experiments = parser.parse_args().experiments
    names = " | ".join(f"{name}: holds the mean, a usual start | width" for name in CENTRES)
    print(f"| bad starts | on | noise | blocks | {names} |")
    print("| --- | --- | ---: | ---: |" + " ---: | ---: |" * len(CENTRES))
    for place, (words, share) in enumerate({"none": 0.0, **BAD_SHARES}.items()):
        for on_both in (True, False) if share else (True,):
            for sd in CELL_SDS:
                for blocks in BLOCKS:
                    random = np.random.default_rng([26, place, on_both, round(sd * 100), blocks])
                    samples = draw(random, (experiments, blocks), sd, share, on_both)
                    truth = 0.0 if on_both else share * BAD
                    side = "either side" if on_both else "one side"
                    columns = " | ".join(_columns(samples, truth))
                    print(f"| {words} | {side} | {sd:.0%} | {blocks} | {columns} |", flush=True)
    return 0


def _columns(samples: Numbers, truth: float) -> list[str]:
    """Of each centre, how often it holds each truth, and its width against the mean's."""
    columns, usual = [], 0.0
    for of_centre in CENTRES.values():
        low, high = of_centre(samples)
        holds = (np.mean((low <= centre) & (centre <= high)) for centre in (truth, 0.0))
        width = float(np.mean(high - low))
        usual = usual or width
        columns += [", ".join(f"{share:.1%}" for share in holds), f"{width / usual:.2f}"]
    return columns


if __name__ == "__main__":
    sys.exit(main())
