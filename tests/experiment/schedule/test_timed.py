"""A time becomes a design: measured scatter and costs decide windows and blocks."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from dbdyno.experiment.schedule.timed import begun, chosen, chosen_by, question_of, questions_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import BLOCKS_TIMED, ChosenDesign, DesignPlan, Plan, TrialPlan, cells
from dbdyno.plan.settings import SettingsPlan
from dbdyno.stats.design import FIRST_WINDOW_S, Costs, Question, Scatter, scatter_of
from dbdyno.store.resolved import with_chosen
from support import making
from support.making import A, B

COSTS = Costs(4.0, 1.5)


def plan_of(time_s: float, threads: tuple[int, ...] = (8,)) -> Plan:
    design = DesignPlan.model_validate({"time_s": time_s})
    made = making.plan(threads=threads)
    return made.model_copy(update={"design": design, "trial": TrialPlan()})


def design_of(scatter: Scatter, time_s: float = 600) -> ChosenDesign:
    return chosen_by(begun(plan_of(time_s)), scatter, COSTS)


def test_where_starts_scatter_windows_are_short_and_blocks_many() -> None:
    starts = design_of(Scatter(start=0.10, second=0.01))
    seconds = design_of(Scatter(start=0.005, second=0.30))
    assert starts.window_s == FIRST_WINDOW_S
    assert seconds.window_s >= 1.5 * FIRST_WINDOW_S
    assert starts.blocks > 1.2 * seconds.blocks


@pytest.mark.parametrize("time_s", [120, 300, 1800])
def test_the_blocks_fill_the_time_and_no_more(time_s: float) -> None:
    plan = begun(plan_of(time_s, threads=(1, 8)))
    found = chosen_by(plan, Scatter(0.03, 0.1), COSTS)
    first_s = 2 * (4 * (plan.trial.warmup_s + plan.trial.window_s) + 2 * (4.0 + 1.5))
    takes_s = first_s + (found.blocks - 2) * found.block_s
    assert time_s - found.block_s < takes_s <= time_s
    assert found.block_s == pytest.approx(4 * (found.warmup_s + found.window_s) + 2 * (4.0 + 1.5))


def test_the_chosen_window_is_the_best_of_all() -> None:
    """Tried against every other window: the interval of ln(B/A) from the blocks that then fit."""
    scatter = Scatter(0.044, 0.13)
    plan = begun(plan_of(900))
    found = chosen_by(plan, scatter, COSTS)

    def deviation(window_s: float) -> float:
        block_s = 2 * (plan.trial.warmup_s + window_s + 4.0)
        blocks = int(900 / block_s)
        return math.sqrt(2 * scatter.variance(window_s) / blocks)

    best = min(deviation(window_s) for window_s in np.arange(2, 60, 0.5))
    assert deviation(found.window_s) < 1.05 * best


def test_much_time_makes_windows_long_before_it_makes_blocks_countless() -> None:
    found = design_of(Scatter(0.02, 0.1), time_s=36_000)
    assert found.blocks == BLOCKS_TIMED
    assert found.window_s > 300


def test_a_short_time_has_room_for_the_three_blocks_of_a_verdict() -> None:
    plan = begun(plan_of(60, threads=(1, 8)))
    load_s = 3 * 4 * (plan.trial.warmup_s + plan.trial.window_s)
    assert load_s < 60
    assert chosen_by(plan, Scatter(0.03, 0.1), COSTS).blocks == 3


def test_scatter_is_found_again() -> None:
    random = np.random.default_rng(3)
    arms = []
    for _ in range(300):
        starts = random.normal(0, 0.05, 2)
        arms.append([np.exp(start + random.normal(0, 0.10, 12)) for start in starts])
    found = scatter_of(arms)
    assert found.second == pytest.approx(0.10, rel=0.1)
    assert found.start == pytest.approx(0.05, rel=0.1)


def test_seconds_that_hang_together_count_as_fewer() -> None:
    random = np.random.default_rng(4)
    steps = random.normal(0, 0.1, (200, 41))
    alike = 1 + (steps[:, 1:] + steps[:, :-1]) / math.sqrt(2)
    assert scatter_of([[rates] for rates in alike]).second == pytest.approx(0.14, rel=0.1)


BEGIN = datetime(2026, 11, 22, 10, tzinfo=UTC)


def measured(system: str, block: int, position: int, at_s: float, tps: float) -> Measurement:
    made = making.measurement(system, block, tps=tps, window_s=6)
    trial = made.trial.model_copy(update={"position": position})
    at = (BEGIN + timedelta(seconds=at_s)).isoformat("T", "milliseconds")
    return made.model_copy(update={"trial": trial, "started_at": at, "warmup_s": 4.0})


def first_blocks(*at_s: float) -> list[Measurement]:
    """The first two blocks, whose trials began at these times; each takes 10 s."""
    places = ((A, 0, 0), (B, 0, 1), (B, 1, 0), (A, 1, 1))
    return [
        measured(system, block, position, at, 100 + 3 * block)
        for (system, block, position), at in zip(places, at_s, strict=True)
    ]


@pytest.mark.parametrize("first_start_s", [7, 37])
def test_costs_are_read_from_when_trials_began(first_start_s: int) -> None:
    """Each start takes 7 s here, but for a first one that may have waited for the disk; what lies
    between blocks, a load or a pause, is none. What all of it took is no longer left."""
    plan = begun(plan_of(600))
    first = first_blocks(0, 10 + first_start_s, 94, 111)
    found = chosen(plan, first)
    assert found.block_s == pytest.approx(2 * (4 + found.window_s + 7), abs=0.1)
    spent_s = 111 + 10
    assert 600 - found.block_s < spent_s + (found.blocks - 2) * found.block_s <= 600


def test_hours_between_two_trials_are_an_interruption_and_no_time_that_was_spent() -> None:
    plan, at_once = begun(plan_of(600)), chosen(begun(plan_of(600)), first_blocks(0, 17, 34, 51))
    for at_s in ((0, 17, 18_034, 18_051), (0, 17, 34, 18_051), (0, 18_017, 18_034, 18_051)):
        assert chosen(plan, first_blocks(*at_s)) == at_once


def test_a_trial_that_never_began_says_nothing_of_what_a_start_takes() -> None:
    plan, first = begun(plan_of(600)), first_blocks(0, 17, 34, 51)
    never = measured("mysql:9.7.4", 0, 2, 27.0, 100)
    never = never.model_copy(update={"window_s": 0.0, "intervals": (), "failure": "no such key"})
    assert chosen(plan, [*first, never]) == chosen(plan, first)
    last = measured("mysql:9.7.4", 1, 2, 61.0, 100)  # a minute of warm-up was planned for it
    none = {"warmup_s": 60.0, "window_s": 0.0, "intervals": (), "failure": "no such key"}
    assert chosen(plan, [*first, last.model_copy(update=none)]) == chosen(plan, first)


def test_blocks_that_ran_beside_each_other_show_what_a_start_takes() -> None:
    """Two machines, a block on each: the trials of one begin between those of the other."""
    found = chosen(begun(plan_of(600)), first_blocks(0, 17, 0.5, 17.5))
    assert found.block_s == pytest.approx(2 * (4 + found.window_s + 7), abs=0.1)


def test_machines_beside_each_other_run_as_many_times_the_blocks() -> None:
    plan, scatter = plan_of(300), Scatter(start=0.10, second=0.01)
    assert [begun(plan, machines).design.blocks for machines in (1, 3, 9)] == [7, 21, 40]
    alone, three, nine = (
        chosen_by(begun(plan), scatter, COSTS, 30.0, machines) for machines in (1, 3, 9)
    )
    assert alone.block_s == three.block_s == 2 * (4 + 10 + 4)
    assert (alone.blocks, three.blocks) == (2 + 7, 2 + 3 * 7)
    assert nine.blocks == BLOCKS_TIMED
    assert nine.window_s > three.window_s


def test_what_another_machine_takes_for_its_set_up_is_no_time_that_was_spent() -> None:
    plan, late = begun(plan_of(600)), first_blocks(0, 17, 87, 104)
    others = [making.changed(one, machine="b" * one.trial.block) for one in late]
    assert chosen(plan, others) == chosen(plan, first_blocks(0, 17, 27, 44))
    assert chosen(plan, others).blocks > chosen(plan, late).blocks


def test_what_was_chosen_was_not_asked_for() -> None:
    plan = plan_of(300)
    found = with_chosen(plan, chosen_by(begun(plan), Scatter(0.03, 0.1), COSTS))
    assert found.hash() == plan.hash()
    assert found.trial != plan.trial
    assert Plan.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    "also",
    [
        {"trial": {"window_s": 30}},
        {"design": {"time_s": 300, "blocks": 5}},
        {"design": {"time_s": 300, "stop": "blocks"}},
        {"load": {"rates": ["400"]}},
    ],
)
def test_a_time_stands_alone(also: dict[str, object]) -> None:
    asked = plan_of(300).model_dump(mode="json", exclude_unset=True) | also
    with pytest.raises(ValueError, match=r"^1 validation error for Plan\n  Value error, design: "):
        Plan.model_validate(asked)


@pytest.mark.parametrize(
    ("systems", "threads", "question"),
    [
        (1, (1, 8, 64), Question(3)),
        (2, (1, 8, 64), Question(2, 3)),
        (1, (1, 2, 4, 8, 16), Question(1, 5)),
    ],
)
def test_the_question_is_that_of_a_single_comparison(
    systems: int, threads: tuple[int, ...], question: Question
) -> None:
    two = SettingsPlan(durability=("double-1", "0/2"))
    plan = making.plan(systems=(A, B)[:systems], threads=threads, settings=two)
    assert question_of(plan, questions_of(plan, cells(plan))) == question
