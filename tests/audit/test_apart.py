"""Runs of one name are repeats only if they did the same work."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.imported import ImportedRun, imported
from dbdyno.audit.logs.apart import Work, told_apart
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.read import read
from dbdyno.errors import UsageError
from dbdyno.measurement.metric import PRIMARY
from support.published_logs import PGBENCH, V1, runs_in

REPEATS = "taken for repeats, as nothing in their log tells them apart"
SET_UPS = "told apart, as settings or headings in their log differ"
READ_WRITE = Work(reads=14_000, writes=4_000, others=2_000, events=1000)
READ_ONLY = Work(reads=14_000, others=2_000, events=1000)
TPCC = Work(reads=12_930, writes=13_510, others=2_010, events=1000)


def works(*every: Work) -> list[str]:
    return told_apart(["w"] * len(every), every)


@pytest.mark.parametrize(
    "other",
    [
        READ_WRITE,
        Work(reads=28_000, writes=8_000, others=4_000, events=2000),
        Work(reads=14_700, writes=4_100, others=2_100, events=1000, failed=50),
        Work(),
        Work(reads=14_000, writes=3_900, others=2_100, events=1000),
    ],
    ids=["same", "longer", "begun again", "unknown", "updates without effect"],
)
def test_runs_of_the_same_work_are_repeats(other: Work) -> None:
    assert works(READ_WRITE, other) == ["w", "w"]


def test_a_mix_by_chance_is_one_work() -> None:
    assert works(TPCC, Work(reads=6_590, writes=6_700, others=1_004, events=500)) == ["w", "w"]


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (READ_ONLY, "14 reads, 2 others an event"),
        (
            Work(reads=13_000, writes=4_000, others=2_000, events=1000),
            "13 reads, 4 writes, 2 others an event",
        ),
        (TPCC, "12.9 reads, 13.5 writes, 2.01 others an event"),
    ],
    ids=["read only", "one read less", "TPC-C"],
)
def test_runs_of_other_statements_are_told_apart(other: Work, name: str) -> None:
    first, second = works(READ_WRITE, other)
    assert (first, second) == ("w (14 reads, 4 writes, 2 others an event)", f"w ({name})")


def test_options_tell_runs_of_the_same_statements_apart() -> None:
    uniform, special = (
        Work(1000, events=1000, options=frozenset(["--tables=4", f"--rand-type={name}"]))
        for name in ("uniform", "special")
    )
    assert works(uniform, special, Work(1000, events=1000)) == [
        "w (--rand-type=uniform)",
        "w (--rand-type=special)",
        "w (--rand-type=uniform)",  # it tells no options, so it differs from neither
    ]


def log(reads: int, writes: int, others: int, tps: float = 100.0) -> str:
    """What sysbench prints of 4 threads in 10 s."""
    events, total = round(10 * tps), reads + writes + others
    return f"""Number of threads: 4
Initializing worker threads...
Threads started!
SQL statistics:
    queries performed:
        read:                            {reads * events}
        write:                           {writes * events}
        other:                           {others * events}
        total:                           {total * events}
    transactions:                        {events}   ({tps:.2f} per sec.)
    queries:                             {total * events} ({total * tps:.2f} per sec.)
    ignored errors:                      0      (0.00 per sec.)
General statistics:
    total time:                          10.0000s
    total number of events:              {events}
Latency (ms):
         avg:                                    {4e3 / tps:.2f}
         95th percentile:                        {5e3 / tps:.2f}
Threads fairness:
    events (avg/stddev):           {events / 4:.4f}/1.00
"""


CPU = """Number of threads: 4
Prime numbers limit: 20000
Threads started!
CPU speed:
    events per second:   553.94
General statistics:
    total time:                          30.0032s
    total number of events:              16621
Latency (ms):
         avg:                                    3.61
