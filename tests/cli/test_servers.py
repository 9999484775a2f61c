"""`dbdyno servers` as it is typed: which server, what is printed, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.test_app import run

from dbdyno.files import hold
from dbdyno.servers import open
from dbdyno.servers.kept import kept
from dbdyno.servers.kept.kept import KeptServer, KeptState
from dbdyno.store.store import Store

STATE = KeptState(
    *("mysql:8.0.15", "8.0.15", 4711, "127.0.0.1", 3307, "dbdyno", "sbtest"),
    *("2026-11-21T14:00:00+00:00", ""),
)


def server(
    folder: Path, name: str, state: KeptState | None = STATE, held: bool = True
) -> KeptServer:
    return KeptServer(name, folder / name, held, state)


def test_status_says_who_runs_where_since_when(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    died = KeptState(**{**vars(STATE), "ending": "[ERROR]\x1bout of memory"})
    found = [
        server(tmp_path, "a"),
        server(tmp_path, "b", None),
        server(tmp_path, "c", died, held=False),
    ]
    monkeypatch.setattr(kept, "all_of", lambda workspace: found)
    status, out, err = run("servers", "status", capsys=capsys)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "a  mysql:8.0.15  running   pid 4711  127.0.0.1:3307         "
        "since 2026-11-21T14:00:00+00:00",
        "b  -             starting  -         -                      -",
        "c  mysql:8.0.15  ended     -         [ERROR] out of memory  "
        "since 2026-11-21T14:00:00+00:00",
    ]


def test_without_servers_stdout_stays_empty(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, err = run("servers", "status", "--workspace", str(tmp_path), capsys=capsys)
    assert (status, out) == (0, "")
    assert "no server was started in" in err


def test_programs_and_pristine_data_go_when_it_is_said_so_but_not_those_in_use(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    parts = [tmp_path / "cache" / one for one in ("servers/a", "servers/b", "pristine/c", "maven")]
    for part in parts:
        part.mkdir(parents=True)
        (part / "file").write_bytes(b"x" * 2 * 1024**2)
    hold(parts[0])
    status, _, err = run("servers", "clean", capsys=capsys)
    assert (status, [part.exists() for part in parts]) == (2, [True] * 4)
    assert f"{parts[1]}  2 MiB\n" in err
    with Store.open(tmp_path / "runs"):
        pass
    _, out, _ = run("runs", "list", "--workspace", str(tmp_path / "runs"), capsys=capsys)
    assert "servers' programs: 8 MiB (dbdyno servers clean)" in out
    status, _, err = run("servers", "clean", "--yes", capsys=capsys)
    assert (status, [part.exists() for part in parts]) == (0, [True, False, False, False])
    assert err.endswith("a stays: another dbdyno uses it\n6 MiB freed\n")


def test_start_hands_over_settings_and_prints_how_the_server_is_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def start(workspace: Path, name: str, *about: object) -> KeptServer:
        asked.append((workspace, name, *about[:2]))
        return server(workspace, name)

    monkeypatch.setattr(kept, "start", start)
    typed = ("start", "mysql:8.0.15", "--set", "sync_binlog=0", "--workspace", str(tmp_path))
    status, out, err = run("servers", *typed, capsys=capsys)
    assert (status, asked) == (
        0,
        [(tmp_path, "mysql-8.0.15", "mysql:8.0.15", {"sync_binlog": "0"})],
    )
    where = f"mysql-8.0.15 --workspace {tmp_path}"
    load = f"DBDYNO_WORKSPACE={tmp_path} dbdyno sysbench --server mysql-8.0.15 oltp_read_write"
    assert (out.splitlines(), err) == (
        [
            "name: mysql-8.0.15",
            "reference: mysql:8.0.15",
            "version: 8.0.15",
            "pid: 4711",
            "dsn: mysql://dbdyno@127.0.0.1:3307/sbtest",
            f"password file: {tmp_path}/mysql-8.0.15/password",
            f"client: dbdyno servers shell {where}",
            f"prepare: {load} --tables=4 --table-size=10000 prepare",
            f"run: {load} --tables=4 --table-size=10000 run",
            f"stop: dbdyno servers stop {where}",
        ],
        "",
    )


@pytest.mark.parametrize(
    "typed", [["one", "-e", "SELECT 1"], ["-e", "SELECT 1"], ["one", "-Dshop", "-h::1"]]
)
def test_shell_becomes_the_client_with_what_was_typed_behind_its_name(
    typed: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    became = []
    program = tmp_path / "mysql"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "password").write_text("secret-4711")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kept, "all_of", lambda workspace: [server(tmp_path, "one")])
    monkeypatch.setattr(os, "execve", lambda *about: became.append(about))
    status, out, _ = run("servers", "shell", *typed, capsys=capsys)
    assert (status, out) == (0, "")
    ((path, command, environment),) = became
    assert (path, command[-2:]) == (str(program), tuple(typed[-2:]))
    assert environment["MYSQL_PWD"] == "secret-4711"


def test_a_server_that_cannot_be_started_leaves_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert open.check("mysql://u@127.0.0.1:1/d") is None
    typed = ("start", "mysql://u@127.0.0.1:1/d", "--workspace", str(tmp_path))
    status, out, err = run("servers", *typed, capsys=capsys)
    assert (status, out) == (2, "")
    assert "runs already" in err
    assert kept.all_of(tmp_path) == []
