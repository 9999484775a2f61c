"""What was watched survives the store, and an older dbdyno's samples are still read."""

from __future__ import annotations

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import ProcessWork, StatusSeries, WatchSample
from support import making

OLD = {
    "at_s": 0.5,
    "host_cpu_user": 1.0,
    "host_cpu_system": 0.5,
    "host_cpu_iowait": 0.0,
    "host_cpu_steal": 0.0,
    "host_cpu_idle": 2.5,
    "memory_available_bytes": 1,
    "disk_read_bytes_per_s": 0.0,
    "disk_written_bytes_per_s": 0.0,
    "disk_writes_per_s": 0.0,
    "server_cpu": 1.0,
    "server_rss_bytes": 1,
    "generator_cpu": 0.2,
}


def test_a_sample_of_an_older_dbdyno_has_the_rest_unknown() -> None:
    sample = WatchSample.model_validate(OLD)
    assert (sample.length_s, sample.disks, sample.pressure_io_full) == (1.0, {}, None)


def test_a_measurement_of_an_older_dbdyno_is_read() -> None:
    old = making.measurement().model_dump(exclude={"status_seconds"})
    del old["server"]["process"]
    back = Measurement.model_validate(old)
    assert (back.status_seconds, back.server.process) == (None, None)


def test_switches_are_both_kinds_or_unknown() -> None:
    assert ProcessWork(switches_voluntary=3, switches_involuntary=4).switches == 7
    assert ProcessWork(switches_voluntary=3).switches is None


def test_columns_come_back_from_json_as_they_were() -> None:
    series = StatusSeries(at_s=(0.5, 1.5), took_ms=(2, 3), counters={"Questions": (10.0, None)})
    assert StatusSeries.model_validate_json(series.model_dump_json()) == series


def test_only_samples_of_the_window_are_measured() -> None:
    made = making.measurement(warmup_s=2, window_s=3)
    assert [sample.at_s for sample in made.watch_measured] == [2.5, 3.5, 4.5]
    assert made.model_copy(update={"intervals": ()}).watch_measured == ()
