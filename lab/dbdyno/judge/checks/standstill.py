"""Standstill of a server under load, and the statements waiting in it.

A trial without a completed event is a result if the server was there, was sent statements, and gave
no answer for most of the window: its throughput is 0. It is void if statements were answered all
along, as its events may only be longer than the window, or if no statement was sent.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Interval, StatusSeries
from dbdyno.plan.known import Fact, known_of_trial
from dbdyno.plan.plan import Plan

SHARE_MIN: Final = 0.5
"""Least share of the window without an answer; a shorter silence is a stall."""
STALL_EVENTS_MIN: Final = 10
"""Least number of events expected in a silence for it to count as a standstill, where events were
completed: slow statements are no standstill."""
LOCK_WAIT_TIMEOUT: Final = "1205"
"""The server's error code for a lock wait timeout."""
LATE_S: Final = 1.0
"""A slower answer to a reading of the counters is reported."""
WAITS: Final = (
    "Threads_running",
    "Innodb_row_lock_current_waits",
    "Rpl_semi_sync_master_wait_sessions",
    "Rpl_semi_sync_source_wait_sessions",
    "Innodb_data_pending_fsyncs",
)
"""Counters of waiting sessions, by cause; the first includes the reading session itself."""


def no_events(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: no event was completed in the window, and not because the server stood still."""
    if measurement.events > 0 and measurement.window_s > 0:
        return None
    if stands_still(measurement, plan):
        return None
    return on_trial(
        measurement,
        "no-events",
        Level.VOID,
        events=measurement.events,
        window_s=measurement.window_s,
    )


def stands_still(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note or doubtful: no statement was answered for half of the window or more.

    A note if no event was completed at all: the verdict itself states the standstill then.
    """
    stretch = longest_silence(measurement)
    if not stretch:
        return None
    silent_s = stretch[-1].end_s - stretch[0].start_s
    if silent_s < SHARE_MIN * measurement.window_s:
        return None
    if known_of_trial(measurement, plan).has(Fact.RESTING):  # events in flight rest as well
        heard_s = max(one.silence_ns_max for one in measurement.measured) / 1e9
        if heard_s < SHARE_MIN * measurement.window_s:
            return None
    working_s = measurement.window_s - silent_s
    if measurement.events and measurement.events * silent_s < STALL_EVENTS_MIN * working_s:
        return None
    return on_trial(
        measurement,
        "stands-still",
        Level.DOUBTFUL if measurement.events else Level.NOTE,
        silent_s=silent_s,
        window_s=measurement.window_s,
        events=max(one.in_flight for one in stretch),
        **_waiting(measurement, stretch),
    )


def longest_silence(measurement: Measurement) -> list[Interval]:
    """The longest stretch of measured seconds with events running and no answer."""
    groups = groupby(measurement.measured, key=_is_silent)
    stretches = [list(seconds) for silent, seconds in groups if silent]
    return max(stretches, key=lambda one: one[-1].end_s - one[0].start_s, default=[])


def _is_silent(interval: Interval) -> bool:
    is_answered = interval.queries > 0 or set(interval.errors) - {LOCK_WAIT_TIMEOUT}
    return interval.in_flight > 0 and not is_answered


def _waiting(measurement: Measurement, stretch: list[Interval]) -> dict[str, Any]:
    """The server's own account of the waiting statements."""
    series = measurement.status_seconds or StatusSeries()
    places = _asked_within(series, stretch)
    waited_s = max((series.took_ms[place] / 1e3 for place in places), default=0.0)
    return {
        "counters": _counted(series, places),
        "late_s": waited_s if waited_s >= LATE_S else None,
        "statements": dict(measurement.server.waiting),
        "is_mute": not places and not measurement.server.status,
    }


def _asked_within(series: StatusSeries, stretch: list[Interval]) -> list[int]:
    """Places of the readings awaited during the silence, however late they came."""
    start_s, end_s = stretch[0].start_s, stretch[-1].end_s
    halves_s = [took_ms / 2e3 for took_ms in series.took_ms]
    return [
        place
        for place, (at_s, half_s) in enumerate(zip(series.at_s, halves_s, strict=True))
        if at_s + half_s >= start_s and at_s - half_s <= end_s
    ]


def _counted(series: StatusSeries, places: list[int]) -> dict[str, float]:
    """The highest reading of each counter of waits, if above 0."""
    columns = {counter: series.counters.get(counter, ()) for counter in WAITS}
    most = {
        counter: max((column[place] or 0 for place in places if place < len(column)), default=0)
        for counter, column in columns.items()
    }
    return {counter: reading for counter, reading in most.items() if reading > 0}
