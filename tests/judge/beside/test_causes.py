"""Causes of a difference: its factors, the parts of a transaction's time, counters in order."""

from __future__ import annotations

import math

import pytest

from dbdyno.judge.beside.causes import Causes, Factor
from dbdyno.judge.beside.counters import UNITS, Change
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.cost import COSTS, own_counters
from dbdyno.measurement.parts import Probe, StateProfile, ThreadWork, TrialEvidence
from dbdyno.plan.load import LoadPlan
from support import making
from support.made_rates import at_rate
from support.making import A, B

BLOCKS = 5
PLAN = making.with_parts(making.plan(blocks=BLOCKS), design={"disturbance_max": 1.0})
RATE, WINDOW_S, CONNECTIONS = 1000.0, 10, 8
CPU_US = 800.0
"""Of a transaction of a made trial."""
PROBE = TrialEvidence(probe=Probe(cpu_ms=1.0, sync_ms=4.0))


def trials(tps=RATE, cpu_us=CPU_US, counts=None, threads=None, other_cpu=0.0, states=None):
    """Blocks of A against B with this rate, and these counts, threads and states of each system."""
    counts, threads, states = counts or {}, threads or {}, states or {}
    made = []
    for block in range(BLOCKS):
        for position, (system, usual, us) in enumerate(((A, RATE, CPU_US), (B, tps, cpu_us))):
            rate = usual * (1 + 0.002 * (block * (position + 1) % 3 - 1))
            events = round(rate * WINDOW_S)
            per_event = counts.get(system, {})
            trial = making.measurement(
                system,
                block,
                tps=rate,
                sequence=2 * block + position,
                position=position,
                status={name: count * events for name, count in per_event.items()},
                server_cpu_s=us * events / 1e6,
                other_cpu=other_cpu if system == B else 0.0,
            )
            work = {
                group: ThreadWork(**{kind: each * events / 1e6 for kind, each in parts.items()})
                for group, parts in threads.get(system, {}).items()
            }
            server = trial.server.model_copy(update={"threads": work})
            sampled = StateProfile(samples=50, connections=states[system]) if states else None
            made.append(making.changed(trial, server=server, evidence=PROBE, states=sampled))
    return made


def causes_of(**facts) -> Causes:
    judged = judge(trials(**facts), PLAN)
    assert judged.verdicts[0].word is not Word.VOID, judged.findings
    (causes,) = judged.causes
    return causes


def first_of(**facts) -> str | None:
    first = causes_of(**facts).first
    return first and first.name


def test_factors_multiply_to_the_ratio_and_say_which_cpu_others_took() -> None:
    causes = causes_of(tps=611.0, cpu_us=CPU_US / 0.774, other_cpu=0.8)
    ratios = {factor.name: factor.ratio for factor in causes.factors}
    assert math.prod(ratios.values()) == pytest.approx(0.611, rel=2e-3)
    assert ratios == pytest.approx({"work": 0.774, "taken": 0.789, "waiting": 1.0}, rel=5e-3)
    for factor in causes.factors:
        assert factor.low <= factor.ratio <= factor.high
    assert [f.name for f in causes_of(tps=611.0).factors] == ["work", "waiting"]


def test_others_took_no_more_cpu_than_threads_were_queued() -> None:
    """Others use the CPU that a waiting server leaves: that alone is no cause."""
    work = {"user_s": 600.0, "system_s": 100.0, "queued_s": 100.0}
    whole_us = CONNECTIONS / 611 * 1e6
    for queued_s, taken in ((100.0, 1.0), (600.0, 1 - 500 / whole_us)):
        threads = {A: {"connection": work}, B: {"connection": {**work, "queued_s": queued_s}}}
        causes = causes_of(tps=611.0, other_cpu=0.8, threads=threads)
        ratios = {factor.name: factor.ratio for factor in causes.factors}
        assert ratios["taken"] == pytest.approx(taken, rel=5e-3)
        assert math.prod(ratios.values()) == pytest.approx(0.611, rel=2e-3)


