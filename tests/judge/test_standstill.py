"""What is said of two systems of which one stood still: words without a ratio."""

from __future__ import annotations

import pytest

from dbdyno.judge.judgement import Judgement, enough, judge
from dbdyno.judge.standstill import Standstill, shared
from dbdyno.judge.uses.gate import GateOutcome, gate
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.report.tell.verdicts import sentence
from support import making
from support.made_estimates import estimate
from support.making import A, B


def block(number: int, *stopped: str, workload: str = "oltp_read_write") -> list[Measurement]:
    """A pair of trials; those systems stood still, the others do about 1000 TPS."""
    jitter = 1 + 0.001 * (number % 3)
    return [
        making.stood_still(system, number, workload=workload)
        if system in stopped
        else making.measurement(system, number, tps=1000 * jitter, workload=workload)
        for system in (A, B)
    ]


def judged(*blocks: tuple[str, ...]) -> Judgement:
    made = [one for number, stopped in enumerate(blocks) for one in block(number, *stopped)]
    return judge(made, making.plan(blocks=len(blocks)))


def verdict(*blocks: tuple[str, ...]) -> Verdict:
    (found,) = judged(*blocks).verdicts
    return found


def test_who_stands_still_in_every_block_is_worse_without_a_ratio():
    found = verdict((B,), (B,), (B,))
    assert (found.word, found.material, found.estimate.ratio) == (Word.WORSE, True, None)
    said = str(sentence(found))
    assert said == (
        "mysql:8.0.15 is slower than mysql:5.7.22: TPS none (mysql:8.0.15 stood still in 3 of 3 "
        "blocks), 3 blocks (few)"
    )
    (longest,) = [one for one in found.reasons if one.kind == "stands-still"]
    assert longest.values["silent_s"] == 10.0
    assert verdict((A,), (A,), (A,)).word is Word.BETTER
    values = judged((B,), (B,), (B,))
    assert values.value(found.cell, B, "transactions_per_s").value == 0.0
    assert values.value(found.cell, B, "latency_ms_p95").value is None


def test_it_is_so_beside_a_system_that_still_warms_up():
    rates = (*(500.0 + 50 * second for second in range(10)), *(1000.0,) * 20)
    trials = [
        trial
        for number in range(3)
        for trial in (
            making.measurement(A, number, rates=rates, window_s=30),
            making.stood_still(B, number),
        )
    ]
    found = judge(trials, making.plan(blocks=3, window_s=30))
    assert "not-steady" in {finding.check for finding in found.findings}
    assert [one.word for one in found.verdicts] == [Word.WORSE]


@pytest.mark.parametrize(
    ("blocks", "who"),
    [
        (((B,), (), (), ()), "mysql:8.0.15 stood still in 1 of 4 blocks"),
        (((B,), (A,), (B,)), "8.0.15 stood still in 2 of 3 blocks, mysql:5.7.22 stood still in 1"),
        (((A, B), (A, B), (A, B)), "both stood still in 3 of 3 blocks"),
        (((A, B), (B,), (B,), (B,)), "both stood still in 1 of 4 blocks"),
    ],
)
def test_who_stands_still_in_some_blocks_is_not_judged_by_the_others(blocks, who):
    found = verdict(*blocks)
    assert found.word is Word.UNDECIDED
    assert who in str(sentence(found))
    assert found.blocks_needed is None


def test_two_blocks_are_too_few_for_a_word():
    found = verdict((B,), (B,))
    assert found.word is Word.NO_VERDICT
    assert "2 valid blocks; a verdict needs 3" in str(sentence(found))


def test_several_cells_share_the_five_percent():
    workloads = ("oltp_read_write", "oltp_read_only")
    plan = making.plan(workloads=workloads, blocks=3)

    def words(blocks: int, *stopped: str) -> list[Word]:
        made = [
            one
            for number in range(blocks)
            for workload in workloads
            for one in block(number, *(B for _ in range(workload in stopped)), workload=workload)
        ]
        return [one.word for one in judge(made, plan).verdicts]

    # 3.1 % for three blocks is more than half of 5 %, 0.8 % for four is less
    assert words(3, *workloads) == [Word.UNDECIDED, Word.UNDECIDED]
    assert words(4, *workloads) == [Word.WORSE, Word.WORSE]
    assert words(4, "oltp_read_only") == [Word.EQUIVALENT, Word.WORSE]


def test_all_cells_together_do_not_hide_a_cell_that_stood_still_and_in_one_block_it_is_open():
    workloads = ("oltp_read_write", "oltp_read_only")

    def of_two(stopped: int) -> Judgement:
        """Four blocks of two workloads; B stands still in the first of so many blocks."""
        made = [
            one
            for number in range(4)
            for one in (
                *block(number, *([B] if number < stopped else []), workload=workloads[0]),
                *block(number, workload=workloads[1]),
            )
        ]
        return judge(made, making.plan(workloads=workloads, blocks=4))

    (whole,) = of_two(4).summaries
    assert (whole.word, whole.ratio, whole.counts[Word.WORSE]) == (Word.NO_VERDICT, None, 1)
    open_cell = of_two(1)
    assert [one.low is None for one in open_cell.verdicts] == [False, False]
    assert [one.word for one in open_cell.verdicts] == [Word.UNDECIDED, Word.EQUIVALENT]
    (whole,) = open_cell.summaries
    assert (whole.word, whole.counts[Word.UNDECIDED]) == (Word.NO_VERDICT, 1)


def test_a_decided_standstill_passes_its_share_on_and_an_open_one_keeps_it():
    def of(pairs: int) -> Standstill:
        return Standstill(system=pairs, baseline=0, both=0, pairs=pairs)

    tie = estimate(1.0, 0.99, 1.01)
    given, left = shared([of(4), None], [tie, tie])
    assert (given[0].pairs_needed, left) == (4, 0.05)
    given, left = shared([of(3), None], [tie, tie])
    assert (given[0].level, given[0].pairs_needed, left) == (0.025, 4, 0.025)
    assert shared([None], [tie]) == ([None], 0.05)
    assert shared([], []) == ([], 0.05)


def test_a_run_until_decided_ends_at_a_standstill_and_at_one_that_blocks_do_not_decide():
    plan = making.plan(blocks=12, design={"stop": "decided"})
    still = [one for number in range(3) for one in block(number, B)]
    assert enough(still, plan)
    mixed = [one for number in range(3) for one in block(number, *([B] if number else []))]
    assert enough(mixed, plan)


def test_the_gate_takes_a_standstill_for_slower():
    outcomes = {
        blocks: gate((verdict(*blocks),), 0.03).passages[0].outcome
        for blocks in (((B,),) * 3, ((A,),) * 3, ((B,), (), ()))
    }
    assert list(outcomes.values()) == [
        GateOutcome.SLOWER,
        GateOutcome.HELD,
        GateOutcome.UNDECIDED,
    ]
