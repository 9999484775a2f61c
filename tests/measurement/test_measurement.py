"""What a trial saw: only the window counts, and blobs travel beside the JSON."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.measurement.measurement import (
    Cell,
    Measurement,
    events_between_readings,
    value_of,
)
from dbdyno.measurement.metric import BY_NAME, TABLE
from dbdyno.measurement.parts import KilledServer, ProcessWork
from dbdyno.report.tell.measured import cell_title
from support import making


def test_only_the_measured_window_counts() -> None:
    seen = making.measurement(tps=1000.0, window_s=10, warmup_s=2, errors={"1213": 3})
    assert len(seen.intervals) == 12
    assert (seen.events, seen.queries, seen.errors) == (10_000, 200_000, {"1213": 3})
    assert seen.value(BY_NAME["transactions_per_s"]) == 1000.0
    assert seen.value(BY_NAME["queries_per_s"]) == 20_000.0
    assert seen.histogram().count() == 10_000


def test_the_time_of_a_load_is_what_it_had_before_it_broke_off() -> None:
    whole = making.measurement(window_s=10, warmup_s=2)
    assert (whole.started_s, whole.load_s) == (1_795_240_800.0, 12.0)
    broken = making.changed(whole, window_s=0.0, intervals=whole.intervals[:1])
    assert broken.load_s == 1.0
    assert making.changed(broken, intervals=()).load_s == 0.0
    assert making.changed(whole, started_at="unknown").started_s is None


def test_readings_lie_at_the_windows_edges_where_nobody_noted_them() -> None:
    assert events_between_readings(making.measurement()) == (10_000, 10_000)


def test_a_window_without_events_has_rates_of_zero_and_no_latency() -> None:
    nothing = making.measurement(tps=0.0, latency_ms=1.0)
    known = {m.name: nothing.value(m) for m in TABLE if nothing.value(m) is not None}
    assert known == {"transactions_per_s": 0.0, "queries_per_s": 0.0}
    assert value_of([], BY_NAME["transactions_per_s"]) is None


def test_a_percentile_with_too_few_requests_beyond_it_is_not_shown() -> None:
    seen = making.measurement(tps=999.0, window_s=10)
    assert seen.value(BY_NAME["latency_ms_p95"]) is not None
    assert seen.value(BY_NAME["latency_ms_p99"]) is None


def test_histograms_are_no_part_of_json() -> None:
    seen = making.measurement()
    back = Measurement.model_validate_json(seen.model_dump_json())
    assert all(interval.histograms == {} for interval in back.intervals)


def test_a_key_from_nowhere_is_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Measurement.model_validate({**making.measurement().model_dump(), "verdict": "better"})


@pytest.mark.parametrize(
    ("cell", "title"),
    [
        (Cell(workload="oltp_read_only", threads=1), "oltp_read_only, 1 thread"),
        (Cell(workload="x", threads=8, setting="durable"), "x, 8 threads, durable"),
    ],
)
def test_a_cell_has_a_title_for_people(cell: Cell, title: str) -> None:
    assert cell_title(cell) == title


def test_only_samples_of_the_window_are_measured_and_switches_are_both_kinds_or_unknown() -> None:
    made = making.measurement(warmup_s=2, window_s=3)
    assert [sample.at_s for sample in made.watch_measured] == [2.5, 3.5, 4.5]
    assert made.model_copy(update={"intervals": ()}).watch_measured == ()
    assert ProcessWork(switches_voluntary=3, switches_involuntary=4).switches == 7
    assert ProcessWork(switches_voluntary=3).switches is None


def test_settings_of_a_killed_server_are_hidden() -> None:
    settings = {"secret_path": "/x"}
    seen = KilledServer(system="a", version="8", settings=settings, connections=4, kills=())
    assert "secret_path" not in repr(seen)


def test_a_pilot_has_a_key_of_its_own() -> None:
    trial = making.measurement(making.A).trial
    pilot = trial.model_copy(update={"is_pilot": True})
    assert trial.key != pilot.key
