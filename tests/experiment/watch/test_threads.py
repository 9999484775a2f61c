"""Threads have the group that their server names, and the work of both readings' difference."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.proc import TICKS_PER_S, read_process
from dbdyno.experiment.watch.threads import (
    ThreadReading,
    group_of,
    read_threads,
    work_between,
)
from dbdyno.measurement.parts import ThreadWork

MYSQLD = "/opt/mysql/bin/mysqld\0--defaults-file=my.cnf\0"
ADDRESS = "127.0.0.1(1234)"


def write_process(folder: Path, pid: int, title: str, program: str, children: str = "") -> None:
    """A process without threads, in a folder like /proc."""
    task = folder / str(pid) / "task"
    (task / str(pid)).mkdir(parents=True)
    (task / str(pid) / "children").write_text(children)
    (folder / str(pid) / "cmdline").write_text(title)
    (folder / str(pid) / "comm").write_text(f"{program}\n")


def write_thread(
    folder: Path,
    pid: int,
    number: int,
    name: str,
    ticks: str,
    queued_ns: int | None,
    born_ticks: int = 5,
) -> None:
    thread = folder / str(pid) / "task" / str(number)
    thread.mkdir(exist_ok=True)
    zeros = " ".join("0" * 10)
    (thread / "stat").write_text(
        f"{number} ({name}) S {zeros} {ticks} 90 90 20 0 9 0 {born_ticks}\n"
    )
    if queued_ns is not None:
        (thread / "schedstat").write_text(f"1 {queued_ns} 3\n")


@pytest.mark.parametrize(
    ("name", "program", "title", "group"),
    [
        ("mysqld", "mysqld", MYSQLD, "unnamed"),
        ("connection", "mysqld", MYSQLD, "connection"),
        ("ib_io_rd-1", "mysqld", MYSQLD, "ib_io_rd"),
        ("ib_log_writer", "mysqld", MYSQLD, "ib_log_writer"),
        ("C2 CompilerThre", "java", "java\0-jar\0x.jar\0", "C2 CompilerThre"),
        ("17", "java", "java\0-jar\0x.jar\0", "unnamed"),
        ("postgres", "postgres", "/opt/postgres/bin/postgres\0-D\0data\0", "postmaster"),
    ],
)
def test_a_thread_is_in_the_group_of_its_name(
    name: str, program: str, title: str, group: str
) -> None:
    assert group_of(name, program, title) == group


@pytest.mark.parametrize(
    ("title", "group"),
    [
        (f"dbdyno sbtest {ADDRESS} SELECT", "connection"),
        ("dbdyno sbtest ::1(1234) idle in transaction", "connection"),
        ("dbdyno sbtest [local] COMMIT", "connection"),
        (f"18/main: dbdyno sbtest {ADDRESS} idle", "connection"),
        ("18/main: walwriter \0\0\0", "walwriter"),
        ("checkpointer \0", "checkpointer"),
        ("background writer", "background writer"),
        ("autovacuum launcher", "autovacuum"),
        ("autovacuum worker sbtest", "autovacuum"),
        ("parallel worker for PID 4711 ", "parallel worker"),
        ("io worker 2", "io worker"),
        ("logical replication launcher", "logical replication"),
        (f"walsender replica {ADDRESS} streaming 0/3000148", "walsender"),
        ("", "unnamed"),
    ],
)
def test_a_process_of_postgresql_is_in_the_group_of_its_title(title: str, group: str) -> None:
    assert group_of("postgres", "postgres", f"postgres: {title}") == group


def test_threads_of_a_process_are_read_with_their_own_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proc, "PROC", tmp_path)
    write_process(tmp_path, 70, MYSQLD, "mysqld")
    write_thread(tmp_path, 70, 70, "mysqld", "30 10", 5)
    write_thread(tmp_path, 70, 71, "connection", "500 200", 9_000)
    write_thread(tmp_path, 70, 72, "ib_io_rd-12", "0 3", None)
    assert read_threads(70) == {
        70: ThreadReading("unnamed", 30, 10, 5),
        71: ThreadReading("connection", 500, 200, 9_000),
        72: ThreadReading("ib_io_rd", 0, 3, None),
    }
    assert read_threads(69) == {}


def test_unnamed_threads_that_began_after_a_server_was_ready_serve_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proc, "PROC", tmp_path)
    write_process(tmp_path, 70, MYSQLD, "mysqld")
    for number, born_ticks in ((70, 500), (71, 530), (72, 532), (73, 9000)):
        write_thread(tmp_path, 70, number, "mysqld", "30 10", 5, born_ticks)
    write_thread(tmp_path, 70, 74, "ib_clone", "30 10", 5, 9000)
    seen = read_threads(70, ready_s=5.325)
    assert [seen[number].group for number in sorted(seen)] == [
        "unnamed",
        "unnamed",
        "connection",
        "connection",
        "ib_clone",
    ]
    assert {one.group for one in read_threads(70).values()} == {"unnamed", "ib_clone"}


def test_processes_that_were_forked_are_read_but_for_those_that_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proc, "PROC", tmp_path)
    write_process(tmp_path, 70, "/bin/postgres\0-D\0data\0", "postgres", children="71 72 73 ")
    titles = {71: "postgres: walwriter \0", 72: f"postgres: dbdyno sbtest {ADDRESS} idle", 73: ""}
    for pid, title in titles.items():
        write_process(tmp_path, pid, title, "postgres")
    for pid in (70, 71, 72, 73):
        write_thread(tmp_path, pid, pid, "postgres", f"{pid} 1", 0)
    seen = read_threads(70)
    assert {pid: thread.group for pid, thread in seen.items()} == {
        70: "postmaster",
        71: "walwriter",
        72: "connection",
    }
    assert seen[72].user_ticks == 72


def test_work_of_a_group_is_the_growth_of_its_threads() -> None:
    before = {
        1: ThreadReading("connection", 100, 50, 4 * 10**9),
        2: ThreadReading("connection", 900, 900, 9 * 10**9),
        3: ThreadReading("connection", 10, 10, 10**9),
        4: ThreadReading("ib_log_writer", 40, 8, None),
    }
    after = {
        1: ThreadReading("connection", 130, 70, 5 * 10**9),
        2: ThreadReading("connection", 7, 5, 10**9),  # another thread has the number of the first
        4: ThreadReading("ib_log_writer", 41, 9, None),
        5: ThreadReading("connection", 3, 0, 5 * 10**8),  # new; thread 3 has ended
    }
    assert work_between(before, after) == {
        "connection": ThreadWork(
            user_s=(30 + 7 + 3) / TICKS_PER_S, system_s=(20 + 5) / TICKS_PER_S, queued_s=2.5
        ),
        "ib_log_writer": ThreadWork(user_s=1 / TICKS_PER_S, system_s=1 / TICKS_PER_S),
    }
    assert work_between(before, {}) == {}


def test_groups_have_the_cpu_of_a_real_process() -> None:
    before, began_s = read_threads(os.getpid()), read_process(os.getpid()).cpu_s
    began_thread_s = time.thread_time()
    while time.thread_time() < began_thread_s + 0.5:
        pass
    work = work_between(before, read_threads(os.getpid()))
    cpu_s = read_process(os.getpid()).cpu_s - began_s
    seen_s = sum(group.user_s + group.system_s for group in work.values())
    assert seen_s >= 0.45
    assert seen_s == pytest.approx(cpu_s, abs=0.1)
