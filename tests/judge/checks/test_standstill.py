"""A server that stands still while it is asked gives a result; one that nobody asked gives none."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit, examine
from dbdyno.judge.checks.standstill import no_events, stands_still
from dbdyno.judge.finding import Level
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.parts import StatusSeries
from support import making

PLAN = making.plan()


def seconds(made: Measurement, *places: int, **fields: object) -> Measurement:
    """The same trial with other measured seconds at these places."""
    intervals = list(made.intervals)
    for place in places:
        at = intervals.index(made.measured[place])
        intervals[at] = intervals[at].model_copy(update=fields)
    return making.changed(made, intervals=tuple(intervals))


def with_server(made: Measurement, **fields: object) -> Measurement:
    return making.changed(made, server=made.server.model_copy(update=fields))


def test_a_trial_without_an_answer_is_sound_and_its_throughput_is_zero():
    still = making.stood_still()
    audited = audit([still], PLAN)
    assert [one.value(PRIMARY) for one in audited.sound] == [0.0]
    assert not [f for f in audited.findings if f.level is Level.VOID]
    found = stands_still(still, PLAN)
    assert found.level is Level.NOTE
    assert {"silent_s": 10.0, "window_s": 10.0, "events": 8}.items() <= found.values.items()


def test_the_servers_own_counters_and_states_name_what_waited():
    counters = {
        "Threads_running": (9.0,) * 12,
        "Innodb_row_lock_current_waits": (0.0, 0.0, 3.0, *(7.0,) * 9),
        "Rpl_semi_sync_source_wait_sessions": (0.0,) * 12,
    }
    at_s = tuple(s + 0.5 for s in range(12))
    series = StatusSeries(at_s=at_s, took_ms=(2.0,) * 12, counters=counters)
    waiting = {"UPDATE: Waiting for global read lock": 7, "BEGIN": 1}
    still = with_server(making.stood_still(), waiting=waiting)
    values = stands_still(making.changed(still, status_seconds=series), PLAN).values
    assert values["counters"] == {"Threads_running": 9, "Innodb_row_lock_current_waits": 7}
    assert values["statements"] == waiting


def test_counters_that_come_when_it_is_over_still_belong_to_it():
    # as MariaDB 10.1 with a pool of two threads answers: after the 50 s of a lock wait
    late = StatusSeries(at_s=(26.0,), took_ms=(49_800.0,), counters={"Threads_running": (2.0,)})
    still = with_server(making.stood_still(), status_at_s=(2.0, 51.0, 51.1, 51.2))
    still = with_server(still, status={**still.server.status, "Uptime": 0.0})
    still = making.changed(still, status_seconds=late)
    values = stands_still(still, PLAN).values
    assert values["counters"] == {"Threads_running": 2}
    assert values["late_s"] == pytest.approx(49.8, abs=0.05)
    assert not [f.check for f in examine(still, PLAN) if f.level is Level.VOID]


def test_a_server_that_does_not_answer_for_its_counters_either_is_said_to():
    mute = making.changed(with_server(making.stood_still(), status={}), status_seconds=None)
    assert stands_still(mute, PLAN).values["is_mute"]


def test_lock_wait_timeouts_are_the_servers_way_to_say_that_it_stood_still():
    waited = seconds(making.stood_still(), 5, errors={"1205": 8}, restarts=8)
    assert not [f for f in examine(waited, PLAN) if f.level is Level.VOID]
    refused = seconds(making.stood_still(), 5, errors={"1040": 8})
    assert [f.check for f in examine(refused, PLAN) if f.level is Level.VOID] == ["errors"]


def test_without_events_but_with_answers_or_unasked_the_trial_is_void():
    slow = seconds(making.stood_still(), *range(10), reads=3)
    unasked = seconds(making.stood_still(), *range(10), in_flight=0)
    for made in (slow, unasked, making.measurement(tps=0, latency_ms=1)):
        (found,) = examine(made, PLAN)
        assert (found.check, found.level) == ("no-events", Level.VOID)
        assert found.values == {"events": 0, "window_s": 10.0}
    assert no_events(making.measurement(), PLAN) is None


def test_slow_statements_are_no_standstill():
    rates = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    made = seconds(making.measurement(threads=1, rates=rates), *range(1, 7), in_flight=1)
    assert stands_still(made, PLAN) is None


def test_a_server_that_stops_within_the_window_is_doubtful_and_keeps_its_numbers():
    # it works for 3 s of 10, then eight events never end: X·R is 30 % of N
    rates = (1000.0,) * 3 + (0.0,) * 7
    still = making.stood_still()
    made = making.measurement(rates=rates, latency_ms=8)
    made = seconds(made, *range(3, 10), in_flight=8)
    made = making.changed(made, intervals=(*made.intervals, still.intervals[-1]))
    found = examine(made, PLAN)
    assert not [f.check for f in found if f.level is Level.VOID]
    (stopped,) = [f for f in found if f.check in ("stands-still", "stall")]
    assert (stopped.check, stopped.level) == ("stands-still", Level.DOUBTFUL)
    assert (stopped.values["silent_s"], stopped.values["window_s"]) == (7.0, 10.0)
    assert audit([made], PLAN).sound[0].value(PRIMARY) == 300.0
