"""Servers that stay up: under a fake supervisor with real processes; the client's command line."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import ServerError, StoreError, UsageError
from dbdyno.files import holder, is_locked
from dbdyno.servers.kept import kept as module
from dbdyno.servers.kept.kept import KeptState, product_of, shell
from dbdyno.servers.reference import parse
from support.archives import program
from support.lab_process import lives, until

FAKE = (sys.executable, str(Path(__file__).parents[2] / "support" / "fake_supervisor.py"))


@pytest.fixture
def workspace(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "SUPERVISOR", FAKE)
    yield tmp_path
    for server in module.all_of(tmp_path):
        module.stop(server, str)


def start(workspace, name="one", report=str):
    return module.start(workspace, name, "mysql:8.0.15", {"sync_binlog": "1"}, report)


def test_a_server_stays_until_it_is_stopped(workspace):
    messages = []
    server = start(workspace, report=messages.append)
    assert messages == ["laying out mysql:8.0.15 with {'sync_binlog': '1'}"]
    assert server.status == "running"
    assert (server.state.port, server.state.version) == (3307, "8.0.15")
    assert psutil.Process(server.state.pid).name() == "sleep"
    assert [found.name for found in module.all_of(workspace)] == ["one"]
    module.stop(module.find(workspace, "one"), str)
    assert not lives(server.state.pid)
    assert module.all_of(workspace) == []
    assert not server.folder.exists()


def test_the_password_is_in_one_closed_file_alone(workspace):
    server = start(workspace)
    assert module.password(server) == "secret-4711"
    holding = [p for p in server.folder.rglob("*") if "secret" in p.read_text()]
    assert [path.name for path in holding] == ["password"]
    assert holding[0].stat().st_mode & 0o777 == 0o600
    module.stop(server, str)
    with pytest.raises(ServerError, match="does not run"):
        module.password(server)


def test_of_two_starts_at_once_one_wins_and_the_other_harms_nothing(workspace):
    def outcome():
        try:
            return start(workspace).status
        except UsageError as error:
            return f"{error.message}; {error.hint}"

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(outcome) for _ in range(2)]
    assert sorted(one.result() for one in both) == [
        "a server called one is running already; give another --name, or: dbdyno servers stop one",
        "running",
    ]
    assert module.find(workspace, "one").status == "running"
    assert module.password(module.find(workspace, "one")) == "secret-4711"


@pytest.mark.parametrize(("driver", "scheme"), [("mysql", "mysql"), ("pgsql", "postgresql")])
def test_its_address_is_a_reference_to_an_endpoint(driver, scheme):
    state = KeptState("x:1", "1", 1, "127.0.0.1", 7, "u", "d", "", "", driver=driver)
    assert state.dsn == f"{scheme}://u@127.0.0.1:7/d"
    assert parse(state.dsn).driver == driver


def test_the_only_one_need_not_be_named(workspace):
    with pytest.raises(UsageError, match="which server") as caught:
        module.find(workspace, None)
    assert caught.value.found == f"none in {workspace}"
    start(workspace, "one")
    assert module.find(workspace, None).name == "one"
    start(workspace, "two")
    with pytest.raises(UsageError, match="which server") as caught:
        module.find(workspace, None)
    assert caught.value.found == "one, two"
    with pytest.raises(UsageError, match="no server is called three"):
        module.find(workspace, "three")


@pytest.mark.parametrize("below", [".", "servers", "servers/one"])
def test_what_others_can_write_is_not_believed(workspace, below):
    start(workspace)
    mode = (workspace / below).stat().st_mode
    (workspace / below).chmod(0o777)
    with pytest.raises(StoreError, match="can be changed by others") as caught:
        module.find(workspace, "one")
    (workspace / below).chmod(mode)
    assert "chmod -R go-w" in caught.value.hint
    assert module.find(workspace, "one").state.programs == ""


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_state_of_a_server_is_a_file_of_our_own(workspace, tmp_path, kind):
    server = start(workspace)
    state = server.folder / "state.json"
    strangers = tmp_path / "strangers.json"
    state.rename(strangers)
    if kind == "link":
        state.symlink_to(strangers)
    else:
        os.mkfifo(state)
    assert module.find(workspace, "one").state is None


def test_no_server_is_started_in_a_workspace_that_others_can_write(workspace):
    workspace.chmod(0o777)
    with pytest.raises(StoreError, match="can be changed by others"):
        start(workspace)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../up", "a b", "-x"])
def test_an_odd_name_is_refused(workspace, name):
    with pytest.raises(UsageError, match="no name for a server"):
        start(workspace, name)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("broken", ServerError, "it does not start\n  found: exit 1\n  hint: try again"),
        ("odd", UsageError, "it cannot be\n  wanted: something else"),
        ("silent", ServerError, "supervisor ended before it was ready\n  found: no word of it"),
    ],
)
def test_what_kept_it_from_starting_is_reported_and_nothing_stays(workspace, name, kind, message):
    with pytest.raises(kind) as caught:
        start(workspace, name)
    assert message in str(caught.value)
    assert module.all_of(workspace) == []


LATE = """
import os, runpy, sys, time
time.sleep(0.5)
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def test_a_start_that_is_interrupted_before_its_supervisor_began_leaves_no_server(
    workspace, monkeypatch
):
    monkeypatch.setattr(module, "SUPERVISOR", (sys.executable, "-c", LATE, FAKE[1]))

    def interrupted(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            start(workspace)
    finally:
        signal.signal(signal.SIGALRM, before)
    time.sleep(1.5)
    assert module.all_of(workspace) == []
    assert not (workspace / module.FOLDER / "one").exists()


def test_a_supervisor_that_cannot_begin_is_reported(workspace, monkeypatch):
    monkeypatch.setattr(module, "SUPERVISOR", (sys.executable, "-c", "exec('nothing')"))
    settings = {f"setting_{n}": "x" * 1000 for n in range(100)}  # more than the pipe holds
    with pytest.raises(ServerError, match="ended before it was ready") as caught:
        module.start(workspace, "one", "mysql:8.0.15", settings, str)
    assert "NameError" in (caught.value.found or "")
    assert module.all_of(workspace) == []


def test_a_server_that_died_says_how_and_can_be_started_again(workspace):
    server = start(workspace)
    os.kill(server.state.pid, signal.SIGKILL)
    until(lambda: module.find(workspace, "one").status == "ended", "its end")
    until(lambda: not is_locked(server.folder / "lock"), "its lock is free")
    assert module.find(workspace, "one").state.ending == "[ERROR] got signal 9"
    again = start(workspace)
    assert again.status == "running"
    assert again.state.pid != server.state.pid


def test_a_supervisor_that_was_killed_is_no_running_server(workspace):
    server = start(workspace)
    os.kill(holder(server.folder / "lock"), signal.SIGKILL)
    until(lambda: module.find(workspace, "one").status == "ended", "its end")
    os.kill(server.state.pid, signal.SIGKILL)  # a real one dies with it; tests/live has the proof
    module.stop(module.find(workspace, "one"), str)
    assert module.all_of(workspace) == []


def test_a_server_that_takes_long_to_stop_is_told(workspace, monkeypatch):
    server, told = start(workspace), []
    supervisor = holder(server.folder / "lock")
    os.kill(supervisor, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(module, "TOLD_EVERY_S", 0.05)
        patch.setattr(module, "STOP_S_MAX", 0.5)
        with pytest.raises(ServerError, match="did not end within"):
            module.stop(server, told.append)
    os.kill(supervisor, signal.SIGCONT)
    assert told[0].startswith("one: still stopping after ")


def test_a_number_in_a_stale_lock_file_is_nobody_to_end(workspace):
    folder = workspace / "servers" / "old"
    folder.mkdir(parents=True)
    (folder / "lock").write_text(json.dumps({"pid": os.getpid(), "since": "now"}))
    assert module.find(workspace, "old").status == "ended"
    module.stop(module.find(workspace, "old"), str)  # this test would be ended otherwise
    assert not folder.exists()


def state(reference="mysql:8.0.15", version="8.0.15", programs="", driver="mysql"):
    login = ("127.0.0.1", 3307, "dbdyno", "sbtest")
    return KeptState(reference, version, 1, *login, "now", programs, driver=driver)


def client(folder, name, says):
    return str(program(folder / name, f"#!/bin/sh\necho '{says}'\n"))


@pytest.fixture
def path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")
    return tmp_path / "path"


def test_the_password_is_in_the_environment_and_not_among_the_arguments(path):
    mysql = client(path, "mysql", "mysql  Ver 8.0.33 for Linux")
    made = shell(state(), "secret-4711", ["-e", "SELECT 1"])
    assert made.command == (
        mysql,
        *("--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port=3307"),
        *("--user=dbdyno", "--database=sbtest", "-e", "SELECT 1"),
    )
    assert made.environment["MYSQL_PWD"] == "secret-4711"
    assert "secret-4711" not in repr(made)


def test_a_client_of_mariadb_gets_the_option_for_no_tls(path):
    mariadb = client(path, "mariadb", "mariadb from 11.4.5-MariaDB, client 15.2")
    made = shell(state(version="10.11.5-MariaDB-log"), "p", [])
    assert (made.command[0], made.command[-1]) == (mariadb, "--skip-ssl")


@pytest.mark.parametrize("text", ["#!/bin/sh\nexec /bin/sleep 60\n", "#!/no/such/shell\n"])
def test_a_client_that_does_not_answer_is_an_error_in_words(path, monkeypatch, text):
    monkeypatch.setattr(module, "CLIENT_S_MAX", 0.2)
    Path(client(path, "mysql", "")).write_text(text)
    with pytest.raises(ServerError, match="does not say its version"):
        shell(state(), "p", [])


def test_the_servers_own_client_comes_first(path, tmp_path):
    client(path, "mysql", "")
    own = client(tmp_path / "home" / "bin", "mysql", "")
    assert shell(state(programs=str(tmp_path / "home")), "p", []).command[0] == own


def test_postgres_gets_its_login_from_the_environment(path):
    psql = client(path, "psql", "")
    made = shell(state("path:/opt/x", "18.6", driver="pgsql"), "secret-4711", ["-c", "SELECT 1"])
    assert made.command == (psql, "-c", "SELECT 1")
    login = {name: made.environment[f"PG{name}"] for name in ("HOST", "PORT", "USER", "DATABASE")}
    assert login == {"HOST": "127.0.0.1", "PORT": "3307", "USER": "dbdyno", "DATABASE": "sbtest"}
    assert made.environment["PGPASSWORD"] == "secret-4711"


def test_without_a_client_it_says_what_to_install(path):
    with pytest.raises(ServerError, match="no client for mysql") as caught:
        shell(state(), "p", [])
    assert caught.value.wanted == "mysql or mariadb"


@pytest.mark.parametrize(
    ("reference", "version", "driver", "product"),
    [
        ("mysql:8.0.15", "8.0.15", "mysql", "mysql"),
        ("path:/opt/x", "11.4.5-MariaDB-log", "mysql", "mariadb"),
        ("path:/opt/x", "18.6", "pgsql", "postgres"),
        ("container:postgres@sha256:00", "18.6 (Debian 18.6-1)", "pgsql", "postgres"),
        ("container:percona/percona-server@sha256:00", "8.0.36-28", "mysql", "mysql"),
    ],
)
def test_the_product_is_what_the_server_says_it_is(reference, version, driver, product):
    assert product_of(state(reference, version, driver=driver)) == product
    assert product in module.CLIENTS
