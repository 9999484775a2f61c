"""When a run until decided may end, asked of whole measurements."""

from __future__ import annotations

import pytest

from dbdyno.judge.judgement import enough
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from support import making
from support.making import A, B

CLEAR = (0.77, 0.771, 0.769, 0.77)
OPEN = (1.0, 1.05, 0.95, 1.02)


def plan(stop: str = "decided", **facts: object) -> Plan:
    made = making.plan(blocks=12, **facts)
    return made.model_copy(update={"design": made.design.model_copy(update={"stop": stop})})


def void(trials: list[Measurement]) -> list[Measurement]:
    return [
        making.changed(one, engine=one.engine.model_copy(update={"cpu_share_max": 0.9}))
        for one in trials
    ]


@pytest.mark.parametrize(
    ("ratios", "ends"), [(CLEAR, True), (CLEAR[:2], False), (OPEN, False), ((), False)]
)
def test_a_run_ends_when_its_cell_is_decided_and_three_blocks_are_there(ratios, ends):
    assert enough(making.pairs(ratios), plan()) is ends


def test_a_design_of_fixed_blocks_never_ends_early():
    assert enough(making.pairs(CLEAR), plan("blocks")) is False


def test_every_cell_must_be_decided():
    both = plan(threads=(1, 8))
    decided = making.pairs(CLEAR, threads=1)
    assert enough(decided + making.pairs(OPEN, threads=8), both) is False
    assert enough(decided + making.pairs(CLEAR, threads=8), both) is True


def test_a_cell_that_is_void_each_time_does_not_hold_the_others_up():
    both = plan(threads=(1, 8))
    decided = making.pairs(CLEAR, threads=1)
    never = void(making.pairs(CLEAR, threads=8))
    assert enough(decided + never, both) is True
    sometimes = [*never[:4], *making.pairs(CLEAR, threads=8)[4:]]
    assert enough(decided + sometimes, both) is False


def test_a_tie_ends_the_run_once_it_is_told():
    tie = tuple(1 + 0.0005 * (-1) ** block for block in range(8))
    assert enough(making.pairs(tie), plan()) is True
    assert enough(making.pairs(tie[:3]), plan(systems=(A, B), margin=0.001)) is False
