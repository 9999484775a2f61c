"""dbdyno in the place of sysbench, and sysbench in the place of dbdyno, on one real server.

Each must be able to use the tables of the other, do the same statements for an event, and print
the same lines: numbers are all that may differ.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from dbdyno.servers.base import Server
from support.counters import settled
from support.real_server import SYSBENCH, sysbench_environment, sysbench_options
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
Tool = Callable[..., str]
ROWS = 2000
TABLES = 2
TABLES_OPTIONS = (f"--table-size={ROWS}", f"--tables={TABLES}")
COUNTERS = tuple(f"Com_{what}" for what in ("select", "update", "delete", "insert", "commit"))


@pytest.fixture(scope="module", params=["mysql:5.7.22", "mysql:8.0.15"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


def done(command: list[str], environment: dict[str, str] | None = None) -> str:
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    # A machine that stands still for a second is told as a stall, and an event that met a deadlock
    # as the time ended as given up; neither is a difference.
    told = re.compile("note: (stall: |1 event in flight was given up)")
    said = [line for line in ended.stderr.splitlines() if not told.match(line)]
    assert (ended.returncode, said) == (0, []), ended.stdout + ended.stderr
    return ended.stdout


def environment(server: Server) -> dict[str, str]:
    return sysbench_environment(MYSQL_PWD=server.credentials.password)


@pytest.fixture
def ours(server: Server) -> list[str]:
    """The beginning of dbdyno's command line; it needs `environment`."""
    return [*SYSBENCH, *sysbench_options(server)]


