import socket
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local.server import Site
from dbdyno.servers.mysql import server
from dbdyno.servers.reference import find

NEW = find("mysql:8.0.15")


def site(work: Path, **asked: str) -> Site:
    return Site("fast", NEW, Path("/home-of-mysql"), work, None, asked)


def test_a_fixed_port_that_is_taken_says_who_wanted_what(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ServerError) as caught:
            server.start(site(tmp_path, port=str(port)))
    assert caught.value.message == f"fast: its settings want port {port}, which is taken"
    assert "for fast (mysql:8.0.15)" in (caught.value.wanted or "")
    assert "held by" in (caught.value.found or "")


def test_a_program_that_ends_at_once_is_quoted_and_leaves_no_password(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "server"
    (home / "bin").mkdir(parents=True)
    (home / "share" / "charsets").mkdir(parents=True)
    (home / "share" / "charsets" / "Index.xml").touch()
    work.mkdir()
    program = home / "bin" / "mysqld"
    program.write_text("#!/bin/sh\necho \"[ERROR] unknown variable 'x=1'\"\nexit 7\n")
    program.chmod(0o755)
    with pytest.raises(ServerError, match=r"did not start \(exit code 7\)") as caught:
        server.start(Site("fast", NEW, home, work, None, {"x": "1"}))
    assert caught.value.found == "[ERROR] unknown variable 'x=1'"
    assert "x=1" in (work / "my.cnf").read_text()
    assert (work / "my.cnf").stat().st_mode & 0o777 == 0o600
    assert not (work / "passwords.sql").exists()
