"""All cells together: weights, blocks as samples, counts; and a cell machine by machine."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.judge.beside.grid import block_means, weights
from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import Plan
from support import making
from support.making import A, B

RATIOS = {1: (1.30, 1.31, 1.29), 8: (0.90, 0.91, 0.89)}


def ladder(ratios: dict[int, tuple[float, ...]], **same: object) -> list:
    return [
        trial
        for threads, of_blocks in ratios.items()
        for trial in making.pairs(of_blocks, threads=threads, **same)
    ]


def plan(blocks: int = 3, **facts: object) -> Plan:
    return making.plan(threads=(1, 8), blocks=blocks, **facts)


def test_workloads_weigh_alike_and_so_do_the_cells_of_a_workload():
    cells = [Cell(workload="a", threads=n) for n in (1, 2, 4)] + [Cell(workload="b", threads=1)]
    assert list(weights(cells).values()) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_a_block_in_which_a_cell_is_missing_is_left_out():
    one, other = Cell(workload="a", threads=1), Cell(workload="a", threads=2)
    logs = {one: {0: 0.1, 1: 0.2, 2: 0.3}, other: {0: 0.3, 2: 0.5}}
    assert block_means(logs) == {0: pytest.approx(0.2), 2: pytest.approx(0.4)}
    assert block_means({}) == {}


def test_the_ratio_over_all_cells_is_that_of_block_means():
    (summary,) = judge(ladder(RATIOS), plan()).summaries
    means = [
        (math.log(few) + math.log(many)) / 2 for few, many in zip(RATIOS[1], RATIOS[8], strict=True)
    ]
    found = interval(means, FIXED)
    assert summary.ratio == pytest.approx(math.exp(found.mean), rel=1e-3)
    assert summary.low == pytest.approx(math.exp(found.mean - found.half), rel=1e-3)
    assert summary.block_ratios == pytest.approx(np.exp(means), rel=1e-3)
    assert (summary.baseline, summary.system) == (A, B)
    assert (summary.cells, summary.cells_left_out, summary.blocks) == (2, 0, 3)
    assert (summary.word, summary.material) == (Word.BETTER, True)


def test_counts_are_of_words():
    (summary,) = judge(ladder(RATIOS), plan()).summaries
    assert {word: count for word, count in summary.counts.items() if count} == {
        Word.BETTER: 1,
        Word.WORSE: 1,
    }


def test_cells_without_three_pairs_are_left_out_and_said():
    trials = [
        trial for trial in ladder(RATIOS) if trial.trial.cell.threads == 1 or trial.trial.block
    ]
    (summary,) = judge(trials, plan()).summaries
    assert (summary.cells, summary.cells_left_out, summary.blocks) == (1, 1, 3)
    assert summary.ratio == pytest.approx(1.30, rel=0.01)
    assert summary.counts[Word.NO_VERDICT] == 1


def test_nothing_measured_has_a_summary_without_numbers_and_one_system_has_none():
    (summary,) = judge([], plan()).summaries
    assert (summary.ratio, summary.low, summary.blocks) == (None, None, 0)
    assert summary.word is Word.NO_VERDICT
    assert judge([], plan(systems=(A,))).summaries == ()


def test_cells_that_share_restarts_are_covered_where_they_would_not_be_as_single_samples():
    # docs/how-it-works/method.md: four workloads of five levels, the restart of a block shared by
    # its levels
    random = np.random.default_rng(40)
    shape = (3000, 5, 4)
    shared = random.normal(0, 0.0212, (*shape, 1)) + random.normal(0, 0.0109, (*shape, 5))
    blocks = interval(shared.mean(axis=(2, 3)), FIXED)
    assert 0.94 <= (np.abs(blocks.mean) <= blocks.half).mean() <= 0.96
    singly = interval(shared.reshape(3000, -1), FIXED)
    assert (np.abs(singly.mean) <= singly.half).mean() <= 0.7


def test_a_machines_ratio_is_that_of_its_blocks_and_of_one_machine_there_is_none():
    trials = making.pairs((1.0, 1.0, 1.0, 2.0, 2.0))
    of_two = [making.changed(one, machine="ab"[one.trial.block > 2]) for one in trials]
    found = judge(of_two, making.plan(blocks=5)).machines
    assert [(one.machine, one.blocks, one.baseline, one.system) for one in found] == [
        ("a", 3, A, B),
        ("b", 2, A, B),
    ]
    assert [one.ratio for one in found] == pytest.approx([1.0, 2.0], rel=1e-3)
    assert judge(trials, making.plan(blocks=5)).machines == ()
