"""Names of files and folders, as people give them, name system, workload, threads and repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.names import NamedLog, names_of, parts_of

RW = "oltp_read_write"
SYSTEMS = ("mysql57", "mysql80")


def read(names: list[str], levels: list[int]) -> list[tuple[str, str, int]]:
    """System, workload and threads of logs, each of which says its number of threads, or 0."""
    logs = zip(parts_of(list(map(Path, names))), levels, strict=True)
    found = names_of([NamedLog(parts, frozenset({level} - {0})) for parts, level in logs])
    return [(one.system, one.workload, one.threads) for one in found]


@pytest.mark.parametrize(
    ("form", "systems", "workload"),
    [
        ("{s}_oltp_rw_{t}.log", SYSTEMS, RW),
        ("rw-{t}t-{s}.txt", SYSTEMS, RW),
        ("{s}/rw/{t}.log", ("57", "80"), RW),
        ("oltp_read_only_{t}_{s}.log", ("a", "b"), "oltp_read_only"),
        ("{s}-tpcc-threads-{t}_result.out", ("mysql-5.7.44", "mysql-8.0.36", "tidb"), "tpcc"),
        ("{s}_rw_{t}.log", ("8", "57"), RW),
        ("{s}/thr{t}/res.txt", ("kernel-a", "kernel-b"), ""),
        ("{t}_{s}_insert_20240105-12{t:02}00.log", ("old", "new"), "oltp_insert"),
        ("sysbench.select.{t}.{s}", ("old", "new"), "select"),
        ("{s}_{t}_results.log", ("old_test_vm", "new_test_vm"), ""),
    ],
)
def test_a_plain_form_is_understood(form: str, systems: tuple[str, ...], workload: str) -> None:
    cells = [(system, level) for system in systems for level in (8, 16)]
    names = [form.format(s=system, t=level) for system, level in cells]
    expected = [(system, workload, level) for system, level in cells]
    assert read(names, [level for _, level in cells]) == expected


@pytest.mark.parametrize(
    ("form", "system"),
    [
        ("mysql57_rw_8_{}.log", "mysql57"),
        ("rw_8_mysql57_run{}.log", "mysql57"),
        ("{}/mysql57_rw_8.log", "mysql57"),
        ("{}/rw_8.log", "{}"),
        ("rw_8_node_{}.log", "node_{}"),
        ("node_{}_rw_8.log", "node_{}"),
    ],
)
def test_a_number_behind_all_others_is_a_repeat_and_one_in_a_name_is_none(
    form: str, system: str
) -> None:
    found = read([form.format(number) for number in (1, 2, 3)], [8] * 3)
    assert [one[0] for one in found] == [system.format(n) for n in (1, 2, 3)]


def test_a_number_that_is_not_the_logs_own_is_no_load_level() -> None:
    assert read(["57_rw.log", "8_rw.log"], [8, 8]) == [("57", RW, 0), ("8", RW, 0)]
    assert read(["pg_16c_rw.log", "pg_32c_rw.log"], [8, 8]) == [
        ("pg_16c", RW, 0),
        ("pg_32c", RW, 0),
    ]
    assert read(["rw_threads16.log"], [0]) == [("", RW, 16)]


def test_a_workload_of_an_own_script_stands_where_the_others_do() -> None:
    assert read(["a_rw_8", "a_orders_8"], [8, 8]) == [("a", RW, 8), ("a", "orders", 8)]
