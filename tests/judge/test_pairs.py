"""One number for each block, and only from trials that the audit let through."""

from __future__ import annotations

import math

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.estimate import Pairs
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from support import making
from support.making import A, B

CELL = Cell(workload="oltp_read_write", threads=8)


def pairs_of(trials) -> Pairs:
    return Pairs(audit(trials, making.plan()).sound)


def test_blocks_are_told_apart_and_in_their_order():
    trials = [making.measurement(A, block, tps=tps) for block, tps in ((2, 300), (0, 100))]
    logs = pairs_of(trials).logs(CELL, A, PRIMARY)
    assert list(logs) == [0, 2]
    assert list(logs.values()) == pytest.approx([math.log(100), math.log(300)])


def test_a_ratio_needs_both_systems_of_its_block():
    trials = making.pairs((1.1, 1.2, 1.3))
    del trials[3]
    found = pairs_of(trials).log_ratios(CELL, A, B, PRIMARY)
    assert list(found) == [0, 2]
    assert list(found.values()) == pytest.approx([math.log(1.1), math.log(1.3)])


def test_a_metric_that_was_not_seen_is_no_number():
    found = pairs_of(making.pairs((1.0, 1.0, 1.0)))
    assert found.log_ratios(CELL, A, B, BY_NAME["latency_ms_p999"]) == {}
    assert found.logs(Cell(workload="other", threads=1), A, PRIMARY) == {}


def test_the_systems_of_a_cell_are_named_with_their_trials():
    arms = pairs_of(making.pairs((1.0, 1.0))).arms_of(CELL)
    assert [(system, list(arm)) for system, arm in arms.items()] == [(A, [0, 1]), (B, [0, 1])]
