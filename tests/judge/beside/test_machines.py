"""How much machines differ is found as it was planted, and another machine's interval holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.machines import another, components
from dbdyno.judge.judgement import judge
from dbdyno.stats.distributions import student_quantile
from support import making
from support.making import A, B


def run(ratios: dict[str, list[float]]):
    made, block = [], 0
    for machine, found in ratios.items():
        for ratio in found:
            for system, tps in ((A, 1000.0), (B, 1000.0 * ratio)):
                one = making.measurement(system, block, tps=tps, sequence=len(made))
                made.append(one.model_copy(update={"machine": machine}))
            block += 1
    return made, making.plan(blocks=block)


def test_a_run_on_one_machine_says_nothing_of_machines():
    made, plan = run({"": [1.1] * 5})
    assert judge(made, plan).machines == ()
    assert audit(made, plan).sound


def test_each_machine_is_one_number_for_another_machine():
    made, plan = run({"a": [1.10, 1.10], "b": [1.20, 1.20, 1.20], "c": [1.30]})
    (spread,) = judge(made, plan).machines
    assert [(one.machine, one.blocks) for one in spread.machines] == [("a", 2), ("b", 3), ("c", 1)]
    logs = [math.log(ratio) for ratio in (1.10, 1.20, 1.30)]
    half = student_quantile(0.975, 2) * float(np.std(logs, ddof=1)) * math.sqrt(1 + 1 / 3)
    assert spread.ratio == pytest.approx(math.exp(float(np.mean(logs))), rel=1e-3)
    assert spread.high == pytest.approx(spread.ratio * math.exp(half), rel=1e-3)
    assert spread.differ
    # Blocks of a machine are all alike here: what is above, over the typical size of a group.
    middle = (2 * logs[0] + 3 * logs[1] + logs[2]) / 6
    weighed = zip((2, 3, 1), logs, strict=True)
    above = sum(size * (log - middle) ** 2 for size, log in weighed) / 2
    typical = (6 - (4 + 9 + 1) / 6) / 2
    assert spread.between == pytest.approx(math.sqrt(above / typical), rel=0.01)


def test_components_of_a_known_layout():
    # Two groups of three: means 2 and 5, mean squares 13.5 above and 1 inside, (13.5 - 1) / 3.
    between, differ = components([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert between == pytest.approx(math.sqrt(12.5 / 3))
    assert differ
    assert components([[1.0], [2.0], [4.0]])[1] is None
    assert components([[1.0, 3.0], [1.0, 3.0]]) == (0.0, False)


@pytest.mark.parametrize("between", [0.0, 0.03])
def test_the_interval_holds_for_another_machine_and_alike_ones_are_rarely_told_apart(between):
    draws, machines, blocks, noise, truth = 2000, 4, 3, 0.02, 0.05
    random, hits, apart, found = np.random.default_rng(7), 0, 0, []
    for _ in range(draws):
        of_machine = truth + between * random.standard_normal(machines + 1)
        logs = of_machine[:, None] + noise * random.standard_normal((machines + 1, blocks))
        *known, new = logs.mean(axis=1).tolist()
        low, high = another(known)
        hits += low <= new <= high
        sd, differ = components(logs[:-1].tolist())
        apart += bool(differ)
        found.append(sd**2)
    assert 0.935 <= hits / draws <= 0.965
    if between:
        assert math.sqrt(np.mean(found)) == pytest.approx(between, rel=0.1)
        assert apart / draws > 0.5
    else:
        assert apart / draws <= 0.065


def test_a_machines_ratio_is_that_of_its_blocks():
    made, plan = run({"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0]})
    judged = judge(made, plan)
    assert [one.ratio for one in judged.machines[0].machines] == pytest.approx([1.0, 2.0], rel=1e-3)
