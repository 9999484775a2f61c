"""Real PostgreSQL servers, 15 to 18: a whole life each, and what only a real one can show."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.settle import settle
from dbdyno.experiment.watch.proc import family, read_process
from dbdyno.files import occupied_bytes
from dbdyno.servers import axes, base, open
from dbdyno.servers.postgres.instance import (
    SEGMENTS,
    SHARED_FILES,
    _control_handle,
    _listed,
    segments,
)
from dbdyno.servers.process import server_user
from support.lab_process import GONE_S, lives, until

pytestmark = pytest.mark.live
REFERENCES = ["postgres:15.19", "postgres:16.15", "postgres:17.11", "postgres:18.6"]
NEWEST = REFERENCES[-1]
SMALL = {"shared_buffers": "64MB", "work_mem": "8MB"}
LEAN = {"durability": "0/2", "buffer_pool": "25%", "redo_log": "64M"}
LEAN |= {"thread_pool": "off", "binlog": "off"}
"""Every axis of settings that a plan can vary."""
DATASET_BYTES = 741 * 1024**2 + 12_345
"""A quarter of it is no multiple of anything that a server counts in."""
DIGEST = "SELECT count(*), md5(string_agg(t::text, '|' ORDER BY id)) FROM t"


def quiet(text: str) -> None:
    assert text


@pytest.fixture(scope="module")
def folder():
    """A folder that the servers' user may enter (pytest's own are closed)."""
    made = Path(tempfile.mkdtemp(prefix="dbdyno-live-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def shared(folder):
    made = open.instance(base.ServerSpec("pg", NEWEST, SMALL), folder / "shared", quiet)
    yield made
    made.close()


@pytest.fixture
def instance(shared):
    """The newest, stopped; what a test starts is stopped after it."""
    started = []
    real = shared.start
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            shared, "start", lambda *given: (started.append(real(*given)), started[-1])[1]
        )
        yield shared
    for server in started:
        if server.alive():
            server.stop()


def ask(server, sql, password=None):
    """Rows answered to the load user over TCP, as an engine would ask."""
    with psycopg.connect(
        host=server.endpoint.host,
        port=server.endpoint.port,
        user=server.credentials.user,
        password=server.credentials.password if password is None else password,
        dbname=server.database,
        autocommit=True,
        sslmode="disable",
    ) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def memory_of(pid):
    """The shared memory that a server made: its segment's number, its files' names."""
    found = []
    for segment in segments(SEGMENTS.read_text()):
        if segment.creator == pid:
            handle = _control_handle(segment.number, pid)
            control = f"PostgreSQL.{handle}"
            listed = _listed(control, segment.owner)
            found += [str(segment.number), control, *listed]
    return found


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_whole_life_of_a_server(reference, folder):
    instance = open.instance(base.ServerSpec("pg", reference, SMALL), folder / reference, quiet)
    server = instance.start()
    settings, version = server.settings(), reference.partition(":")[2]
    assert server.version() == version
    assert (settings["shared_buffers"], settings["data_checksums"]) == ("64MB", "on")
    assert (settings["fsync"], settings["listen_addresses"]) == ("on", "127.0.0.1")
    ask(server, "CREATE TABLE t (id int PRIMARY KEY, pad text)")
    ask(server, "INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i")
    before, grown = server.ask(DIGEST), server.status()
    assert before[0][0] == "20000"
    assert grown["Uptime"] > 0
    assert grown["database.tup_inserted"] >= 20000
    assert grown["wal.wal_bytes"] > 20000 * 200
    ask(server, "UPDATE t SET pad = pad || 'y'")
    settled = settle(server, 60)
    assert settled.done, settled.detail
    # a session tells of the rows that it changed when it has ended, which may be after the vacuum
    until(lambda: settle(server, 60).detail.startswith("0 tables"), "nothing left to vacuum", 10)
    changed = server.ask(DIGEST)
    server.stop()
    instance.snapshot()
    assert instance.data_bytes() > 20000 * 200
    log = instance.folder / "snapshot" / "data" / "pg_wal"
    assert occupied_bytes(log) < 17 * 1024**2  # a segment; those behind it are zeros
    again = instance.start({"work_mem": "16MB", "statement_timeout": "90s"})
    settings = again.settings()
    assert (settings["work_mem"], settings["statement_timeout"]) == ("16MB", "90s")
    assert again.ask("SHOW statement_timeout") == [("1min",)]  # dbdyno's own sessions have theirs
    assert again.credentials.password != server.credentials.password
    ask(again, "DELETE FROM t WHERE id < 1000")
    again.stop()
    instance.restore()
    varied = instance.start(axes.keys_of("postgres", version, LEAN, {}, DATASET_BYTES))
    assert varied.ask(DIGEST) == changed != before
    shown = varied.settings()
    wanted = {"shared_buffers": "185MB", "max_wal_size": "64MB", "synchronous_commit": "off"}
    assert {name: shown[name] for name in wanted} == wanted
    assert shown["fsync"] == "on"
    instance.close()
    assert not (folder / reference / "server").exists()


def test_it_runs_as_nobody_special_on_loopback_and_shows_no_password(instance):
    server = instance.start()
    process = psutil.Process(server.pid)
    mine = pwd.getpwuid(os.geteuid()).pw_name
    user = server_user()
    assert process.username() == (mine if user is None else user.name)
    listening = {c.laddr.ip for c in process.net_connections("inet")}
    assert listening == {"127.0.0.1"}
    told = [path.read_text("utf-8", "replace") for path in instance.folder.glob("*.*")]
    told += [path.read_text() for path in (instance.folder / "server").glob("*.conf")]
    told += [path.read_text() for path in (instance.folder / "server" / "data").glob("*.conf")]
    assert server.credentials.password not in " ".join([*process.cmdline(), *told])
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(server, "SELECT 1", password="wrong")
    rights = ask(server, "SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user")
    assert rights == [("dbdyno", False)]
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        psycopg.connect(
            host=server.endpoint.host,
            port=server.endpoint.port,
            user="dbdyno_admin",
            dbname=server.database,
        )


def test_a_server_that_forks_is_seen_with_all_it_forked(instance):
    server = instance.start()
    assert isinstance(server, base.Observable)
    observer = server.observer()
    before, commits = read_process(server.pid), observer.read()["database.xact_commit"]
    assert len(family(server.pid)) > 3
    server.ask("CREATE TABLE kept AS SELECT g FROM generate_series(1, 400000) g")
    server.ask("SELECT count(*) FROM kept a JOIN kept b USING (g)")
    after = read_process(server.pid)
    assert after.cpu_s - before.cpu_s > 0.1
    assert (after.written_bytes or 0) - (before.written_bytes or 0) > 5_000_000
    assert after.rss_bytes < 500_000_000
    deadline = time.monotonic() + 60  # a session tells what it did within a second or so
    while observer.read()["database.xact_commit"] <= commits:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    observer.close()


def test_an_unknown_setting_is_quoted_from_the_servers_log(instance):
    with pytest.raises(ServerError, match="pg: the server did not start") as caught:
        instance.start({"wonder": 1})
    assert 'unrecognized configuration parameter "wonder"' in (caught.value.found or "")


def test_a_rounded_setting_is_an_error_with_both_values(instance):
    with pytest.raises(ServerError, match="did not take work_mem as asked") as caught:
        instance.start({"work_mem": "1500500B"})
    assert caught.value.wanted == "work_mem = 1500500B"
    assert caught.value.found == "work_mem = '1465 kB'"
    place = str(instance.folder)
    assert not [p for p in psutil.process_iter(["cmdline"]) if place in str(p.info)]


def test_a_folder_may_have_an_odd_and_long_name(folder):
    name = "Meß, werte #1 測定's $x " + "long-" * 20
    made = open.instance(base.ServerSpec("odd", NEWEST, SMALL), folder / name, quiet)
    server = made.start()
    assert made.folder.is_relative_to(folder)
    assert ask(server, "SELECT 1") == [(1,)]
    socket = server.endpoint.socket
    assert socket is not None
    assert socket.is_socket()
    server.stop()
    made.close()
    assert not socket.exists()


def test_a_server_that_was_killed_says_so_leaves_nobody_gives_no_snapshot_and_recovers(instance):
    server = instance.start()
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    os.kill(server.pid, signal.SIGKILL)
    _, left = psutil.wait_procs(family[1:], timeout=GONE_S)
    assert left == []
    with pytest.raises(ServerError, match=r"had ended before it was stopped \(SIGKILL\)"):
        server.stop()
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()
    assert ask(instance.start(), "SELECT 1") == [(1,)]


def test_no_server_outlives_a_lab_that_is_killed(folder):
    lab = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from dbdyno.servers import base, open
        spec = base.ServerSpec("pg", {NEWEST!r}, {SMALL!r})
        server = open.instance(spec, Path({str(folder / "killed")!r}), lambda text: None).start()
        print(server.pid, flush=True)
        time.sleep(600)
        """
    )
    root = str(Path(open.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", lab], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root}
    ) as running:
        assert running.stdout is not None
        server = psutil.Process(int(running.stdout.readline()))
        family = [server, *server.children(recursive=True)]
        assert len(family) > 3
        held = memory_of(server.pid)
        assert len(held) > 1
        running.kill()
    limit = time.monotonic() + GONE_S
    while any(lives(one.pid) for one in family):
        assert time.monotonic() < limit, "a server outlived its lab"
        time.sleep(0.02)
    spec = base.ServerSpec("pg", NEWEST, SMALL)
    open.instance(spec, folder / "killed", quiet).close()  # as the next lab does
    assert memory_of(server.pid) == []
    assert not [name for name in held if (SHARED_FILES / name).exists()]