def test_sampled_states_split_a_transactions_time() -> None:
    """Eight connections: A commits with two of them, B with five; the rest executes."""
    states = {A: {"executing": 6.0, "commit": 2.0}, B: {"executing": 3.0, "commit": 5.0}}
    parts = {part.name: part for part in causes_of(tps=500.0, states=states).states}
    assert parts["commit"].baseline_us == pytest.approx(2 / RATE * 1e6, rel=1e-2)
    assert parts["commit"].system_us == pytest.approx(5 / 500 * 1e6, rel=1e-2)
    assert parts["commit"].low_us > 0
    assert parts["executing"].low_us <= 0 <= parts["executing"].high_us
    assert sum(one.share for one in parts.values()) == pytest.approx(1, rel=1e-2)
    assert causes_of(tps=500.0).states == ()


def test_parts_of_a_transactions_time_add_up() -> None:
    before = {"user_s": 500.0, "system_s": 200.0, "queued_s": 1000.0}
    after = {"user_s": 500.0, "system_s": 200.0, "queued_s": 1400.0}
    log = {"user_s": 10.0, "system_s": 90.0, "queued_s": 0.0}
    causes = causes_of(
        tps=500.0,
        threads={A: {"connection": before}, B: {"connection": after, "log_writer": log}},
    )
    assert [part.name for part in causes.time] == ["cpu", "queued", "waiting"]
    whole_us = CONNECTIONS / RATE * 1e6
    assert sum(part.baseline_us for part in causes.time) == pytest.approx(whole_us, rel=1e-2)
    assert sum(part.difference_us for part in causes.time) == pytest.approx(whole_us, rel=2e-2)
    assert sum(part.share for part in causes.time) == pytest.approx(1)
    cpu, queued, waiting = causes.time
    assert (cpu.baseline_us, cpu.difference_us) == pytest.approx((700, 0), abs=1)
    assert queued.difference_us == pytest.approx(400, rel=1e-2)
    assert waiting.low_us < waiting.difference_us < waiting.high_us
    assert {part.name: part.difference_us for part in causes.cpu} == pytest.approx(
        {"user": 10, "kernel": 90}, abs=1
    )
    assert {part.name: part.system_us for part in causes.threads} == pytest.approx(
        {"connection": 700, "log_writer": 100}, abs=1
    )


def test_threads_without_names_all_serve_connections() -> None:
    work = {"user_s": 600.0, "system_s": 100.0, "queued_s": 1000.0}
    threads = {A: {"unnamed": work}, B: {"unnamed": {**work, "queued_s": 1400.0}}}
    time = {part.name: part for part in causes_of(tps=500.0, threads=threads).time}
    assert list(time) == ["cpu", "queued", "waiting"]
    assert time["queued"].difference_us == pytest.approx(400, rel=1e-2)


def test_a_trial_whose_threads_were_not_read_hides_no_group() -> None:
    work = {"user_s": 3.0, "system_s": 1.0, "queued_s": 2.0}
    facts = {"tps": 500.0, "threads": {A: {"connection": work}, B: {"connection": work}}}
    made = trials(**facts)
    server = made[-1].server.model_copy(update={"threads": {}})
    late = [*made[:-1], made[-1].model_copy(update={"server": server})]
    whole, rest = (judge(one, PLAN).causes[0] for one in (made, late))
    assert [part.name for part in rest.threads] == [part.name for part in whole.threads]
    assert [part.name for part in rest.time] == ["cpu", "queued", "waiting"]


def test_small_groups_of_threads_are_one_part_and_unseen_threads_none() -> None:
    groups = {f"group {n}": {"user_s": 10.0 * n, "system_s": 1.0} for n in range(9)}
    more = {name: {**parts, "user_s": 2 * parts["user_s"]} for name, parts in groups.items()}
    causes = causes_of(tps=900.0, threads={A: groups, B: more})
    assert [part.name for part in causes.threads] == [
        *(f"group {n}" for n in (8, 7, 6, 5, 4, 3)),
        "other",
    ]
    assert causes.threads[-1].difference_us == pytest.approx(10 + 20, rel=1e-2)
    unseen = causes_of(tps=900.0, threads={A: groups})
    assert (unseen.threads, unseen.cpu) == ((), ())
    assert [part.name for part in unseen.time] == ["cpu", "waiting"]


