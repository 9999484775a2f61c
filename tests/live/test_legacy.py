"""Command lines of sysbench 0.4 and 0.5 from prepare to cleanup, with the server as the judge.

What is compared is the server's own counters of statements: they cannot know what was meant.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pymysql
import pytest

from dbdyno.servers.base import Server
from support.counters import settled
from support.real_server import SYSBENCH, sysbench_environment, sysbench_options
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
Tool = Callable[[str], str]
EVENTS = 40
SIZE = "--oltp-table-size=600"
# One connection: two would meet in a deadlock now and then, and begin an event again.
RUN = f"--num-threads=1 --max-requests={EVENTS} --max-time=60 run"
NAMES = ("select", "update", "delete", "insert", "begin", "commit", "lock_tables")
SHOWN = re.compile(r"(read|write|other): +([0-9]+)")


@pytest.fixture(scope="module", params=["mysql:5.7.22"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


@pytest.fixture
def sysbench(server: Server, tmp_path: Path) -> Tool:
    """Runs a line as if typed behind `sysbench`; its stdout. Only notes may be on stderr."""
    environment = sysbench_environment(MYSQL_PWD=server.credentials.password)

    def typed(line: str) -> str:
        command = [*SYSBENCH, *sysbench_options(server), *line.split()]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
            cwd=tmp_path,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return typed


def counted(server: Server, sysbench: Tool, line: str) -> tuple[list[float], str]:
    """By how much the counters of `NAMES` rose for each event, and what was printed."""
    before = settled(server)
    output = sysbench(line)
    after = settled(server)
    names = [f"Com_{name}" for name in NAMES]
    return [(after[name] - before[name]) / EVENTS for name in names], output


# What an event costs: selects, updates, deletes, inserts, begins, commits, locks.
SCRIPTS = {
    "oltp.lua": (14, 2, 1, 1, 1, 1, 0),
    "oltp.lua --oltp-read-only=on": (14, 0, 0, 0, 1, 1, 0),
    "oltp.lua --oltp-write-only=on": (0, 2, 1, 1, 1, 1, 0),
    "oltp.lua --oltp-skip-trx=on --oltp-point-selects=3 --oltp-range-selects=off": (
        *(3, 2, 1, 1, 0, 0, 0),
    ),
    "oltp_simple.lua": (1, 0, 0, 0, 0, 0, 0),
    "select.lua": (1, 0, 0, 0, 0, 0, 0),
    "update_index.lua": (0, 1, 0, 0, 0, 0, 0),
    "update_non_index.lua": (0, 1, 0, 0, 0, 0, 0),
    "delete.lua": (0, 0, 1, 0, 0, 0, 0),
    "insert.lua": (0, 0, 0, 1, 0, 0, 0),
    "select_random_points.lua": (1, 0, 0, 0, 0, 0, 0),
    "select_random_ranges.lua": (1, 0, 0, 0, 0, 0, 0),
}


@pytest.fixture(params=["./tests/db/", "/usr/share/nowhere/oltp_legacy/"])
def tables(request: pytest.FixtureRequest, sysbench: Tool) -> Iterator[str]:
    """Three tables; gives the folder that the scripts are said to be in."""
    line = f"--test={request.param}oltp.lua --oltp-tables-count=3 {SIZE} "
    told = sysbench(line + "prepare")
    assert "Inserting 600 records into 'sbtest3'\n" in told
    try:
        yield request.param
    finally:
        assert "Dropping table 'sbtest3'...\n" in sysbench(line + "cleanup")


def test_every_script_does_its_statements(server: Server, sysbench: Tool, tables: str) -> None:
    for script, expected in SCRIPTS.items():
        line = f"--test={tables}{script} --oltp-tables-count=3 {SIZE} {RUN}"
        found, output = counted(server, sysbench, line)
        assert found == list(expected), script
        queries = dict(SHOWN.findall(output))
        assert int(queries["read"]) == expected[0] * EVENTS, script
        assert sum(map(int, queries.values())) == sum(expected) * EVENTS, script
        assert f"total number of events:              {EVENTS}\n" in output


def test_tables_of_the_older_layout(server: Server, sysbench: Tool, tables: str) -> None:
    columns = (
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND column_type LIKE '%unsigned'"
    )
    assert rows(server, columns) == [(6,)]
    assert rows(server, "SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest3") == [(600, 1, 600)]


def rows(server: Server, sql: str) -> list[tuple[object, ...]]:
    who, place = server.credentials, server.endpoint
    connection = pymysql.connect(
        host=place.host,
        port=place.port,
        user=who.user,
        password=who.password,
        database=server.database,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


MODES = {
    "": (14, 3, 1, 1, 1, 1, 0),
    "--oltp-read-only=on": (14, 0, 0, 0, 1, 1, 0),
    "--mysql-table-engine=myisam": (14, 3, 1, 1, 0, 0, 1),
    "--oltp-test-mode=simple": (1, 0, 0, 0, 0, 0, 0),
    "--oltp-test-mode=nontrx": (1, 0, 0, 0, 0, 0, 0),
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=update_key": (0, 1, 0, 0, 0, 0, 0),
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=update_nokey": (0, 1, 0, 0, 0, 0, 0),
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=insert": (0, 0, 0, 1, 0, 0, 0),
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=delete": (0, 0, 1, 0, 0, 0, 0),
}


@pytest.mark.parametrize("ps_mode", ["auto", "disable"])
def test_the_modes_of_0_4(server: Server, sysbench: Tool, ps_mode: str) -> None:
    sysbench(f"--test=oltp {SIZE} prepare")
    try:
        for mode, expected in MODES.items():
            found, _ = counted(
                server, sysbench, f"--test=oltp {mode} {SIZE} --db-ps-mode={ps_mode} {RUN}"
            )
            assert found == list(expected), mode
        assert rows(server, "SELECT COUNT(*) FROM sbtest") == [(600,)]
    finally:
        sysbench("--test=oltp cleanup")


def test_bulk_insert_begins_with_table_0(server: Server, sysbench: Tool) -> None:
    line = "--test=tests/db/bulk_insert.lua --num-threads=2 "
    sysbench(line + "prepare")
    try:
        sysbench(line + "--max-requests=1000 --max-time=60 run")
        counts = "SELECT (SELECT COUNT(*) FROM sbtest0) + (SELECT COUNT(*) FROM sbtest1)"
        assert rows(server, counts) == [(1000,)]
    finally:
        sysbench(line + "cleanup")
    assert rows(server, "SHOW TABLES") == []


def test_parallel_prepare_loads_by_its_run(server: Server, sysbench: Tool) -> None:
    line = f"--test=tests/db/parallel_prepare.lua --num-threads=2 --oltp-tables-count=4 {SIZE} "
    sysbench(line + "--max-requests=2 run")
    try:
        assert rows(server, "SELECT COUNT(*) FROM sbtest4") == [(600,)]
    finally:
        sysbench(line + "cleanup")
    assert rows(server, "SHOW TABLES") == []


def test_the_common_module_makes_the_tables_of_today(server: Server, sysbench: Tool) -> None:
    sysbench("oltp_common --tables=2 --table-size=600 prepare")
    line = "/usr/share/nowhere/oltp_read_write.lua --tables=2 --table_size=600"
    try:
        told = sysbench(f"{line} prewarm")
        assert "Prewarming table sbtest2\n" in told
        found, _ = counted(server, sysbench, f"{line} --events={EVENTS} run")
        assert found == [14, 2, 1, 1, 1, 1, 0]
    finally:
        sysbench("oltp_common --tables=2 cleanup")
    assert rows(server, "SHOW TABLES") == []
