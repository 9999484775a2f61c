"""`--server NAME`: the login of a server that `dbdyno servers start` has started."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cli.test_servers import STATE

from dbdyno.__main__ import main
from dbdyno.servers.kept import kept
from dbdyno.servers.kept.kept import KeptServer


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Makes a server of this state the only one of every workspace."""
    (tmp_path / "password").write_text("secret-4711")

    def made(state=STATE, is_held=True):
        servers = [KeptServer("one", tmp_path, is_held, state)]
        monkeypatch.setattr(kept, "all_of", lambda workspace: servers)

    return made


def spec_of(engine, line):
    assert main(["sysbench", *line.split(), "--events=1", "run"]) == 0
    return engine.specs[-1]


@pytest.mark.parametrize(
    "line",
    [
        "--server one oltp_read_only",
        "oltp_read_only --server=one",
        "--config-file=o oltp_read_only",
    ],
)
def test_it_stands_for_the_options_of_a_login(engine, start, monkeypatch, tmp_path, line):
    start()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o").write_text("server=one\n")
    monkeypatch.setenv("MYSQL_PWD", "of another server")
    spec = spec_of(engine, line)
    assert spec["endpoint"] == {"host": "127.0.0.1", "port": 3307}
    login = (spec["user"], spec["password"], spec["database"])
    assert login == ("dbdyno", "secret-4711", "sbtest")


def test_options_that_are_typed_win(engine, start):
    start()
    typed = "--mysql-user=me --mysql-password= --mysql-db=mine --mysql-port=7"
    spec = spec_of(engine, f"{typed} --server=one oltp_read_only")
    assert spec["endpoint"] == {"host": "127.0.0.1", "port": 7}
    assert (spec["user"], spec["password"], spec["database"]) == ("me", "", "mine")


def test_a_postgresql_is_reached_by_its_own_driver(engine, start):
    start(replace(STATE, driver="pgsql", port=5433))
    spec = spec_of(engine, "--server=one oltp_read_only")
    assert (spec["driver"], spec["endpoint"]) == ("pgsql", {"host": "127.0.0.1", "port": 5433})
    assert (spec["user"], spec["password"]) == ("dbdyno", "secret-4711")


@pytest.mark.parametrize(
    ("word", "is_held", "message"),
    [
        ("--server=one", False, "the server one does not run\n  found: it is ended\n"),
        ("--server=two", True, "no server is called two\n"),
        ("--server", True, "which server?\n"),
    ],
)
def test_without_a_running_server_nothing_is_sent(engine, start, capsys, word, is_held, message):
    start(is_held=is_held)
    assert main(["sysbench", "oltp_read_only", "run", word]) == 1
    out, err = capsys.readouterr()
    assert (out, engine.specs) == ("", [])
    assert err.startswith(message)


def test_its_password_is_no_part_of_the_results(engine, start, capsys):
    start()
    spec_of(engine, "--server=one oltp_read_only --output=json")
    out, err = capsys.readouterr()
    assert '"server": "one"' in out
    assert "secret-4711" not in out + err


def test_it_is_refused_where_nobody_finds_servers(sysbench, engine):
    assert sysbench("--server=one oltp_read_only run") == 1
    assert sysbench.stderr.startswith("invalid option: --server\n")
    assert engine.specs == []
