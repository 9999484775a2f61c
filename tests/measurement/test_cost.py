"""What a transaction cost: total over total, by a counter that all have, unknown when unknown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.measurement.cost import COSTS, HANDLER_READS, Cost, per_event, source_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import ProcessWork
from support import making

BY_NAME = {cost.name: cost for cost in COSTS}
HANDLERS = dict.fromkeys(HANDLER_READS, 1000.0)


def value(name: str, *measurements: Measurement) -> float | None:
    source = source_of(BY_NAME[name], measurements)
    return per_event(source, measurements) if source else None


@pytest.mark.parametrize(
    ("name", "per_transaction"),
    [
        ("server_cpu_us", 800.0),
        ("rows_read", 414.0),
        ("rows_changed", 4.0),
        ("read_kb", 0.0),
        ("written_kb", 9.0),
        ("log_kb", 2.0),
        ("storage_read_kb", 0.0),
        ("storage_written_kb", 40.0),
        ("syncs", 0.5),
        ("disk_flushes", 0.05),
        ("switches", 36.0),
        ("replies_kb", 3.0),
    ],
)
def test_every_cost_of_a_made_trial_is_known(name: str, per_transaction: float) -> None:
    assert value(name, making.measurement(tps=1000.0)) == pytest.approx(per_transaction)


def test_the_table_is_whole_and_its_names_are_unique() -> None:
    assert len(BY_NAME) == len(COSTS) == 12
    assert all(cost.sources and cost.unit for cost in COSTS)


def test_what_nobody_counted_is_unknown_and_not_zero() -> None:
    bare = making.measurement(status={"Innodb_rows_read": math.nan})
    bare = making.changed(bare, watch=())
    bare = bare.model_copy(
        update={"server": bare.server.model_copy(update={"process": None, "cpu_s": 0.0})}
    )
    for name in ("rows_read", "storage_read_kb", "switches", "disk_flushes", "server_cpu_us"):
        assert value(name, bare) is None
    assert value("rows_read") is None
    partly = ProcessWork(read_bytes=5, written_bytes=5)
    half = bare.model_copy(update={"server": bare.server.model_copy(update={"process": partly})})
    assert value("switches", half) is None
    assert value("storage_read_kb", half) == pytest.approx(5e-3 / half.events)


def test_systems_are_compared_by_a_counter_that_both_have() -> None:
    mysql = making.measurement(making.A, status=HANDLERS)
    odd = making.measurement(making.B, status={**HANDLERS, "Innodb_rows_read": math.nan})
    rows = BY_NAME["rows_read"]
    alone, both = source_of(rows, [mysql]), source_of(rows, [mysql, odd])
    assert (alone.name, both.name) == ("rows_read", "Handler_read_*")
    assert per_event(both, [mysql, odd]) == pytest.approx(6000 * 2 / 20_000)


MARIADB_11 = {  # what 11.4 lacks and has
    "Innodb_rows_read": math.nan,
    "Innodb_rows_inserted": math.nan,
    "Innodb_rows_updated": math.nan,
    "Innodb_rows_deleted": math.nan,
    "Innodb_os_log_fsyncs": math.nan,
    "Innodb_data_written": 0.0,
    "Rows_read": 3_980_000.0,
    "Handler_tmp_write": 950_000.0,
    "Handler_write": 10_000.0,
    "Handler_update": 20_000.0,
    "Handler_delete": 10_000.0,
}


def test_a_new_mariadb_counts_the_same_by_other_names() -> None:
    mariadb = making.measurement(making.B, status=MARIADB_11)
    mysql = making.measurement(making.A)
    assert value("rows_read", mariadb) == pytest.approx(398.0)
    assert value("rows_changed", mariadb) == pytest.approx(4.0)
    assert value("written_kb", mariadb) == pytest.approx(2.0)  # the log alone: no page was written
    assert value("rows_read", mysql, mariadb) == pytest.approx((414 + 398) / 2)
    assert value("rows_changed", mysql, mariadb) == pytest.approx(4.0)


def test_handlers_of_mysql_count_temporary_tables_and_are_no_changes() -> None:
    lacking = {name: v for name, v in MARIADB_11.items() if name.startswith("Innodb_rows")}
    handlers = {name: v for name, v in MARIADB_11.items() if name.startswith("Handler")}
    mysql = making.measurement(status={**lacking, **handlers, "Handler_tmp_write": math.nan})
    assert value("rows_changed", mysql) is None


def test_postgresql_counts_by_its_views() -> None:
    gone = dict.fromkeys(making.measurement().server.status, math.nan)
    views = {
        "database.tup_fetched": 5e6,
        "database.tup_inserted": 1e4,
        "database.tup_updated": 2e4,
        "database.tup_deleted": 1e4,
        "database.blks_read": 100.0,
        "wal.wal_bytes": 3e7,
        "wal.wal_sync": 4e3,
        "io.checkpointer.relation.normal.fsyncs": 1e3,
    }
    seen = making.measurement(status={**gone, **views})
    assert value("rows_read", seen) == 500.0
    assert value("rows_changed", seen) == 4.0
    assert value("read_kb", seen) == pytest.approx(0.08192)
    assert value("log_kb", seen) == 3.0
    assert value("syncs", seen) == 0.5
    assert value("written_kb", seen) == 3.0  # the log alone


@pytest.mark.parametrize(
    ("counters", "kb"),
    [
        ({"io.client backend.relation.normal.writes": 1000.0}, 3.8192),
        ({"io.client backend.relation.bulkwrite.extends": 1000.0}, 3.8192),
        (
            {  # 18 merges writes, and counts their bytes and the log's
                "io.checkpointer.relation.normal.writes": 10.0,
                "io.checkpointer.relation.normal.write_bytes": 8_192_000.0,
                "io.walwriter.wal.normal.writes": 900.0,
                "io.walwriter.wal.normal.write_bytes": 90_000_000.0,
            },
            3.8192,
        ),
        ({"bgwriter.buffers_clean": 1000.0}, None),  # 15 counts no blocks of all processes
    ],
)
def test_postgresql_wrote_its_blocks_and_its_log(
    counters: dict[str, float], kb: float | None
) -> None:
    gone = dict.fromkeys(making.measurement().server.status, math.nan)
    seen = making.measurement(status={**gone, "wal.wal_bytes": 3e7, **counters})
    assert value("written_kb", seen) == (kb and pytest.approx(kb))


def read_late(first_s: tuple[float, float], seconds: float) -> Measurement:
    """A window from 2 to 62 s; counters and process grew over the last so many seconds of it."""
    made = making.measurement(tps=100.0, window_s=60, server_cpu_s=seconds, status=HANDLERS)
    status = {name: grown * seconds / 60 for name, grown in made.server.status.items()}
    work = {n: v and round(v * seconds / 60) for n, v in made.server.process or ()}
    late = {
        "status": status,
        "process": ProcessWork(**work),
        "status_at_s": (*first_s, 62.0, 62.02),
    }
    return making.changed(made, server=made.server.model_copy(update=late))


@pytest.mark.parametrize("name", BY_NAME)
def test_counters_that_were_asked_for_late_count_with_the_events_since_then(name: str) -> None:
    punctual, late = read_late((2.0, 2.02), 60.0), read_late((8.0, 8.02), 54.0)
    assert value(name, late) == pytest.approx(value(name, punctual), rel=1e-3)


def test_a_trial_whose_answer_took_too_long_has_no_cost_by_it_and_leaves_others_theirs() -> None:
    """The server says after ten seconds what it had counted at some moment of them."""
    punctual, slow = read_late((2.0, 2.02), 60.0), read_late((2.0, 12.0), 50.0)
    for name in ("rows_read", "rows_changed", "written_kb", "log_kb", "syncs"):
        assert value(name, slow) is None
        assert value(name, punctual, slow) == value(name, punctual)
    by_process = read_late((2.0, 12.0), 60.0)  # read before the question
    assert value("server_cpu_us", by_process) == pytest.approx(1e4)


def test_a_window_without_transactions_has_no_cost_of_one() -> None:
    assert value("rows_read", making.measurement(tps=0.0, latency_ms=1.0)) is None


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.sampled_from(COSTS))
def test_parts_weigh_by_their_transactions(rates: list[int], cost: Cost) -> None:
    parts = [making.measurement(tps=100.0 * rate, server_cpu_s=1.0) for rate in rates]
    source = source_of(cost, parts)
    merged = per_event(source, parts)
    totals = [source.total(part) or 0.0 for part in parts]
    assert merged == pytest.approx(sum(totals) / sum(part.events for part in parts))
    single = [per_event(source, [part]) or 0.0 for part in parts]
    assert min(single) - 1e-9 <= (merged or 0.0) <= max(single) + 1e-9