def test_syncs_are_named_once() -> None:
    syncs = ("Innodb_data_fsyncs", "Innodb_os_log_fsyncs")
    counts = {A: dict.fromkeys(syncs, 0.5), B: dict.fromkeys(syncs, 1.5)}
    causes = causes_of(tps=500.0, counts=counts)
    first = causes.first
    assert isinstance(first, Change)
    assert (first.name, first.is_cost) == ("syncs", True)
    assert first.ratio == pytest.approx(3, rel=1e-2)
    assert first.low < first.ratio < first.high
    assert first.explains == pytest.approx(1)
    assert "Innodb_os_log_fsyncs" not in {change.name for change in causes.changes}
    faster = causes_of(tps=2000.0, counts={A: counts[B], B: counts[A]}).first
    assert faster is not None
    assert faster.name == "syncs"


def test_rows_stand_before_the_cpu_that_they_take() -> None:
    few = {"Innodb_rows_read": 414.0, "Handler_read_rnd_next": 0.0}
    many = {"Innodb_rows_read": 4140.0, "Handler_read_rnd_next": 3726.0}
    causes = causes_of(tps=200.0, cpu_us=5 * CPU_US, counts={A: few, B: many})
    assert [change.name for change in causes.changes] == ["rows_read", "server_cpu_us"]


def test_pages_read_from_disk_stand_first() -> None:
    few, many = {"Innodb_data_read": 0.0}, {"Innodb_data_read": 64e3, "Innodb_pages_read": 4.0}
    causes = causes_of(tps=500.0, counts={A: few | {"Innodb_pages_read": 0.0}, B: many})
    assert causes.changes[0].name == "read_kb"
    assert causes.changes[0].ratio is None, "the baseline reads nothing"
    assert "Innodb_pages_read" not in {change.name for change in causes.changes}


def test_cpu_is_the_cause_where_only_cpu_differs_and_waiting_where_nothing_does() -> None:
    causes = causes_of(tps=500.0, cpu_us=2 * CPU_US)
    assert [change.name for change in causes.changes] == ["server_cpu_us"]
    waiting = causes_of(tps=500.0).first
    assert isinstance(waiting, Factor)
    assert (waiting.name, waiting.ratio) == ("waiting", pytest.approx(0.5, rel=1e-2))


def test_pages_found_in_memory_explain_little_cpu() -> None:
    # MySQL 8.0.15 looks up 93 pages in a read-only transaction, 5.7.22 159, for 532 µs less CPU.
    requests = {
        system: {"Innodb_buffer_pool_read_requests": n} for system, n in ((A, 93), (B, 159))
    }
    causes = causes_of(tps=RATE * CPU_US / 1332, cpu_us=1332.0, counts=requests)
    assert [change.name for change in causes.changes] == [
        "server_cpu_us",
        "Innodb_buffer_pool_read_requests",
    ]
    assert causes.changes[1].explains == pytest.approx(66 * 2 / 532, rel=0.3)


def test_a_cost_of_waiting_explains_no_cpu() -> None:
    """Slower transactions share fewer syncs: a consequence."""
    counts = {A: {"Innodb_data_fsyncs": 0.4}, B: {"Innodb_data_fsyncs": 1.2}}
    assert first_of(tps=500.0, cpu_us=2 * CPU_US, counts=counts) == "server_cpu_us"
    assert first_of(tps=500.0, counts=counts) == "syncs"


def test_syncs_may_explain_all_that_is_neither_cpu_nor_queueing() -> None:
    """By logarithms three times the CPU is most of the difference, but hardly any time."""
    counts = {A: {"Innodb_data_fsyncs": 1.0}, B: {"Innodb_data_fsyncs": 9.0}}
    facts = {"tps": 300.0, "cpu_us": 3 * CPU_US, "counts": counts}
    for queued_s, first in ((0.0, "syncs"), (15_000.0, "work")):
        work = {"user_s": 700.0, "system_s": 0.0, "queued_s": 0.0}
        threads = {A: {"connection": work}, B: {"connection": {**work, "queued_s": queued_s}}}
        assert first_of(**facts, threads=threads) == first
    assert first_of(**facts) == "server_cpu_us", "nobody knows how long threads were queued"