@pytest.fixture
def theirs(server: Server, tmp_path: Path) -> list[str]:
    """The beginning of sysbench's command line."""
    program = shutil.which("sysbench", path="/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("sysbench is not installed: apt-get install sysbench")
    secret = tmp_path / "sysbench.cnf"  # sysbench has no other way than this file or argv
    secret.touch(mode=0o600)
    secret.write_text(f"mysql-password={server.credentials.password}\n")

    return [program, f"--config-file={secret}", *sysbench_options(server)]


@pytest.fixture
def dbdyno(server: Server, ours: list[str]) -> Tool:
    return lambda *words: done([*ours, *words], environment(server))


@pytest.fixture
def sysbench(theirs: list[str]) -> Tool:
    return lambda *words: done([*theirs, *words])


@pytest.fixture(params=["dbdyno prepares", "sysbench prepares"])
def tables(request: pytest.FixtureRequest, dbdyno: Tool, sysbench: Tool) -> Iterator[str]:
    """Tables made by one of the two; dropped by the other."""
    tools = {"dbdyno prepares": (dbdyno, sysbench), "sysbench prepares": (sysbench, dbdyno)}
    prepare, cleanup = tools[request.param]
    told = prepare("oltp_read_write", *TABLES_OPTIONS, "--threads=2", "prepare")
    try:
        yield told
    finally:
        cleanup("oltp_read_write", *TABLES_OPTIONS, "cleanup")


@pytest.fixture
def own_tables(dbdyno: Tool) -> Iterator[None]:
    """Tables for a test that does not depend on who made them."""
    dbdyno("oltp_read_write", *TABLES_OPTIONS, "--threads=2", "prepare")
    try:
        yield
    finally:
        dbdyno("oltp_read_write", *TABLES_OPTIONS, "cleanup")


def skeleton(output: str) -> list[str]:
    """The lines without the banner, every number and the blanks around it replaced by N.

    Of the interval lines one is left: sysbench may be a moment too late for its last.
    """
    lines = [re.sub(r" *[0-9]+(\.[0-9]+)? *", " N ", line) for line in output.splitlines()[1:]]
    return [line for at, line in enumerate(lines) if "thds:" not in line or line != lines[at - 1]]


def counted(server: Server, run: Callable[[], str]) -> tuple[dict[str, float], str]:
    """By how much the server's counters of statements rose, and what was printed."""
    before = settled(server)
    output = run()
    after = settled(server)
    return {name: after[name] - before[name] for name in COUNTERS}, output


def events_of(output: str) -> int:
    found = re.search(r"total number of events: +([0-9]+)", output)
    assert found is not None
    return int(found[1])


def test_both_print_the_same_lines(own_tables, dbdyno, sysbench):
    line = ("oltp_read_write", *TABLES_OPTIONS, "--threads=2", "--time=2", "--rand-seed=3")
    ours = dbdyno(*line, "--report-interval=1", "run")
    theirs = sysbench(*line, "--report-interval=1", "run")
    assert skeleton(ours) == skeleton(theirs)
    assert len(re.findall(r"^\[ [12]s \] thds: 2 tps: ", ours, re.MULTILINE)) == 2
    assert events_of(ours) > 0


MODES = ("auto", "disable")
QUERIES = re.compile(r"(read|write|other|total): +([0-9]+)")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workload", ["oltp_read_write", "oltp_write_only"])
def test_both_do_the_same_statements(server, tables, dbdyno, sysbench, workload, mode):
    """On new tables each: an update to what the row holds already would count as no write."""
    line = (workload, *TABLES_OPTIONS, "--events=60", "--time=0", f"--db-ps-mode={mode}")
    ours, our_output = counted(server, lambda: dbdyno(*line, "run"))
    theirs, their_output = counted(server, lambda: sysbench(*line, "run"))
    assert ours == theirs
    assert events_of(our_output) == events_of(their_output) == 60
    assert QUERIES.findall(our_output) == QUERIES.findall(their_output)


READS = {
    "oltp_read_only": 14,
    "oltp_point_select": 1,
    "select_random_points": 1,
    "select_random_ranges": 1,
}


def test_both_draw_the_same_rows(server, tables, dbdyno, sysbench):
    """With a seed, one thread and no writes, both read the very same rows."""
    read = ("Handler_read_key", "Handler_read_next", "Innodb_rows_read", "Sort_rows", *COUNTERS)
    for workload, mode in product(READS, MODES):
        line = (workload, *TABLES_OPTIONS, "--events=60", "--time=0", "--rand-seed=5")
        seen = []
        for tool in (dbdyno, sysbench):
            before = settled(server)
            output = tool(*line, f"--db-ps-mode={mode}", "run")
            after = settled(server)
            assert events_of(output) == 60
            rose = {name: after[name] - before[name] for name in read}
            seen.append((rose, QUERIES.findall(output)))
        assert seen[0] == seen[1], (workload, mode)
        assert seen[0][0]["Com_select"] == 60 * READS[workload]


# Of one connection's rows 39033 make the longest first INSERT; one more makes a second one.
@pytest.mark.parametrize("events", [39033, 39034, 100_000])
def test_both_insert_the_same_rows_in_bulk(server, dbdyno, sysbench, events):
    seen = {}
    for name, tool in (("dbdyno", dbdyno), ("sysbench", sysbench)):
        told = tool("bulk_insert", "--threads=2", "prepare").splitlines()[1:]
        line = ("bulk_insert", "--threads=1", f"--events={events}", "--time=0")
        counts, output = counted(server, lambda tool=tool, line=line: tool(*line, "run"))
        told += tool("bulk_insert", "--threads=2", "cleanup").splitlines()[1:]
        seen[name] = (counts, QUERIES.findall(output), events_of(output), told)
    assert seen["dbdyno"] == seen["sysbench"]
    assert seen["dbdyno"][2] == events
    assert seen["dbdyno"][0]["Com_insert"] == {39033: 1, 39034: 2, 100_000: 3}[events]


def test_both_tell_the_same_of_a_load(dbdyno, sysbench):
    told = {}
    for name, tool in (("dbdyno", dbdyno), ("sysbench", sysbench)):
        output = tool("oltp_read_write", *TABLES_OPTIONS, "prepare")
        # The order is free: a load may work on several tables at a time.
        told[name] = sorted(output.splitlines()[1:])
        tool("oltp_read_write", *TABLES_OPTIONS, "cleanup")
    assert told["dbdyno"] == told["sysbench"]


REFUSED = (
    "oltp_read_write --mysql-db=nowhere run",
    "oltp_read_write --mysql-user=nobody --mysql-password=x run",
    "oltp_read_write --tables=9 run",
    "oltp_read_write prepare",
    "oltp_read_write --threads=0 run",
    "oltp_read_write --threads=1K run",
    "oltp_read_write --percentile=p99 run",
    "oltp_read_write --verbosity=6 run",
    "oltp_read_write --skip-trx=maybe run",
    "oltp_read_write --tabel-size=1 run",
    "oltp_read_write --rand-type=normal run",
    "oltp_read_write run twice",
    "oltp_read_write walk",
    "oltp_reed_write run",
)


def refusal_of(command: list[str], environment: dict[str, str]) -> tuple[int, list[str], list[str]]:
    """Exit status, what is told on stdout, what on stderr, without what is one program's own."""
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    text = re.sub(r"/usr/share/sysbench/\w+\.lua:\d+: ", "", ended.stdout)
    own = ("sysbench 1.0.20 ", "Initializing random", "Creating table", "FATAL: hint: ", "  hint: ")
    stdout, stderr = (
        list(dict.fromkeys(line for line in told.splitlines() if line and not line.startswith(own)))
        for told in (text, ended.stderr)
    )
    return ended.returncode, [line.partition(" It must be ")[0] for line in stdout], stderr


def test_both_refuse_in_the_same_words(server, own_tables, ours, theirs):
    for line in REFUSED:
        told = refusal_of([*ours, *line.split()], environment(server))
        assert told == refusal_of([*theirs, *line.split()], dict(os.environ)), line
        assert told[0] == 1, line


BROKEN = (
    "oltp_update_index --rand-seed=7 run",
    "oltp_update_index --db-ps-mode=disable --rand-seed=7 run",
    "oltp_read_write --rand-seed=7 run",
)


def test_both_tell_a_statement_that_fails_in_the_same_words(server, own_tables, ours, theirs):
    server.ask(
        "CREATE TRIGGER sbtest.broken BEFORE UPDATE ON sbtest.sbtest1 FOR EACH ROW"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'"
    )
    for line in BROKEN:
        words = [*line.split()[:-1], f"--table-size={ROWS}", "run"]
        told = refusal_of([*ours, *words], environment(server))[:2]
        assert told == refusal_of([*theirs, *words], dict(os.environ))[:2], line
        assert told[0] == 1, line
        assert any("(not today) for query 'UPDATE sbtest1 SET k=k+1" in it for it in told[1]), line


def test_the_load_s_begin_is_told_at_once(server, own_tables, ours):
    # Two seconds are left to look in, on a busy machine too.
    words = ["oltp_read_only", *TABLES_OPTIONS, "--time=5", "--report-interval=3", "run"]
    with subprocess.Popen(
        [*ours, *words], stdout=subprocess.PIPE, text=True, env=environment(server)
    ) as child:
        assert child.stdout is not None
        for mark in ("Threads started!", "[ 3s ]"):
            while not child.stdout.readline().startswith(mark):
                assert child.poll() is None
            sessions = server.status()["Threads_connected"]
            assert sessions > 1, "it was told only when the load had ended"
        assert child.stdout.read().count("thds:") == 0, "the last interval was cut short"


def test_a_refusal_does_not_show_the_password(server, own_tables, ours):
    ended = subprocess.run(
        [*ours, "oltp_read_write", "prepare"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(server),
    )
    assert ended.returncode == 1
    assert "FATAL: mysql_drv_query() returned error 1050 (" in ended.stdout
    assert server.credentials.password not in ended.stdout + ended.stderr


def test_an_interrupted_run_reports_what_it_saw(server, own_tables, ours):
    words = ["oltp_read_only", *TABLES_OPTIONS, "--time=0", "--events=0", "--report-interval=1"]
    with subprocess.Popen(
        [*ours, *words, "run"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(server),
        bufsize=1,
    ) as child:
        assert child.stdout is not None
        while not child.stdout.readline().startswith("[ 1s ]"):
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        output = child.stdout.read()
        assert child.wait(timeout=30) == 128 + signal.SIGINT
    assert time.monotonic() - begin < 20
    assert "SQL statistics:" in output
    assert "Threads fairness:" in output
