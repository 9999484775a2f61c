"""The tables have every field that is watched, no column twice, and a page that says so."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.export import tables
from dbdyno.export.tables import DISKS, KEYS, NETWORKS, TABLES, WATCH, TableDefinition, reference
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import DiskSample, NetworkSample, Step, WatchSample
from dbdyno.report.rows import Attempt, State, attempts
from support import making
from support.made_run import of_workloads, run
from support.source import ROOT

OF_TRIALS = [table for table in TABLES if table.is_of_trials]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_column_stands_there_twice(table: TableDefinition) -> None:
    names = Counter([column.name for column in (*table.keys, *table.columns)])
    assert [name for name, times in names.items() if times > 1] == []


def test_everything_that_is_watched_has_its_column() -> None:
    by_device = {"disks", "networks"}
    assert WatchSample.model_fields.keys() - by_device == WATCH.schema.keys() - {"phase"}
    same = {"phase", "at_s", "device"}
    assert DiskSample.model_fields.keys() == DISKS.schema.keys() - same
    assert NetworkSample.model_fields.keys() == NETWORKS.schema.keys() - same


def test_the_page_names_every_table_and_column() -> None:
    page = (ROOT / "docs" / "reference" / "export.md").read_text()
    assert page.endswith(reference(KEYS, TABLES)), "write `reference(KEYS, TABLES)` to its end"
    named = page.split("writes one file a table: ")[1].split(". The paths")[0]
    assert [word.strip("`,") for word in named.split()] == [table.name for table in TABLES]


# Rows say what the trial saw, in the units of their columns.


STEPS = (Step(name="restore", seconds=2.5), Step(name="settle", seconds=9, done=False))


def attempt(**made: Any) -> Attempt:
    return Attempt(making.measurement(**made), State.VALID)


def row(columns: tables.Columns, place: int = 0) -> dict[str, Any]:
    return {name: values[place] for name, values in columns.items()}


@pytest.mark.parametrize("table", OF_TRIALS, ids=lambda table: table.name)
def test_every_table_has_its_own_columns_all_of_one_length(table: Any) -> None:
    seen = making.with_kinds(making.with_threads(making.measurement(), {"a": 1.0}), {"read": 1.0})
    seen = seen.model_copy(update={"procedure": STEPS})
    server = seen.server.model_copy(update={"replication": {"commits_acknowledged": 12.0}})
    one = Attempt(seen.model_copy(update={"server": server}), State.VALID)
    made = tables.ROWS_BY_TABLE[table](one, [one.measurement])
    assert list(made) == list(table.schema)
    (length,) = {len(values) for values in made.values()}
    assert length > 0


@pytest.mark.parametrize("table", OF_TRIALS, ids=lambda table: table.name)
def test_a_trial_that_saw_nothing_has_rows_without_numbers(table: Any) -> None:
    bare = making.measurement(tps=0.0, latency_ms=1.0, failure="died")
    bare = bare.model_copy(
        update={
            "intervals": (),
            "watch": (),
            "status_seconds": None,
            "server": bare.server.model_copy(update={"process": None, "settings": {}}),
        }
    )
    made = tables.ROWS_BY_TABLE[table](Attempt(bare, State.FAILED, "died"), [bare])
    assert {len(values) for values in made.values()} == {1 if table.name == "trials" else 0}


def test_a_trial_is_one_row_of_totals() -> None:
    one = row(tables.trial(attempt(errors={"1213": 3}), []))
    assert (one["events"], one["queries"], one["errors"]) == (10_000, 200_000, 3)
    assert one["transactions_per_s"] == 1000.0
    assert (one["server_written_bytes"], one["status_cpu_ms"]) == (400_000_000, 0.4)
    assert (one["latency_ms_p999"], one["why"]) == (None, None)


def test_a_trial_names_the_machine_of_a_fleet_that_ran_it() -> None:
    there = Attempt(making.changed(making.measurement(), machine="4f1c"), State.VALID)
    assert [row(tables.trial(one, []))["machine"] for one in (there, attempt())] == ["4f1c", None]


def test_seconds_from_which_on_a_trial_counts_give_the_rate_that_is_judged() -> None:
    """B needs 6 s to come to its rate, so both systems' windows begin to count later."""
    second = np.arange(60)
    shapes = {making.A: np.ones(60), making.B: 1 - 0.4 * np.exp(-second / 6)}
    noise = np.random.default_rng(5)
    trials = [
        making.measurement(
            system,
            block,
            rates=tuple(1000 * shape * noise.normal(1, 0.02, 60)),
            window_s=60,
            warmup_s=0,
        )
        for block in range(5)
        for system, shape in shapes.items()
    ]
    trials.append(making.measurement(making.B, 5, sequence=10, failure="died"))
    made = run(making.plan(window_s=60), trials)
    *sound, failed = attempts(trials, made.judgement)
    assert row(tables.trial(failed, []))["counted_from_s"] is None
    for system in shapes:
        counted = []
        for one in (one for one in sound if one.system == system):
            from_s = row(tables.trial(one, []))["counted_from_s"]
            assert from_s > 10
            seconds = tables.intervals(one, [])
            all_of = zip(seconds["phase"], seconds["start_s"], seconds["events"], strict=True)
            counted += [n for phase, at_s, n in all_of if phase == "measured" and at_s >= from_s]
        judged = made.judgement.value(sound[0].cell, system, "transactions_per_s")
        assert judged is not None
        assert judged.value == pytest.approx(sum(counted) / len(counted))
        assert judged.value > 985  # of whole windows B has 960