"""


def files(folder: Path, **texts: str) -> ImportedRun:
    """A run of files, by their names with `__` for a folder."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return imported([folder], "made", Mapping())


def cells(run: ImportedRun) -> list[tuple[str, str, int, float | None]]:
    return [
        (one.trial.system, one.trial.cell.workload, one.trial.block, one.value(PRIMARY))
        for one in run.measurements
    ]


def test_tests_of_one_log_are_named_by_headings_and_commands(tmp_path: Path) -> None:
    text = (
        f"=== oltp_read_only\n{log(14, 0, 2, 80)}=== point select, 4 threads\n{log(1, 0, 0, 2100)}"
        "+ sysbench /usr/share/sysbench/oltp_write_only.lua --threads=4 --mysql-password=x run\n"
        f"{log(0, 4, 2, 150)}"
    )
    assert cells(files(tmp_path, db=text)) == [
        ("db", "oltp_read_only", 0, 80),
        ("db", "oltp_point_select", 0, 2100),
        ("db", "oltp_write_only", 0, 150),
    ]
    (publication,) = read([tmp_path / "db.log"])
    assert [table.workload for table in publication.tables] == [
        "oltp_read_only",
        "oltp_point_select",
        "oltp_write_only",
    ]


def test_tests_of_one_log_without_names_are_named_by_their_statements(tmp_path: Path) -> None:
    run = files(tmp_path, db=log(14, 0, 2, 80) + log(0, 4, 2, 150) + log(14, 0, 2, 90))
    assert cells(run) == [
        ("db", "unnamed workload (14 reads, 2 others an event)", 0, 80),
        ("db", "unnamed workload (4 writes, 2 others an event)", 0, 150),
        ("db", "unnamed workload (14 reads, 2 others an event)", 1, 90),
    ]
    assert list(run.notes) == ["told apart, as runs of one name did different work", REPEATS]


def test_commands_on_two_servers_are_of_two_systems(tmp_path: Path) -> None:
    command = "$ sysbench oltp_insert --mysql-host={} --mysql-port=3306 run\n"
    text = "".join(command.format(host) + log(0, 1, 0, tps) for host, tps in (("a", 5), ("b", 9)))
    assert cells(files(tmp_path, db=text)) == [
        ("db-a-3306", "oltp_insert", 0, 5),
        ("db-b-3306", "oltp_insert", 0, 9),
    ]


def test_folders_name_systems_and_levels_and_repeats_do_not(tmp_path: Path) -> None:
    run = files(
        tmp_path,
        kernel_a__thr4__run1__res=log(1, 0, 0, 10),
        kernel_a__thr4__run2__res=log(1, 0, 0, 11),
        kernel_b__thr4__run1__res=log(1, 0, 0, 20),
    )
    assert cells(run) == [
        ("kernel_a", "unnamed workload", 0, 10),
        ("kernel_a", "unnamed workload", 1, 11),
        ("kernel_b", "unnamed workload", 0, 20),
    ]


def test_logs_of_one_name_in_two_folders_are_audited_as_two_systems(tmp_path: Path) -> None:
    files(tmp_path, kernel_a__thr4__res=log(1, 0, 0, 10), kernel_b__thr4__res=log(1, 0, 0, 20))
    (publication,) = read(sorted(tmp_path.rglob("*.log")))
    assert [table.system for table in publication.tables] == ["kernel_a", "kernel_b"]


def test_a_folder_of_all_files_is_no_part_of_a_name(tmp_path: Path) -> None:
    logs = {f"tree__{system}__4__out": log(1, 0, 0, 10) for system in ("new", "old")}
    assert [cell[0] for cell in cells(files(tmp_path, beside=log(1, 0, 0, 1), **logs))] == [
        "beside",
        "new",
        "old",
    ]


