"""Sections on stability, scalability and outlying runs, as a reader sees them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dbdyno.judge.judgement import Judgement, judge
from dbdyno.report.parts import Items, Section
from dbdyno.report.sections import shape
from support import making
from support.made_ladders import FLAT, LEVELS, PEAKING, noisy, trials
from support.made_seconds import trial
from support.making import A, B

EVEN = (1000.0, 1010.0, 990.0, 1000.0, 1010.0, 990.0) * 4


def tables(b_rates, b_silences=None, blocks=6):
    made = []
    for block in range(blocks):
        place = {"position": 0, "sequence": 2 * block}
        made.append(trial(EVEN, A, block, **place))
        place = {"position": 1, "sequence": 2 * block + 1}
        made.append(trial(b_rates, B, block, b_silences, **place))
    judged = judge(made, making.plan(blocks=blocks, window_s=len(EVEN)))
    _, own, _, differences = shape.stability(judged).parts
    return own, differences


def test_stalls_and_dips_are_counted_and_compared() -> None:
    dipped = (*EVEN[:9], 500.0, 400.0, *EVEN[11:])
    own, differences = tables(dipped, {9: 0.25, 10: 0.6})
    by_system = {row[1]: row for row in own.rows}
    assert by_system[A][2:7] == ("6", "0 %", "0", "0", "—")
    assert by_system[B][4] == "6, 12.0 s in all"
    assert by_system[B][5] == "12, longest 0.600 s, 5.10 s in all"
    assert by_system[B][6] == "3.0"
    (row,) = differences.rows
    assert row == ("oltp_read_write, 8 threads", B, A, "12 against 0", "6 against 0")


def test_a_dip_that_lasts_to_the_end_has_no_recovery() -> None:
    own, _ = tables((*EVEN[:-2], 500.0, 500.0))
    assert own.rows[1][6] == "not within the window"


@pytest.mark.parametrize("section", [shape.stability, shape.scalability, shape.outliers])
def test_nothing_measured_is_no_section(section: Callable[[Judgement], Section]) -> None:
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert section(nothing).parts == ()


LADDER_PLAN = making.plan(threads=LEVELS, window_s=2)


def scalability_of(of_b):
    random = np.random.default_rng(5)
    of_a = noisy(LEVELS, PEAKING, (5,), random)
    made = [*trials(A, of_a), *trials(B, noisy(LEVELS, of_b, (5,), random) * 1.1)]
    return shape.scalability(judge(made, LADDER_PLAN))


def test_the_peaks_are_given() -> None:
    _, laws = scalability_of(PEAKING).parts
    assert laws.rows[0] == (
        "oltp_read_write",
        A,
        "48.8 [48.1, 49.5]",
        "1\u202f437 [1\u202f408, 1\u202f467]",
        "99.6 [98.2, 101.1]",
        "0.03 [0.0287, 0.0312]",
        "0.000408 [0.000396, 0.000419]",
        "—",
    )


def test_a_refusal_stands_where_the_peak_would_be() -> None:
    _, laws = scalability_of(FLAT).parts
    assert laws.rows[1][2:4] == ("—", "—")
    assert laws.rows[1][-1] == "no peak up to 128 threads"
    assert laws.rows[1][5] != "—"  # the law stays, as it describes what was measured


RATES = (1000.0, 1004.0, 997.0, 700.0, 995.0, 1002.0)


def test_an_outlying_run_is_named() -> None:
    made = [making.measurement(A, block, tps=rate) for block, rate in enumerate(RATES)]
    plan = making.plan(systems=(A,), blocks=6)
    judged = judge(made, plan)
    items = shape.outliers(judged).parts[1]
    assert items.items == (
        "mysql:5.7.22, oltp_read_write, 8 threads, block 4: TPS −30.0 % against the system's other "
        "5 trials.",
    )
    assert judged.value(made[0].trial.cell, A, "transactions_per_s").blocks == 6  # none dropped
    assert shape.outliers(judge(made[:3], plan)).parts[1] == Items(("No trial is outlying.",))


def test_a_comparison_is_shown_for_each_machine() -> None:
    trials = making.pairs((1.0, 1.1, 1.1))
    trials = [making.changed(one, machine="ab"[one.trial.block > 0]) for one in trials]
    _, rows = shape.machines(judge(trials, making.plan(blocks=3))).parts
    assert [row[2:] for row in rows.rows] == [("a", "1", "0.0 %"), ("b", "2", "+10.0 %")]