def test_kinds_of_events_have_their_own_rate_and_p95() -> None:
    plain = making.measurement(tps=1000.0, latency_ms=8.0)
    seen = making.with_kinds(plain, {"payment": 0.4, "rare": 0.001})
    made = tables.event_kinds(Attempt(seen, State.VALID), [])
    assert (made["kind"], made["events"]) == (["payment", "rare"], [4_000, 10])
    assert made["per_s"] == [400.0, 1.0]
    assert made["latency_ms_p95"] == [pytest.approx(12.5, rel=0.05), None]


def test_verdicts_of_all_cells_of_workloads_and_of_cells_are_rows_of_levels() -> None:
    changes = {"oltp_read_only": (1.2, 1.2012, 1.1988), "oltp_write_only": (1.0, 1.001, 0.999)}
    made = of_workloads(changes, (1, 8))
    trials = made.measurements
    ((keys, columns),) = tables.parts_of(
        tables.LEVELS, attempts(trials, made.judgement), made.judgement
    )
    assert keys == {}
    rows = [row(columns, place) for place in range(7)]
    assert [(one["level"], one["workload"], one["threads"], one["cells"]) for one in rows] == [
        ("all", None, None, 4),
        ("workload", "oltp_read_only", None, 2),
        ("workload", "oltp_write_only", None, 2),
        ("cell", "oltp_read_only", 1, 1),
        ("cell", "oltp_read_only", 8, 1),
        ("cell", "oltp_write_only", 1, 1),
        ("cell", "oltp_write_only", 8, 1),
    ]
    judged = (*made.judgement.summaries, *made.judgement.verdicts)
    assert [(one["low"], one["high"], one["word"], one["blocks"]) for one in rows] == [
        (one.low, one.high, one.word.value, one.blocks) for one in judged
    ]
    assert rows[1]["ratio"] == pytest.approx(1.2)
    assert [rows[place]["beyond_margin"] for place in (1, 2)] == ["yes", "no"]
    assert {one["run_id"] for one in rows} == {trials[0].trial.run_id}


def test_steps_are_told() -> None:
    one = Attempt(making.measurement().model_copy(update={"procedure": STEPS}), State.VALID)
    assert list(tables.procedure(one, [])["done"]) == ["yes", "no"]
    assert list(tables.procedure(one, [])["step"]) == [0, 1]
    assert row(tables.trial(one, []))["dataset"] is None


def test_threads_of_a_server_are_rows_by_group() -> None:
    shares = {"connection": 0.75, "ib_log_writer": 0.25}
    made = making.with_threads(making.measurement(server_cpu_s=8.0), shares)
    columns = tables.thread_groups(Attempt(made, State.VALID), [])
    assert row(columns, 1) == {
        "name": "ib_log_writer",
        "user_s": pytest.approx(1.4),
        "system_s": pytest.approx(0.6),
        "queued_s": pytest.approx(0.2),
    }


