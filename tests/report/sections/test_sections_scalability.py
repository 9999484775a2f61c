"""Laws, peaks and refusals as a reader sees them."""

from __future__ import annotations

import numpy as np

from dbdyno.judge.judgement import Judgement, judge
from dbdyno.language.words import Said, told
from dbdyno.report.parts import Paragraph, Table
from dbdyno.report.sections import shape
from support import making
from support.made_ladders import FLAT, LEVELS, PEAKING, noisy, trials
from support.made_run import Run
from support.making import A, B

PLAN = making.plan(threads=LEVELS, window_s=2)


def section(of_b):
    random = np.random.default_rng(5)
    of_a = noisy(LEVELS, PEAKING, (5,), random)
    made = [*trials(A, of_a), *trials(B, noisy(LEVELS, of_b, (5,), random) * 1.1)]
    return shape.scalability(judge(made, PLAN))


def test_two_peaks_are_given_and_compared() -> None:
    explained, laws, peaks = section(PEAKING).parts
    assert isinstance(explained, Paragraph)
    assert isinstance(laws, Table)
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
    assert isinstance(peaks, Table)
    (row,) = peaks.rows
    assert row == ("oltp_read_write", B, A, "+0.9 % [−1.6, +3.6]", "+9.9 % [+6.8, +13.0]")


def test_a_refusal_stands_where_the_peak_would_be() -> None:
    _, laws = section(FLAT).parts
    assert isinstance(laws, Table)
    assert laws.rows[1][2:4] == ("—", "—")
    assert laws.rows[1][-1] == "no peak up to 128 threads"
    assert laws.rows[1][5] != "—"  # the law stays, as it describes what was measured


def test_short_ladders_are_no_section(made: Run) -> None:
    assert shape.scalability(made.judgement).parts == ()


def test_nothing_measured_is_no_section() -> None:
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert shape.scalability(nothing).parts == ()


def test_reasons_can_be_told_in_another_language() -> None:
    _, laws = section(FLAT).parts
    assert isinstance(laws, Table)
    reason = laws.rows[1][-1]
    assert isinstance(reason, Said)
    assert told(reason, {reason.template: "bis {threads}: kein Gipfel"}) == "bis 128: kein Gipfel"
