"""What a sync of the log is, by every product's counters, and a flush of the disks."""

from __future__ import annotations

import pytest

from dbdyno.measurement.cost import COSTS
from dbdyno.measurement.syncs import disk_flushes, log_syncs, postgres_syncs
from support import making


@pytest.mark.parametrize(
    ("status", "syncs"),
    [
        ({"Innodb_os_log_fsyncs": 7.0, "Innodb_data_fsyncs": 9.0}, 7.0),
        ({"wal.wal_sync": 5.0, "io.x.relation.normal.fsyncs": 3.0}, 5.0),
        ({"io.client backend.wal.normal.fsyncs": 4.0, "io.walwriter.wal.normal.fsyncs": 1.0}, 5.0),
        ({"io.client backend.relation.normal.fsyncs": 4.0}, None),
        ({"Innodb_data_fsyncs": 9.0}, None),
    ],
)
def test_syncs_of_the_log_by_product(status: dict[str, float], syncs: float | None) -> None:
    assert log_syncs(status, {}) == syncs


def test_of_a_log_opened_for_syncing_writes_count() -> None:
    status = {"Innodb_os_log_fsyncs": 0.0, "Innodb_log_writes": 9.0}
    assert log_syncs(status, {"innodb_flush_method": "O_DSYNC"}) == 9.0
    assert log_syncs(status, {"innodb_flush_method": "O_DIRECT"}) == 0.0


def test_data_files_of_postgres_are_synced_too() -> None:
    assert postgres_syncs({"wal.wal_sync": 5.0, "io.x.relation.normal.fsyncs": 3.0}) == 8.0


def test_flushes_are_those_of_the_window_whatever_the_samples_cover() -> None:
    made = making.measurement(window_s=10)
    samples = tuple(s.model_copy(update={"disk_flushes_per_s": 20.0}) for s in made.watch)
    for watch in (samples, samples[:8]):  # 10 s of the window, and 6 s
        seen = making.changed(made, watch=watch)
        (cost,) = [one for one in COSTS if one.name == "disk_flushes"]
        assert disk_flushes(seen) == cost.sources[0].total(seen) == pytest.approx(200.0)
    assert disk_flushes(making.changed(made, watch=())) is None


def test_flushes_of_a_longer_sample_weigh_more() -> None:
    made = making.measurement(window_s=10, warmup_s=0)
    still = {"at_s": 2.5, "length_s": 5.0, "disk_flushes_per_s": 0.0}
    watch = (made.watch[0].model_copy(update=still), *made.watch[5:])
    assert disk_flushes(making.changed(made, watch=watch)) == pytest.approx(250.0)  # 5 s of 50
