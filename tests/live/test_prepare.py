"""Loads against real servers: the same rows whichever way they come, and ends in good order."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.counters import settled
from support.real_server import started
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
ROWS = 30_000
"""More than a chunk: a table is loaded in two."""
FILES = {"local_infile": "ON"}


@pytest.fixture(scope="module", params=["mysql:5.7.22", "mysql:8.0.15"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[Server]:
    with started("prepare", "mysql:5.7.22", FILES) as running:
        yield running


def connected(server: Server) -> pymysql.Connection:
    endpoint, credentials = server.endpoint, server.credentials
    place = {"host": endpoint.host, "port": endpoint.port, "database": server.database}
    login = {"user": credentials.user, "password": credentials.password}
    return pymysql.connect(**place, **login)


def query(server: Server, sql: str) -> list[tuple[Any, ...]]:
    with closing(connected(server)) as session, session.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def spec(server: Server, **changes: Any) -> dict[str, Any]:
    return {
        "endpoint": {"host": server.endpoint.host, "port": server.endpoint.port},
        "user": server.credentials.user,
        "password": server.credentials.password,
        "database": server.database,
        "tables": 2,
        **changes,
    }


def load(server: Server, tell: Any = None, stop: Any = None, **changes: Any) -> dict[str, Any]:
    _engine.cleanup(spec(server), _engine.Stop())
    whole = spec(server, **{"table_size": ROWS, "seed": 4, **changes})
    return _engine.prepare(whole, tell, stop or _engine.Stop())


def others(server: Server) -> list[tuple[Any, ...]]:
    """Sessions of the load that are still there; one that left needs a moment to be gone."""
    deadline = time.monotonic() + 60
    mine = "SELECT id, info FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
    while (found := query(server, f"{mine} AND user = '{server.credentials.user}'")) != []:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return found


def loads(server: Server) -> int:
    return int(settled(server)["Com_load"])


def test_one_seed_makes_the_same_tables_whichever_way_they_are_loaded(server: Server) -> None:
    checksums = set()
    for way in ("insert", "infile", "auto"):
        for threads in (1, 4):
            before = loads(server)
            assert load(server, load=way, threads=threads)["rows"] == 2 * ROWS
            by_file = loads(server) - before
            assert by_file == (0 if way == "insert" else 4)
            checksums.add(tuple(query(server, "CHECKSUM TABLE sbtest1, sbtest2")))
    assert len(checksums) == 1, checksums
    counted = f"SELECT COUNT(*), MIN(id), MAX(id), MIN(k) >= 1, MAX(k) <= {ROWS} FROM sbtest2"
    assert query(server, counted) == [(ROWS, 1, ROWS, 1, 1)]
    form = "^([0-9]{11}-){9}[0-9]{11} ([0-9]{11}-){4}[0-9]{11}$"
    odd = f"SELECT COUNT(*) FROM sbtest1 WHERE CONCAT(c, ' ', pad) NOT REGEXP '{form}'"
    assert query(server, odd) == [(0,)]


def test_the_older_tables_are_loaded_too(server: Server) -> None:
    for way in ("insert", "infile"):
        older = {"layout": "legacy_one", "tables": 1}
        _engine.cleanup(spec(server, **older), _engine.Stop())
        whole = spec(server, **older, table_size=3, seed=1, load=way)
        _engine.prepare(whole, None, _engine.Stop())
        pad = "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt"
        assert query(server, "SELECT * FROM sbtest") == [(id, 0, "", pad) for id in (1, 2, 3)]
        assert query(server, "SHOW INDEX FROM sbtest")[1][2] == "k"
    assert load(server, layout="legacy", max_rows=5, table_size=10)["rows"] == 20
    made = query(server, "SHOW CREATE TABLE sbtest2")[0][1]
    assert "`id` int(10) unsigned" in made
    assert "MAX_ROWS=5" in made


def test_prewarm_reads_the_tables(server: Server) -> None:
    load(server, table_size=500)
    before, told = settled(server)["Innodb_rows_read"], []
    whole = spec(server, table_size=500, seed=1, threads=2)
    _engine.prewarm(whole, told.append, _engine.Stop())
    assert sorted(it["table"] for it in told) == [1, 2]
    assert server.status()["Innodb_rows_read"] - before >= 2 * 2 * 500


def test_a_server_that_takes_no_files_gets_inserts(server: Server) -> None:
    query(server, "SET GLOBAL local_infile = OFF")
    try:
        before = loads(server)
        assert load(server, threads=2, table_size=1000)["rows"] == 2000
        assert loads(server) == before
        with pytest.raises(RuntimeError, match="SET GLOBAL local_infile=ON") as caught:
            load(server, load="infile", table_size=1000)
        assert caught.value.args[0]["code"] in (1148, 3948)
    finally:
        query(server, "SET GLOBAL local_infile = ON")


@pytest.mark.parametrize("way", ["insert", "infile"])
def test_a_stop_ends_a_load_soon_and_leaves_no_session(server: Server, way: str) -> None:
    stop, stopped_s = _engine.Stop(), []

    def end(_progress: dict[str, Any]) -> None:
        if not stopped_s:
            stopped_s.append(time.monotonic())
            threading.Timer(0.3, stop.set).start()

    with pytest.raises(RuntimeError) as caught:
        load(server, end, stop, load=way, threads=3, table_size=2_000_000)
    assert time.monotonic() - stopped_s[0] < 10
    failure = caught.value.args[0]
    assert failure["code"] is None
    assert failure["message"].startswith("stopped; ")
    told = int(failure["message"].split()[1])
    counted = query(
        server, "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2)"
    )
    assert counted[0][0] == told
    assert others(server) == []


def test_a_stop_ends_an_index_that_the_server_waits_with(server: Server) -> None:
    stop, reader, begun_s = _engine.Stop(), connected(server), []

    def end(progress: dict[str, Any]) -> None:
        if progress["stage"] == "create":
            # A transaction that has read the table: rows may come, an index must wait. It begins
            # before the rows, as the load goes on meanwhile.
            reader.begin()
            reader.cursor().execute("SELECT id FROM sbtest1 LIMIT 1")
        elif progress["stage"] == "insert" and not begun_s:
            begun_s.append(time.monotonic())
            threading.Timer(1, stop.set).start()

    with closing(reader), pytest.raises(RuntimeError, match="stopped") as caught:
        load(server, end, stop, tables=1, table_size=25_000, threads=1)
    assert caught.value.args[0]["stage"] == "index"
    assert time.monotonic() - begun_s[0] < 10
    assert others(server) == []


def test_a_server_that_is_killed_in_the_middle_ends_the_load(own_server: Server) -> None:
    def kill(progress: dict[str, Any]) -> None:
        if progress["stage"] == "insert" and own_server.alive():
            os.kill(own_server.pid, signal.SIGKILL)

    with pytest.raises(RuntimeError) as caught:
        load(own_server, kill, load="infile", threads=2, table_size=500_000)
    failure = caught.value.args[0]
    assert failure["stage"] == "insert"
    assert failure["statement"].startswith("LOAD DATA INTO sbtest")
    assert " of 1000000 rows were loaded" in failure["message"]