def test_work_in_the_background_is_no_cause() -> None:
    """A server that syncs 50 times a second has twice the syncs per transaction at half the TPS."""
    counts = {A: {"Innodb_data_fsyncs": 0.05}, B: {"Innodb_data_fsyncs": 0.1}}
    causes = causes_of(tps=500.0, counts=counts)
    assert causes.changes == ()
    assert causes.first is not None
    assert causes.first.name == "waiting"
    less = causes_of(tps=500.0, counts={A: counts[A], B: {"Innodb_data_fsyncs": 0.08}})
    assert "syncs" not in {change.name for change in less.changes}


def test_a_disk_that_only_syncs_is_a_cause_though_it_syncs_as_often_per_second() -> None:
    counts = {A: {"Innodb_data_fsyncs": 1.0}, B: {"Innodb_data_fsyncs": 2.0}}
    assert first_of(tps=500.0, counts=counts) == "syncs"
    assert first_of(tps=2000.0, counts={A: counts[B], B: counts[A]}) == "syncs"


def test_a_count_on_one_system_only_has_no_ratio() -> None:
    counts = {A: {"Innodb_data_fsyncs": 1.0}, B: {"Innodb_data_fsyncs": 0.0}}
    first = causes_of(tps=2000.0, counts=counts).first
    assert isinstance(first, Change)
    assert (first.name, first.system) == ("syncs", 0)
    assert (first.ratio, first.low, first.high) == (None, None, None)


def test_equal_systems_have_no_cause_whatever_they_count() -> None:
    rows = {A: {"Innodb_rows_read": 414.0}, B: {"Innodb_rows_read": 4140.0}}
    causes = causes_of(tps=RATE, counts=rows)
    assert (causes.changes, causes.first, causes.is_different) == ((), None, False)
    assert causes.examined >= 10


def test_a_handful_of_counts_claims_nothing() -> None:
    counts = {A: {"Innodb_row_lock_waits": 0.0}, B: {"Innodb_row_lock_waits": 5e-4}}
    names = {change.name for change in causes_of(tps=500.0, counts=counts).changes}
    assert "Innodb_row_lock_waits" not in names


def test_what_falls_or_is_counted_by_a_cost_is_no_counter() -> None:
    status = {
        "Threads_running": 5.0,
        "Innodb_buffer_pool_pages_data": 7.0,
        "Innodb_buffer_pool_pages_free": 7.0,
        "Innodb_buffer_pool_wait_free": 3.0,
        "Max_used_connections": 9.0,
        "bgwriter.checkpoint_write_time": 9.0,
        "Shrinking": -1.0,
        "Constant": 0.0,
        "Com_select": 100.0,
    }
    measured = [making.measurement(status=status), making.measurement(status=status)]
    costs = [source for cost in COSTS for source in cost.sources]
    assert {source.name for source in own_counters(measured, costs)} == {
        "Questions",
        "Com_select",
        "Com_commit",
        "Innodb_buffer_pool_wait_free",
        "Innodb_os_log_fsyncs",
    }
    assert {cost.name for cost in COSTS} == UNITS.keys()


def test_an_open_loop_has_counters_but_no_factors_and_no_parts() -> None:
    plan = making.plan(blocks=3)
    plan = making.with_parts(plan, load=LoadPlan(rates=("1000",), connections=64))
    measured = [
        at_rate(system, block, latency_ms=latency_ms)
        for block in range(3)
        for system, latency_ms in ((A, 10.0), (B, 20.0))
    ]
    (causes,) = judge(measured, plan).causes
    assert (causes.factors, causes.time) == ((), ())


def test_two_blocks_have_no_causes() -> None:
    assert judge(trials(tps=500.0)[:4], PLAN).causes == ()
