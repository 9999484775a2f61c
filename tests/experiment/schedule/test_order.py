"""The order of trials is drawn, published by its seed, and never changes for a seed."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.experiment.schedule.order import (
    arms,
    cell_order,
    setting_order,
    system_order,
    trials_of,
)
from dbdyno.experiment.schedule.schedule import TrialQueue
from dbdyno.plan.plan import cells
from dbdyno.plan.settings import SettingsPlan, setting_names
from support import making

A, B = making.A, making.B


def plan(**facts):
    return making.plan(**{"threads": (1, 8, 32), "blocks": 4, **facts})


def seeded(seed, **facts):
    return plan(**facts).model_copy(update={"seed": seed})


def test_the_order_of_a_seed_is_what_it_was_when_this_was_written():
    trials = trials_of(seeded(20261121), "r")
    rows = [f"{t.block} {t.system} {t.cell.threads} {t.seed}" for t in trials if t.position == 0]
    assert rows == GOLDEN


def test_every_trial_occurs_once_and_is_numbered():
    trials = trials_of(plan(workloads=("oltp_read_write", "oltp_read_only")), "r")
    assert len(trials) == len({t.key for t in trials}) == 4 * 2 * 6
    assert [t.sequence for t in trials] == list(range(len(trials)))
    assert {t.run_id for t in trials} == {"r"}


def test_both_orders_are_drawn_about_equally_often():
    firsts = [system_order(seeded(seed), 0)[0] for seed in range(1000)]
    assert 430 < firsts.count(A) < 570  # 4.4 standard deviations


def test_orders_of_couples_are_drawn_independently_within_a_plan():
    firsts = [system_order(plan(), 2 * couple)[0] for couple in range(1000)]
    same = sum(one == other for one, other in pairwise(firsts))
    assert 430 < firsts.count(A) < 570
    assert 430 < same < 570


@given(st.integers(0, 2**63 - 1), st.integers(0, 500))
def test_the_second_block_of_a_couple_mirrors_the_first(seed, couple):
    chosen = seeded(seed, systems=("a", "b", "c"))
    assert system_order(chosen, 2 * couple + 1) == system_order(chosen, 2 * couple)[::-1]


def test_all_orders_of_three_systems_and_of_a_ladder_are_drawn():
    chosen = plan(systems=("a", "b", "c"))
    assert len({tuple(system_order(chosen, 2 * block)) for block in range(100)}) == 6
    assert len({tuple(cell_order(chosen, block)) for block in range(100)}) == 6


def test_the_ladder_and_the_seeds_are_the_same_in_every_arm_of_a_block():
    trials = trials_of(plan(), "r")
    for block in range(4):
        one, other = (
            [(t.cell, t.seed) for t in trials if t.block == block and t.system == system]
            for system in (A, B)
        )
        assert one == other
        assert sorted(c.key for c, _ in one) == sorted(c.key for c in cells(plan()))


def test_seeds_differ_between_blocks_and_cells_and_fit_63_bits():
    trials = trials_of(plan(), "r")
    assert len({t.seed for t in trials}) == 4 * 3
    assert all(0 <= t.seed < 2**63 for t in trials)


def test_a_plan_with_more_blocks_begins_as_the_shorter_one():
    assert trials_of(plan(blocks=6), "r")[:24] == trials_of(plan(blocks=4), "r")


def test_arms_are_the_trials_of_one_system_in_one_block():
    trials = trials_of(plan(), "r")
    cut = arms(trials)
    assert [t for arm in cut for t in arm] == trials
    assert len(cut) == 8
    assert all(len({(t.block, t.system) for t in arm}) == 1 for arm in cut)


GOLDEN = [
    "0 mysql:8.0.15 1 2934491926284453996",
    "0 mysql:8.0.15 32 2139900311340397998",
    "0 mysql:8.0.15 8 2468262180651673355",
    "1 mysql:5.7.22 32 8658852455719148976",
    "1 mysql:5.7.22 1 5992448358510455412",
    "1 mysql:5.7.22 8 6407573597648622664",
    "2 mysql:5.7.22 32 5609078385790969227",
    "2 mysql:5.7.22 8 3042380855188273263",
    "2 mysql:5.7.22 1 1013494703332827710",
    "3 mysql:8.0.15 8 2461593068434739904",
    "3 mysql:8.0.15 1 4696016238949974322",
    "3 mysql:8.0.15 32 1447039180309473002",
]


def with_settings(**facts):
    axes = SettingsPlan(durability=("double-1", "0/2"), buffer_pool=("25%", "50%"))
    return plan(**facts).model_copy(update={"settings": axes})


def test_each_setting_is_an_arm_of_each_system_next_to_the_other_systems():
    chosen = with_settings()
    cut = arms(trials_of(chosen, "r"))
    assert len(cut) == 4 * 4 * 2
    assert all(len(arm) == 3 for arm in cut)
    for first, second in zip(cut[::2], cut[1::2], strict=True):
        assert first[0].cell.setting == second[0].cell.setting
        assert {first[0].system, second[0].system} == {A, B}
        assert [t.cell for t in first] == [t.cell for t in second]
        assert [t.seed for t in first] == [t.seed for t in second]
    positions = [arm[0].position for arm in cut if arm[0].block == 0]
    assert positions == list(range(8))


def test_settings_are_drawn_for_a_block_and_mirrored_in_the_next():
    chosen = with_settings(blocks=40)
    drawn = [setting_order(chosen, block) for block in range(40)]
    assert all(odd == even[::-1] for even, odd in zip(drawn[::2], drawn[1::2], strict=True))
    assert len({tuple(order) for order in drawn}) > 12


def test_the_systems_order_is_drawn_for_each_setting_by_itself():
    chosen = with_settings()
    a, b, *_ = setting_names(chosen.settings)
    firsts = [
        [system_order(chosen, 2 * couple, setting)[0] for couple in range(400)]
        for setting in (a, b)
    ]
    same = sum(one == other for one, other in zip(*firsts, strict=True))
    assert 150 < same < 250


def test_each_cell_has_each_place_in_its_share_of_blocks():
    ladders = [cell_order(plan(), block) for block in range(3000)]
    for place in range(3):
        threads = [ladder[place].threads for ladder in ladders]
        assert all(900 < threads.count(one) < 1100 for one in (1, 8, 32))  # 3.9 deviations
    assert len({tuple(ladder) for ladder in ladders}) == 6


# Trials are counted over the whole plan.


def test_trials_are_counted_over_the_whole_plan():
    plan = making.plan(blocks=3)
    left = trials_of(plan, "r")[4:]
    queue = TrialQueue(plan, left, total=6)
    assert queue.number == 5
    queue.ended(left[0])
    assert queue.number == 6