def test_seconds_have_their_phase_and_latency_in_ms() -> None:
    made = tables.intervals(attempt(threads=8, tps=1000.0), [])
    assert made["phase"] == ["warmup"] * 2 + ["measured"] * 10
    first = row(made)
    assert first["latency_ms_avg"] == pytest.approx(8.0, rel=0.01)
    assert first["latency_ms_min"] <= first["latency_ms_p50"] <= first["latency_ms_max"]
    # a thousand requests: 500 beyond the median, 50 beyond p95
    assert (first["latency_ms_p95"], first["latency_ms_p99"]) == (None, None)
    busy = row(tables.intervals(attempt(tps=10_000.0), []))
    assert busy["latency_ms_p50"] <= busy["latency_ms_p95"] <= busy["latency_ms_p99"]
    assert busy["latency_ms_p99"] <= busy["latency_ms_max"]
    idle = row(tables.intervals(attempt(tps=0.0, latency_ms=1.0), []))
    assert (idle["latency_ms_avg"], idle["latency_ms_p99"]) == (None, None)


def test_devices_have_a_row_each_second() -> None:
    one = attempt()
    disks, networks = tables.disks(one, []), tables.networks(one, [])
    assert (len(disks["device"]), set(disks["device"])) == (12, {"vda"})
    assert row(networks)["received_bytes_per_s"] == 4e6
    assert tables.watch(one, [])["phase"][:3] == ["warmup", "warmup", "measured"]


@pytest.mark.parametrize(("process", "columns"), [("server", 6), ("generator", 3)])
def test_what_could_not_be_read_of_a_process_is_empty_and_never_zero(process, columns) -> None:
    one = Attempt(making.unseen(making.measurement(), process), State.VALID)
    made = tables.watch(one, [])
    own = [values for name, values in made.items() if name.startswith(f"{process}_")]
    assert own == [[None] * 12] * columns
    other = "generator" if process == "server" else "server"
    assert None not in made[f"{other}_cpu"]
    assert (row(tables.trial(one, []))["server_cpu_s"] is None) == (process == "server")


def test_an_imported_log_tells_nothing_of_the_generators_cpu() -> None:
    made = making.measurement(cpu_share_max=0.0)
    one = row(tables.trial(Attempt(made, State.VALID), []))
    assert (one["engine_cpu_s"], one["engine_cpu_share_max"]) == (None, None)


def test_counters_have_their_growth_and_levels_keep_their_value() -> None:
    made = tables.status(attempt(tps=1000.0), [])
    questions = [row(made, n) for n, name in enumerate(made["name"]) if name == "Questions"]
    assert [one["per_s"] for one in questions] == [None] + [20_000.0] * 11
    running = [row(made, n) for n, name in enumerate(made["name"]) if name == "Threads_running"]
    assert {one["value"] for one in running} == {4.0}
    assert running[0]["took_ms"] == 2.0


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.one_of(st.none(), st.floats(-1e9, 1e9))), max_size=20)
)
def test_growth_has_an_entry_for_each_reading(readings: list[tuple[float, float | None]]) -> None:
    readings.sort(key=lambda reading: reading[0])
    grown = tables.growth([at for at, _ in readings], [value for _, value in readings])
    assert len(grown) == len(readings)
    assert grown[:1] in ([], [None])


def test_a_gap_has_no_growth_on_either_side() -> None:
    assert tables.growth([0, 1, 2, 3], [1.0, None, 4.0, 6.0]) == [None, None, None, 2.0]


def test_secrets_are_no_settings() -> None:
    one = attempt(settings={"report_password": "geheim", "sql_mode": "x"})
    made = tables.settings(one, [])
    assert "sql_mode" in made["name"]
    assert "geheim" not in made["value"]


def test_costs_of_a_cell_are_counted_by_what_all_of_its_trials_have() -> None:
    handlers = {
        f"Handler_read_{how}": 5000.0 for how in ("first", "key", "next", "prev", "rnd", "rnd_next")
    }
    mysql = attempt(status=handlers)
    mariadb = attempt(system=making.B, status={**handlers, "Innodb_rows_read": math.nan})
    peers: Sequence[Measurement] = [mysql.measurement, mariadb.measurement]
    made = tables.costs(mysql, peers)
    counted = dict(zip(made["cost"], made["counted_by"], strict=True))
    assert counted["rows_read"] == "Handler_read_*"
    alone = tables.costs(mysql, [mysql.measurement])
    assert "Innodb_rows_read or Rows_read" in alone["counted_by"]
