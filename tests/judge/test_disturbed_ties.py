"""A CPU hog beside one arm of two equal systems gets no verdict: simulated, with the truth known.

Equal systems on two busy cores, whose trials differ by 4 % (as measured here), share the CPU with a
hog that runs beside B alone: what it takes is missing from B's rate. The run repeats blocks as the
runner does. Below the plan's limit a hog does bias the ratio; then the verdict must say so.
"""

from __future__ import annotations

import math
from random import Random

import pytest

from dbdyno.judge.judgement import Judgement, judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.disturbance import current, to_repeat
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from support import making
from support.making import A, B

CORES = 2
BLOCKS = 5
TRIAL_SD = 0.04
QUIET = (0.0, 0.023)
"""Others' share of the CPU beside the trials of a quiet machine of two cores, 10 s each."""
PLAN = making.plan(blocks=BLOCKS)
OFF = making.with_parts(PLAN, design={"disturbance_max": 1.0})
RUNS = 30
WINNERS = (Word.BETTER, Word.WORSE)


def trial(random: Random, block: int, system: str, repeat: int, hog: float) -> Measurement:
    """One trial; `hog` is the share of the host's CPU that a hog takes beside it."""
    taken = random.uniform(*QUIET) + hog
    rate = 1000 * (1 - taken) * math.exp(random.gauss(0, TRIAL_SD))
    made = making.measurement(
        system,
        block,
        tps=rate,
        window_s=4,
        warmup_s=0,
        host_cores=CORES,
        server_cpu_s=4 * CORES * 0.6 * (1 - taken),
        other_cpu=CORES * taken,
    )
    place = made.trial.model_copy(update={"repeat": repeat, "position": int(system == B)})
    return making.changed(made, trial=place)


def run(random: Random, plan: Plan, hogs: list[float]) -> tuple[list[Measurement], Judgement]:
    """A whole run; `hogs` says what is taken beside B, one entry for each block measured."""
    stored: list[Measurement] = []
    left = iter(hogs)
    for block in range(BLOCKS):
        repeat = 0
        while True:
            hog = next(left, 0.0)
            stored += [trial(random, block, A, repeat, 0.0), trial(random, block, B, repeat, hog)]
            places = to_repeat(stored, BLOCKS, plan.design.disturbance_max)
            if block not in {place.block for place in places}:
                break
            repeat += 1
    return stored, judge(stored, plan)


def words(seeds: int, plan: Plan, hogs: list[float]) -> list[tuple[Word, bool]]:
    """Of each run its word, and whether it says that the arms were unevenly disturbed."""
    found = []
    for seed in range(seeds):
        _, judged = run(Random(seed), plan, hogs)
        (verdict,) = judged.verdicts
        said = any("uneven-disturbance" in one.values.get("checks", {}) for one in verdict.reasons)
        found.append((verdict.word, said))
    return found


@pytest.mark.parametrize("share", [0.14, 0.24, 0.45])
def test_a_hog_beside_one_arm_throughout_leaves_no_verdict(share: float) -> None:
    found = words(8, PLAN, [share] * 99)
    assert {word for word, _ in found} == {Word.VOID}


@pytest.mark.parametrize("share", [0.14, 0.24, 0.45])
def test_the_same_hog_gets_no_winner_where_disturbed_trials_count(share: float) -> None:
    found = words(12, OFF, [share] * 99)
    assert not any(word in WINNERS for word, _ in found), "the interval allows for the CPU taken"
    assert all(said for _, said in found)


def test_a_hog_in_two_of_seven_blocks_costs_two_repeats_and_nothing_else() -> None:
    """At most 5 % of ties get a winner, as without a hog; 30 runs allow four standard errors."""
    found = []
    for seed in range(RUNS):
        stored, judged = run(Random(seed), PLAN, [0.3, 0.0, 0.0, 0.3])
        assert len(stored) == 2 * (BLOCKS + 2)
        assert len(current(stored)) == 2 * BLOCKS
        (verdict,) = judged.verdicts
        assert verdict.estimate.blocks == BLOCKS
        found.append(verdict.word)
    assert sum(word in WINNERS for word in found) <= RUNS * (
        0.05 + 4 * math.sqrt(0.05 * 0.95 / RUNS)
    )


def test_a_hog_below_the_limit_never_wins_without_being_named() -> None:
    """It does bias the ratio: that is why the verdict carries a doubt."""
    found = words(20, PLAN, [0.075] * 99)
    assert all(said for word, said in found if word in WINNERS)
