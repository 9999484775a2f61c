from __future__ import annotations

from dbdyno.measurement.parts import StatusSeries
from dbdyno.report.charts.checkpoints import BURST, CHECKPOINT, moments

MIB = float(1 << 20)


def series(**counters: tuple[float | None, ...]) -> StatusSeries:
    count = len(next(iter(counters.values())))
    named = {name.replace("__", "."): values for name, values in counters.items()}
    return StatusSeries(
        at_s=tuple(place + 0.5 for place in range(count)), took_ms=(1.0,) * count, counters=named
    )


def test_postgres_counts_its_checkpoints() -> None:
    old = series(
        bgwriter__checkpoints_timed=(0, 0, 1, 1, 1), bgwriter__checkpoints_req=(3, 3, 3, 3, 4)
    )
    assert [(m.at_s, m.what) for m in moments(old)] == [(2.5, CHECKPOINT), (4.5, CHECKPOINT)]
    new = series(checkpointer__num_done=(0, 1), checkpointer__num_timed=(0, 0))
    assert [m.at_s for m in moments(new)] == [1.5]


def test_the_age_of_a_checkpoint_falls_by_half() -> None:
    ages = tuple(age * MIB for age in (1, 4, 8, 9, 3, 5, 8, 2))
    assert [m.at_s for m in moments(series(Innodb_checkpoint_age=ages))] == [4.5, 7.5]
    positions = series(
        Innodb_redo_log_current_lsn=tuple(100 * MIB + age for age in ages),
        Innodb_redo_log_checkpoint_lsn=(100 * MIB,) * len(ages),
    )
    assert [m.at_s for m in moments(positions)] == [4.5, 7.5]


def test_a_small_age_that_wanders_is_no_checkpoint() -> None:
    ages = (1000.0, 100.0, 3000.0, 10.0)
    assert moments(series(Innodb_checkpoint_age=ages)) == []


def test_an_older_innodb_shows_where_a_burst_begins() -> None:
    flushed = (0, 100, 200, 300, 1300, 2400, 2500, 2600, 2700, 3900)
    found = moments(series(Innodb_buffer_pool_pages_flushed=flushed))
    assert [(m.at_s, m.what) for m in found] == [(4.5, BURST), (9.5, BURST)]


def test_gaps_and_missing_counters_show_nothing() -> None:
    assert moments(None) == []
    assert moments(series(Questions=(1, 2))) == []
    assert moments(series(Innodb_buffer_pool_pages_flushed=(None, 5, None))) == []
