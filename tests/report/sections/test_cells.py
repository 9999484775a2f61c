"""All cells together, and the sections on open loops: limit, curve, pilot."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.plan.load import LoadPlan
from dbdyno.report.formats import markdown
from dbdyno.report.parts import Entries, Items, Section, Table
from dbdyno.report.sections.cells import grid, pilot, within_limit
from dbdyno.report.story import story_of
from support import making
from support.made_run import Run, of_workloads, run


def ladder(ratios: dict[int, float], blocks: int = 5) -> Run:
    random = np.random.default_rng(5)
    trials = [
        trial
        for threads, ratio in ratios.items()
        for trial in making.pairs(
            tuple(ratio * float(np.exp(random.normal(0, 0.002))) for _ in range(blocks)),
            threads=threads,
            tps=1000.0 - threads,
        )
    ]
    return run(making.plan(threads=tuple(ratios), blocks=blocks), trials)


def tables(section: Section) -> list[Table]:
    return [part for part in section.parts if isinstance(part, Table)]


def lines(made: Run) -> list[str]:
    parts = grid(made.judgement).parts
    return [line for part in parts if isinstance(part, Items) for line in part.items]


def test_a_crossover_says_between_which_levels_and_other_ladders_have_no_line() -> None:
    assert lines(ladder({1: 1.2, 8: 1.0, 64: 0.8})) == [
        f"oltp_read_write: {making.B} is faster than {making.A} at load level 1 and slower at 64, "
        "so the order changes between 1 and 64 threads."
    ]
    assert lines(ladder({1: 1.2, 8: 1.1})) == []


@pytest.mark.parametrize(("sign", "course"), [(1, "slower"), (-1, "faster")])
def test_a_curve_that_crosses_says_at_how_many_threads(sign: int, course: str) -> None:
    rising = {n: math.exp(sign * (level - 2.5) / 10) for level, n in enumerate(LEVELS)}
    (line,) = lines(ladder(rising))
    assert f"{making.B} changes from {course} than {making.A} to " in line
    assert re.search(r" at 5\.[67] threads \[5\.\d, 5\.\d\]\.$", line)


LEVELS = (1, 2, 4, 8, 16, 32)


def test_the_course_to_the_highest_level_is_told_of_every_system() -> None:
    fell = ladder({1: 1.0, 8: 1.0, 64: 0.8})
    course = tables(grid(fell.judgement))[-1]
    assert [row[:4] for row in course.rows] == [
        (making.A, "oltp_read_write", "8", "64"),
        (making.B, "oltp_read_write", "8", "64"),
    ]
    assert [row[5] for row in course.rows] == ["falls, beyond the margin"] * 2
    few = tables(grid(ladder({1: 1.0, 8: 1.0}, blocks=2).judgement))[-1]
    assert [row[5] for row in few.rows] == ["too few blocks"] * 2


def test_each_workload_has_its_row_with_blocks_needed_and_its_counts() -> None:
    ratios = {
        "oltp_read_only": (1.6, 1.59, 1.61, 1.6, 1.58),
        "oltp_write_only": (0.9, 1.1, 1.0, 0.95, 1.05),
    }
    levels, counts, _ = tables(grid(of_workloads(ratios, (1, 8)).judgement))
    assert [(row[1:4], row[5]) for row in levels.rows] == [
        (("all", "4", "5"), "faster"),
        (("oltp_read_only", "2", "5"), "faster"),
        (("oltp_write_only", "2", "5"), "not enough data"),
    ]
    assert levels.columns[-1].heading == "Blocks needed"
    assert levels.rows[1][-1] == "—"
    assert [row[1] for row in counts.rows] == ["all", "oltp_read_only", "oltp_write_only"]
    assert [sum(map(int, row[2:])) for row in counts.rows] == [4, 2, 2]


def test_one_cell_or_one_system_has_no_such_section(empty: Run) -> None:
    assert grid(ladder({8: 1.0}).judgement).parts == ()
    alone = run(making.plan(systems=(making.A,)), [making.measurement(block=b) for b in range(3)])
    assert grid(alone.judgement).parts == ()
    assert grid(empty.judgement).parts == ()


# Open loops.

MADE = run(plan_of(3), trials_of({making.A: [1000, 1010, 990], making.B: [1100, 1111, 1089]}))


def test_each_system_has_its_rate_with_interval_and_every_block() -> None:
    limits, _ = tables(within_limit(MADE.judgement))
    assert [row[0] for row in limits.rows] == [making.A, making.B]
    assert [row[3] for row in limits.rows] == ["3", "3"]
    assert all(len(row[4].split(", ")) == 3 for row in limits.rows)


def test_blocks_outside_the_rates_are_not_told_as_too_few_sound_ones() -> None:
    limits = {making.A: [1000] * 5, making.B: [1100, 1100, 5000, 1100, 1100]}
    told = within_limit(run(plan_of(5), trials_of(limits)).judgement)
    (entries,) = (part for part in told.parts if isinstance(part, Entries))
    (entry,) = entries.entries
    assert entry.mark == "no verdict"
    assert "is above all measured rates in 1 of 5 blocks" in entry.lines[0]
    assert not any("too few" in line for line in entry.lines)


def test_a_closed_loop_has_neither(made: Run) -> None:
    assert within_limit(made.judgement).parts == ()
    assert pilot(made.plan).parts == ()


def test_rates_that_were_given_need_no_pilot_section() -> None:
    plan = making.plan().model_copy(update={"load": LoadPlan(rates=("500",), threads=(8,))})
    empty = run(plan, [])
    assert pilot(plan).parts == ()
    page = markdown.render(story_of(plan, [], empty.judgement, empty.facts))
    assert "| load | closed loop of 8 connections" in page
    assert "| load | open loop of 500 transactions/s, over 64 connections" in page