def test_folders_name_workloads_in_short_and_fields_of_a_pattern_no_systems(
    tmp_path: Path,
) -> None:
    logs = {f"{a}__{w}__4__out": log(1, 0, 0, 10) for a in ("old", "new") for w in ("ro", "rw")}
    places = [cell[:3] for cell in cells(files(tmp_path, **logs))]
    assert sorted(places) == [
        (system, f"oltp_read_{kind}", 0) for system in ("new", "old") for kind in ("only", "write")
    ]
    by_name = imported([tmp_path], "made", Mapping(), "{workload}/{threads}/out.log")
    assert {cell[:3] for cell in cells(by_name)} == {
        (system, workload, 0) for system in ("new", "old") for workload in ("ro", "rw")
    }


def test_files_of_a_folder_with_other_names_are_other_workloads(tmp_path: Path) -> None:
    """Both have one write an event, and nothing else tells them apart."""
    run = files(
        tmp_path,
        a__oltp_insert_4=log(0, 1, 0, 10),
        a__oltp_update_index_4=log(0, 1, 0, 30),
        b__oltp_insert_4=log(0, 1, 0, 20),
    )
    assert [cell[:3] for cell in cells(run)] == [
        ("a", "oltp_insert", 0),
        ("a", "oltp_update_index", 0),
        ("b", "oltp_insert", 0),
    ]


def test_containers_and_products_of_one_log_are_systems(tmp_path: Path) -> None:
    old, new = log(1, 0, 0, 10).splitlines(), log(1, 0, 0, 20).splitlines()
    pairs = zip(old, new, strict=True)
    text = "".join(f"bench57-1 | {one}\nbench80-1 | {other}\n" for one, other in pairs)
    result = "Vuser 1:8 Virtual Users configured\nSystem achieved 60 NOPM from 140 {} TPM\n"
    run = files(tmp_path, up=text, hammer="".join(map(result.format, ("MySQL", "PostgreSQL"))))
    assert [(system, block, tps) for system, _, block, tps in cells(run)] == [
        ("hammer-MySQL", 0, 1),
        ("hammer-PostgreSQL", 0, 1),
        ("up-bench57-1", 0, 10),
        ("up-bench80-1", 0, 20),
    ]


def test_tests_without_a_database_are_left_out_and_named(tmp_path: Path) -> None:
    run = files(tmp_path, all=CPU + log(1, 0, 0, 10), cpu=CPU)
    assert cells(run) == [("all", "unnamed workload", 0, 10)]
    assert run.notes == {
        "left out, as it is no load on a database": "all.log, line 1: sysbench cpu;"
        " cpu.log, line 1: sysbench cpu"
    }
    with pytest.raises(UsageError, match="no test of a database"):
        imported([tmp_path / "cpu.log"], "made", Mapping())
    with pytest.raises(UsageError, match="line 1: sysbench's test cpu, which asks no database"):
        read([tmp_path / "cpu.log"])
    (publication,) = read([tmp_path / "all.log", tmp_path / "cpu.log"])
    assert [one.threads for one in publication.tables] == [(4,)]
    assert len(publication.unread) == 2
    assert publication.unread[0].endswith("line 1: sysbench's test cpu, which asks no database")


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("File operations:", "fileio"),
        ("Running memory speed test with the following options:", "memory"),
        ("Doing thread subsystem performance test", "threads"),
        ("Doing mutex performance test", "mutex"),
        ("", "without SQL"),
    ],
)
def test_each_test_without_a_database_is_known(line: str, test: str) -> None:
    (run,) = runs_in(CPU.replace("Prime numbers limit: 20000", line).replace("CPU speed:", ""), "a")
    assert run.test_without_sql == test
    (database,) = runs_in(V1, "a")
    assert database.test_without_sql == ""


def test_the_log_of_prepare_is_left_out(tmp_path: Path) -> None:
    run = files(tmp_path, prepare="Creating table 'sbtest1'...\n", run=log(1, 0, 0, 10))
    assert [cell[0] for cell in cells(run)] == ["run"]
    assert list(run.notes.values()) == ["prepare.log, line 1: sysbench prepare"]


