"""A function that costs more is named with its interval; equal builds claim none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from dbdyno.judge.beside.functions import FunctionCost, ranked
from dbdyno.judge.judgement import judge
from support import making
from support.made_profiles import profile, sampled_trials

COSTS_US = {f"f{place}": float(us) for place, us in enumerate(np.geomspace(4, 200, 40))}
DEARER = {**COSTS_US, "f30": COSTS_US["f30"] + 30}


def claimed(
    baseline: Mapping[str, float], system: Mapping[str, float], blocks: int, seed: int
) -> tuple[FunctionCost, ...]:
    random = np.random.default_rng(seed)
    pairs = [(profile(baseline, random), profile(system, random)) for _ in range(blocks)]
    functions, examined = ranked(pairs)
    assert examined == len(COSTS_US)
    return functions


def test_the_planted_function_comes_first_and_its_interval_holds_the_truth() -> None:
    firsts = [claimed(COSTS_US, DEARER, 5, seed)[0] for seed in range(20)]
    assert sum(first.name == "f30" for first in firsts) >= 19
    assert sum(first.low_us <= 30 <= first.high_us for first in firsts) >= 19


@pytest.mark.parametrize("blocks", [3, 5])
def test_equal_builds_claim_no_function(blocks: int) -> None:
    claiming = [seed for seed in range(200) if claimed(COSTS_US, COSTS_US, blocks, seed)]
    assert len(claiming) <= 20, "5 % are 10"


def test_a_function_with_few_samples_claims_no_difference() -> None:
    same = dict.fromkeys("abcdefghij", 2.0)
    below = profile({**same, "rare": 0.0, "often": 0.0})
    above = profile({**same, "rare": 0.2, "often": 20.0})
    functions, examined = ranked([(below, above)] * 3)
    assert [one.name for one in functions] == ["often"]
    assert examined == 12


def test_sampled_trials_give_functions_with_share_and_callers() -> None:
    below, above = profile({"spin": 50.0, "read": 20.0}), profile({"spin": 80.0, "read": 20.0})
    (compared,) = judge(sampled_trials(below, above), making.plan(blocks=3)).functions
    assert (compared.baseline, compared.system) == (making.A, making.B)
    assert (compared.sampler, compared.blocks, compared.examined) == ("perf", 3, 2)
    assert compared.sampler_share == pytest.approx(0.05)
    (spin,) = compared.functions
    assert (spin.name, spin.callers) == ("spin", "execute ← handle_query")
    assert (spin.baseline_us, spin.system_us) == pytest.approx((50, 80))
    assert (spin.difference_us, spin.share) == pytest.approx((30, 1))


def test_two_samplers_or_two_blocks_are_not_compared() -> None:
    costs = {"spin": 50.0, "read": 20.0}
    other = sampled_trials(profile(costs), profile(costs, sampler="gdb"))
    assert judge(other, making.plan(blocks=3)).functions == ()
    few = sampled_trials(profile(costs), profile(costs), blocks=2)
    assert judge(few, making.plan(blocks=3)).functions == ()
    assert judge(making.pairs((0.9,) * 3), making.plan(blocks=3)).functions == ()
