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


def test_a_missing_cell_is_taken_to_move_as_the_others_of_its_block_do():
    one, other = Cell(workload="a", threads=1), Cell(workload="a", threads=2)
    of_cells, of_blocks = {one: 0.1, other: 0.5}, {0: -0.02, 1: 0.0, 2: 0.03, 3: -0.01}
    logs = {
        cell: {block: own + moved for block, moved in of_blocks.items()}
        for cell, own in of_cells.items()
    }
    whole = block_means(logs)
    assert whole == {block: pytest.approx(0.3 + moved) for block, moved in of_blocks.items()}
    del logs[other][1]
    assert block_means(logs) == {block: pytest.approx(mean) for block, mean in whole.items()}
    third = Cell(workload="a", threads=4)
    logs[third] = dict(logs[other])
    assert list(block_means(logs)) == [0, 2, 3], "of block 1 there is a third"
    assert block_means({**logs, third: {}}) == {}, "a cell without a ratio has no mean with others"
    assert block_means({}) == {}


def test_the_ratio_over_all_cells_is_that_of_block_means():
    (summary,) = judge(ladder(RATIOS), plan()).summaries
    means = [
        (math.log(few) + math.log(many)) / 2 for few, many in zip(RATIOS[1], RATIOS[8], strict=True)
    ]
    found = interval(means, FIXED)
    assert summary.ratio == pytest.approx(math.exp(found.mean), rel=1e-3)
    assert summary.low == pytest.approx(math.exp(found.mean - found.half), rel=1e-3)
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


BOTH = ("oltp_read_write", "oltp_read_only")


def test_each_workload_has_a_ratio_of_its_own_below_that_of_all_cells():
    trials = [
        trial
        for workload, ratios in zip(BOTH, ((1.1, 1.12, 1.08), (0.8, 0.81, 0.79)), strict=True)
        for trial in ladder({1: ratios, 8: ratios}, workload=workload)
    ]
    whole, *named = judge(trials, plan(workloads=BOTH)).summaries
    assert [(one.workload, one.setting, one.cells, one.word) for one in named] == [
        (BOTH[0], "default", 2, Word.BETTER),
        (BOTH[1], "default", 2, Word.WORSE),
    ]
    assert [one.ratio for one in named] == pytest.approx([1.1, 0.8], rel=1e-3)
    assert (whole.workload, whole.setting, whole.cells) == ("", "", 4)
    assert whole.ratio == pytest.approx(math.sqrt(named[0].ratio * named[1].ratio), rel=1e-3)
    assert (whole.word, named[0].blocks_needed) == (Word.WORSE, None)


def test_workloads_of_one_cell_each_and_a_ladder_alone_have_no_ratio_beside_that_of_all_cells():
    single = [trial for one in BOTH for trial in making.pairs(RATIOS[8], workload=one)]
    (whole,) = judge(single, making.plan(workloads=BOTH, blocks=3)).summaries
    assert (whole.workload, whole.cells) == ("", 2)
    (alone,) = judge(ladder(RATIOS), plan()).summaries
    assert alone.workload == ""


def test_an_undecided_ratio_of_cells_together_says_how_many_blocks_would_decide():
    (summary,) = judge(ladder({1: (1.0, 1.05, 0.97), 8: (1.02, 1.03, 0.95)}), plan()).summaries
    assert summary.word is Word.UNDECIDED
    assert summary.blocks_needed > 3


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
