"""The gate's table row by row, both directions of metrics, and that silence never passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.estimate import Unsettled
from dbdyno.judge.interval import FIXED
from dbdyno.judge.standstill import Standstill
from dbdyno.judge.uses.agreement import agreements
from dbdyno.judge.uses.gate import Gate, GateOutcome, gate, gate_against
from dbdyno.judge.verdict import Verdict, verdict_of
from dbdyno.report.formats.gate import text, whole
from support.made_estimates import estimate, estimate_from, held


def verdict(low: float | None, high: float | None, metric: str = "transactions_per_s") -> Verdict:
    middle = 1.0 if low is None or high is None else (low * high) ** 0.5
    return verdict_of(estimate(middle, low, high, metric=metric), 0.02)


def gate_of(*intervals, strict: bool = False) -> Gate:
    return gate(tuple(verdict(*interval) for interval in intervals), 0.03, strict=strict)


LATENCY = "latency_ms_avg"


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [
        ((0.90, 0.96), GateOutcome.SLOWER),
        ((0.90, 0.97), GateOutcome.UNDECIDED),
        ((0.96, 1.02), GateOutcome.UNDECIDED),
        ((0.97, 0.99), GateOutcome.HELD),
        ((0.98, 1.05), GateOutcome.HELD),
        ((1.10, 1.20), GateOutcome.HELD),
        ((0.50, 2.00), GateOutcome.UNDECIDED),
        ((None, None), GateOutcome.VOID),
        ((1.04, 1.10, LATENCY), GateOutcome.SLOWER),
        ((0.80, 1.03, LATENCY), GateOutcome.HELD),
        ((1.02, 1.04, LATENCY), GateOutcome.UNDECIDED),
    ],
)
def test_an_interval_against_the_limit(interval, outcome):
    (passage,) = gate_of(interval).passages
    assert passage.outcome is outcome
    assert passage.holds is (outcome is not GateOutcome.SLOWER)
    (strict,) = gate_of(interval, strict=True).passages
    assert strict.holds is (outcome is GateOutcome.HELD)


def test_one_slower_comparison_closes_the_gate():
    closed = gate_of((0.9, 0.95), (0.99, 1.01), (0.95, 1.05), (None, None))
    assert not closed.holds
    assert whole(closed) == (
        "gate fails with a limit of 3 %: 1 slower, 1 held, 1 without enough data, 1 void"
    )


def test_undecided_and_void_are_said_and_pass_unless_strict():
    intervals = ((0.99, 1.01), (0.95, 1.05), (None, None))
    held = gate_of(*intervals)
    assert held.holds
    assert whole(held) == "gate passes with a limit of 3 %: 1 held, 1 without enough data, 1 void"
    texts = [text(passage, 0.03) for passage in held.passages]
    assert texts[1].startswith("not enough data to say if")
    assert texts[2].startswith("too few measurements to compare mysql:8.0.15")
    assert not gate_of(*intervals, strict=True).holds


def test_a_gate_that_decides_nothing_does_not_hold():
    assert not gate_of((0.5, 2.0), (None, None)).holds
    assert not gate((), 0.03).holds
    assert whole(gate((), 0.03)) == "gate fails: the run has no verdict"


def test_the_interval_is_the_one_that_holds_for_all_cells_together():
    wide = held(0.95, 1.02, level=0.005, cells=10)
    alone = verdict_of(estimate(0.985, 0.98, 0.99), 0.02)
    among = verdict_of(estimate(0.985, 0.98, 0.99), 0.02, held=wide)
    outcomes = [passage.outcome for passage in gate((alone, among), 0.03).passages]
    assert outcomes == [GateOutcome.HELD, GateOutcome.UNDECIDED]


def test_more_blocks_are_advised_only_where_they_help():
    undecided = estimate(1.0, 0.95, 1.05)
    warming = verdict_of(undecided, 0.02, unsettled=Unsettled(-0.01, 0.0, 0.03, until_s=45.0))
    of_some = Standstill(system=1, baseline=0, both=0, pairs=8)
    stood_still = verdict_of(undecided, 0.02, standstill=of_some)
    passages = gate((verdict(0.95, 1.05), warming, stood_still), 0.03).passages
    assert {passage.outcome for passage in passages} == {GateOutcome.UNDECIDED}
    assert [text(passage, 0.03).rpartition("; ")[2] for passage in passages] == [
        "more blocks narrow the interval",
        "throughput had not settled: warm up for about 45 s",
        "more blocks cannot decide this: where a system stands still there is no ratio",
    ]


@given(st.floats(0.3, 3), st.floats(1, 2), st.floats(0, 0.9), st.floats(0, 0.9))
def test_allowing_more_never_closes_a_gate(low, width, one, other):
    compared = (verdict(low, low * width),)
    tight, loose = (gate(compared, allowed) for allowed in sorted((one, other)))
    assert loose.passages[0].outcome is not GateOutcome.SLOWER or not tight.passages[0].holds
    if tight.passages[0].outcome is GateOutcome.HELD:
        assert loose.holds


# Against an earlier run: its ratios in place of the baseline's 1.

STEADY = [0.1, 0.101, 0.099]


def since(first, second, strict: bool = False) -> Gate:
    pairs = agreements(first, second, (FIXED, FIXED))
    return gate_against("run-1", pairs, 0.03, strict=strict)


def of_logs(logs, metric: str = "transactions_per_s") -> Verdict:
    return verdict_of(estimate_from(logs, metric=metric), 0.02)


@pytest.mark.parametrize(
    ("logs", "metric", "outcome"),
    [
        ([0.02, 0.021, 0.019], "transactions_per_s", GateOutcome.SLOWER),
        ([0.09, 0.091, 0.089], "transactions_per_s", GateOutcome.HELD),
        ([0.5, 0.501, 0.499], "transactions_per_s", GateOutcome.HELD),
        ([0.0, 0.2, 0.1], "transactions_per_s", GateOutcome.UNDECIDED),
        ([0.1], "transactions_per_s", GateOutcome.VOID),
        ([0.18, 0.181, 0.179], LATENCY, GateOutcome.SLOWER),
        ([0.02, 0.021, 0.019], LATENCY, GateOutcome.HELD),
    ],
)
def test_a_ratio_is_held_against_that_of_an_earlier_run(logs, metric, outcome) -> None:
    closed = since([of_logs(STEADY, metric)], [of_logs(logs, metric)])
    (passage,) = closed.passages
    assert (passage.outcome, closed.earlier) == (outcome, "run-1")
    assert passage.holds is (outcome is not GateOutcome.SLOWER)
    (strict,) = since([of_logs(STEADY, metric)], [of_logs(logs, metric)], strict=True).passages
    assert strict.holds is (outcome is GateOutcome.HELD)


def test_a_slower_system_passes_if_it_was_as_slow_before_and_a_faster_one_may_fail() -> None:
    slow, fast = of_logs([-0.2, -0.201, -0.199]), of_logs(STEADY)
    assert not gate((slow,), 0.03).holds
    assert since([slow], [slow]).holds
    less = of_logs([0.05, 0.051, 0.049])
    assert gate((less,), 0.03).holds
    closed = since([fast], [less])
    assert not closed.holds
    assert text(closed.passages[0], 0.03).startswith(
        "mysql:8.0.15 has become slower by more than 3 %, compared with mysql:5.7.22: TPS −4.9 % ["
    )


def test_a_comparison_of_one_run_only_is_void() -> None:
    for pair in ([of_logs(STEADY)], []), ([], [of_logs(STEADY)]):
        alone = since(*pair)
        assert [passage.outcome for passage in alone.passages] == [GateOutcome.VOID]
        assert alone.fails_by_void
        assert "in one of the two runs" in text(alone.passages[0], 0.03)


def test_a_system_that_stands_still_now_has_become_slower() -> None:
    def still(side: str) -> Verdict:
        counted = {"system": 0, "baseline": 0, "both": 0, "pairs": 8, side: 8}
        return verdict_of(estimate(1.0, 0.95, 1.05), 0.02, standstill=Standstill(**counted))

    fast = of_logs(STEADY)
    pairs = [(fast, still("system")), (fast, still("baseline")), (still("system"), fast)]
    outcomes = [since([first], [second]).passages[0].outcome for first, second in pairs]
    assert outcomes == [GateOutcome.SLOWER, GateOutcome.UNDECIDED, GateOutcome.UNDECIDED]