FIRST, SECOND, THIRD = log(1, 0, 0, 10), log(1, 0, 0, 20), log(1, 0, 0, 21)


def systems(run: ImportedRun) -> list[tuple[str, int]]:
    return [(one.trial.system, one.trial.block) for one in run.measurements]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{FIRST}+ mysql -e 'SET GLOBAL sync_binlog = 0'\n{SECOND}{THIRD}",
            [("db", 0), ("db-sync_binlog-0", 0), ("db-sync_binlog-0", 1)],
        ),
        (
            f"sync_binlog 1\n{FIRST}sync_binlog 0\n{SECOND}sync_binlog 1\n{THIRD}",
            [("db-sync_binlog-1", 0), ("db-sync_binlog-0", 0), ("db-sync_binlog-1", 1)],
        ),
        (
            f"mysqld --innodb-doublewrite=OFF\n{FIRST}mysqld --innodb-doublewrite=ON\n{SECOND}",
            [("db-innodb_doublewrite-OFF", 0), ("db-innodb_doublewrite-ON", 0)],
        ),
        (
            f"{PGBENCH}ALTER SYSTEM SET synchronous_commit TO off;\n{PGBENCH}",
            [("db", 0), ("db-synchronous_commit-off", 0)],
        ),
        (
            f"=== binlog on, run 1 of 2 ===\n{FIRST}=== binlog on, run 2 of 2 ===\n{SECOND}"
            f"=== binlog off, run 1 of 2 ===\n{THIRD}",
            [("db-binlog-on", 0), ("db-binlog-on", 1), ("db-binlog-off", 0)],
        ),
        (
            f"=== 关闭 ===\n{FIRST}=== 开启 ===\n{SECOND}",
            [("db-set-up-1", 0), ("db-set-up-2", 0)],
        ),
    ],
    ids=["statement", "printed", "option", "PostgreSQL", "heading", "Chinese"],
)
def test_set_ups_printed_between_runs_are_systems(
    tmp_path: Path, text: str, expected: list[tuple[str, int]]
) -> None:
    run = files(tmp_path, db=text)
    assert systems(run) == expected
    assert SET_UPS in run.notes


@pytest.mark.parametrize(
    "between",
    [
        "",
        "=== run 2, Mon Jan  4 09:59:01 UTC 2026 ===\n",
        "=== Sleeping ===\n",
        "=== 4 threads ===\n",
        "=== Round two ===\n",
        "--- Run 1 took 61 s ---\n",
        "Innodb_rows_read 12345\nsync_binlog 1\n",
        "SET PERSIST bind_password = 'hunter2'\n",
    ],
    ids=["nothing", "counted", "a pause", "threads", "words", "a time", "a footer", "a password"],
)
def test_words_between_runs_that_tell_no_set_up_leave_repeats_with_a_note(
    tmp_path: Path, between: str
) -> None:
    run = files(tmp_path, db=f"=== MySQL 8.0.36, run 1 ===\n{FIRST}{between}{SECOND}")
    assert systems(run) == [("db", 0), ("db", 1)]
    assert run.notes == {REPEATS: "db.log: 2 runs of unnamed workload, threads 4"}


def test_runs_of_one_command_are_repeats_without_a_note(tmp_path: Path) -> None:
    command = "sysbench oltp_point_select --tables=4 --threads=4 run\n"
    run = files(tmp_path, db=f"{command}{FIRST}{command}{SECOND}")
    assert systems(run) == [("db", 0), ("db", 1)]
    assert run.notes == {}


def test_set_ups_of_two_logs_are_no_systems(tmp_path: Path) -> None:
    run = files(tmp_path, new=f"sync_binlog=0\n{FIRST}", old=f"sync_binlog=1\n{SECOND}")
    assert systems(run) == [("new", 0), ("old", 0)]
