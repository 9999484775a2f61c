"""The gate's table row by row, both directions of metrics, and that silence never passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.estimate import Unsettled
from dbdyno.judge.judgement import JudgedRun, Judgement
from dbdyno.judge.standstill import Standstill
from dbdyno.judge.uses.gate import Gate, GateOutcome, gate, gate_against
from dbdyno.judge.verdict import Verdict, verdict_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.formats.gate import text, whole
from support import making
from support.made_estimates import estimate, estimate_from, held
from support.made_run import facts


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


def side(
    verdicts: Sequence[Verdict], plan: Plan | None = None, trials: Sequence[Measurement] = ()
) -> JudgedRun:
    plan = plan or making.plan()
    judged = Judgement(findings=(), values=(), estimates=(), verdicts=tuple(verdicts))
    return JudgedRun(plan, trials, judged, facts(plan))


def since(first, second, strict: bool = False) -> Gate:
    return gate_against(side(first), side(second), 0.03, strict=strict)


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
    assert (passage.outcome, closed.earlier) == (outcome, facts(making.plan()).run_id)
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


def test_a_comparison_of_one_run_only_is_void_and_says_which_run_lacks_it() -> None:
    steady = [of_logs(STEADY)]
    for alone, lacking in (since([], steady), "the earlier run"), (since(steady, []), "this run"):
        assert [passage.outcome for passage in alone.passages] == [GateOutcome.VOID]
        assert alone.fails_by_void
        assert text(alone.passages[0], 0.03) == (
            "mysql:8.0.15 and mysql:5.7.22 cannot be compared with the earlier run: "
            f"{lacking} does not compare their TPS in this cell"
        )
        assert whole(alone) == "gate fails: no comparison can be held against the earlier run"


def test_too_few_valid_measurements_are_no_slowdown_whatever_the_other_run_shows() -> None:
    few = of_logs([0.1])
    for pair in ([few], [of_logs(STEADY)]), ([few], [still("system")]):
        (passage,) = since(*pair).passages
        assert passage.outcome is GateOutcome.VOID
        assert "too few valid measurements in one of the two runs" in text(passage, 0.03)


PLAN = making.plan()
WORKLOAD = WorkloadPlan(name="oltp_read_write", options={"point_selects": 5})
SCRIPT = WorkloadPlan(name="own.lua", label="oltp_read_write", script="function event() end")
BASE, MINE = PLAN.systems


def changed(system: SystemPlan) -> SystemPlan:
    return system.model_copy(update={"settings": {"innodb_buffer_pool_size": "1G"}})


@pytest.mark.parametrize(
    ("parts", "what", "first", "second"),
    [
        ({"dataset": {"rows": 200}}, "dataset.rows", "100000", "200"),
        ({"dataset": {"table_options": "ENGINE=X"}}, "dataset.table_options", "—", "ENGINE=X"),
        ({"distribution": {"name": "pareto"}}, "distribution.name", "uniform", "pareto"),
        ({"network": {"client_ms": 0.5}}, "network.client_ms", "0", "0.5"),
        (
            {"procedure": {"prepared_statements": False}},
            "procedure.prepared_statements",
            "on",
            "off",
        ),
        (
            {"settings": {"prepared_statements": ("off",)}},
            "procedure.prepared_statements",
            "on",
            "off",
        ),
        ({"settings": {"durability": ("0/2",)}}, "settings.durability", "—", "0/2"),
        ({"workloads": (WORKLOAD,)}, "oltp_read_write: point_selects", "—", "5"),
        (
            {"workloads": (SCRIPT,)},
            "workload oltp_read_write",
            "oltp_read_write",
            "SHA-256 ",
        ),
        (
            {"systems": (changed(BASE), MINE)},
            "mysql:5.7.22: innodb_buffer_pool_size",
            "—",
            "1G",
        ),
    ],
)
def test_other_data_load_or_baseline_make_a_comparison_void_and_are_named(
    parts: dict[str, Any], what: str, first: str, second: str
) -> None:
    verdicts = [of_logs(STEADY)]
    runs = (side(verdicts), side(verdicts, making.with_parts(PLAN, **parts)))
    closed = gate_against(*runs, 0.03)
    (passage,) = closed.passages
    assert passage.outcome is GateOutcome.VOID
    assert closed.fails_by_void
    difference = f"{what} was {first} in the earlier run and is {second}"
    assert f"cannot be compared with the earlier run: {difference}" in text(passage, 0.03)
    assert gate_against(runs[1], runs[1], 0.03).holds


def of_version(system: str, version: str) -> Measurement:
    measured = making.measurement(system)
    server = measured.server.model_copy(update={"version": version})
    return making.changed(measured, server=server)


def test_the_baseline_keeps_its_version_and_the_system_may_have_another() -> None:
    verdicts = [of_logs(STEADY)]
    before = side(verdicts, PLAN, [of_version(BASE.label, "5.7.22")])
    newer = side(verdicts, PLAN, [of_version(BASE.label, "5.7.23")])
    (passage,) = gate_against(before, newer, 0.03).passages
    assert text(passage, 0.03).endswith(
        ": mysql:5.7.22: version was 5.7.22 in the earlier run and is 5.7.23 in this run"
    )
    other_system = making.with_parts(
        PLAN, systems=(BASE, changed(MINE)), design={"blocks": 9}, dataset={"loads": 2}
    )
    same_base = [of_version(BASE.label, "5.7.22"), of_version(MINE.label, "9.0.0")]
    assert gate_against(before, side(verdicts, other_system, same_base), 0.03).holds


def test_settings_compared_on_one_system_may_be_of_another_version() -> None:
    axis = SettingsPlan(thread_pool=("off", "on"))
    plan = making.with_parts(making.plan(systems=(making.A,)), settings=axis)
    labels = {"baseline": "thread_pool off", "system": "thread_pool on"}
    verdicts = [of_logs(STEADY).model_copy(update=labels)]
    runs = (side(verdicts, plan, [of_version(BASE.label, one)]) for one in ("5.7.22", "5.7.23"))
    assert gate_against(*runs, 0.03).holds


def still(who: str) -> Verdict:
    counted = {"system": 0, "baseline": 0, "both": 0, "pairs": 8, who: 8}
    return verdict_of(estimate(1.0, 0.95, 1.05), 0.02, standstill=Standstill(**counted))


def test_a_system_that_stands_still_now_has_become_slower_unless_it_did_before() -> None:
    fast, system, baseline = of_logs(STEADY), still("system"), still("baseline")
    pairs = [(fast, system), (baseline, system), (fast, baseline), (system, fast), (system, system)]
    passages = [since([first], [second]).passages[0] for first, second in pairs]
    assert [passage.outcome for passage in passages] == [
        *[GateOutcome.SLOWER] * 2,
        *[GateOutcome.UNDECIDED] * 3,
    ]
    for passage in passages[-2:]:
        assert text(passage, 0.03).endswith(
            "mysql:8.0.15 stood still in the earlier run, so there is no ratio to compare with"
        )
