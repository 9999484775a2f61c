"""Evenness as a reader sees it: what each system did, then the differences."""

from __future__ import annotations

from dbdyno.judge.judgement import Judgement, judge
from dbdyno.report.parts import Items, Paragraph, Table
from dbdyno.report.sections import shape
from support import making
from support.made_run import Run
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
    explained, own, compared, differences = shape.stability(judged).parts
    assert isinstance(explained, Items)
    assert isinstance(compared, Paragraph)
    assert isinstance(own, Table)
    assert isinstance(differences, Table)
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


def test_where_nobody_listened_there_is_a_dash(made: Run) -> None:
    own = shape.stability(made.judgement).parts[1]
    assert isinstance(own, Table)
    assert {row[5] for row in own.rows} == {"—"}


def test_nothing_measured_is_no_section() -> None:
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert shape.stability(nothing).parts == ()
