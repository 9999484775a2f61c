import os
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local.server import Site
from dbdyno.servers.postgres import server as starting
from dbdyno.servers.reference import find

ENTRY = find("postgres:18.6")


def test_only_the_lab_and_the_load_may_log_in_and_the_load_from_here_alone():
    rules = [line.split() for line in starting.login_rules("dbdyno").splitlines()]
    assert rules == [
        ["local", "all", "dbdyno_admin", "peer", "map=lab"],
        ["local", "all", "dbdyno", "scram-sha-256"],
        ["host", "all", "dbdyno", "127.0.0.1/32", "scram-sha-256"],
    ]


def test_a_program_that_ends_at_once_is_quoted_and_leaves_no_password(tmp_path):
    home, work = tmp_path / "home", tmp_path / "server"
    (home / "bin").mkdir(parents=True)
    (work / "data").mkdir(parents=True)
    program = home / "bin" / "postgres"
    program.write_text('#!/bin/sh\necho "FATAL:  no room for $1 $2"\nexit 7\n')
    program.chmod(0o755)
    with pytest.raises(ServerError, match=r"did not start \(exit code 7\)") as caught:
        starting.start(Site("pg", ENTRY, home, work, None, {"work_mem": "8MB"}), 4711)
    assert caught.value.found == f"FATAL:  no room for -D {work / 'data'}"
    written = work / "data" / "postgresql.auto.conf"
    assert "work_mem = '8MB'\n" in written.read_text()
    assert written.stat().st_mode & 0o777 == 0o600
    assert "password" not in written.read_text().replace("password_encryption", "")


def test_a_user_without_a_name_is_told_so(monkeypatch):
    def nameless(uid):
        raise KeyError(uid)

    monkeypatch.setattr(starting.pwd, "getpwuid", nameless)
    with pytest.raises(ServerError, match="users that have a name") as caught:
        starting._own_name(Site("pg", ENTRY, Path("/h"), Path("/w"), None, {}))
    assert caught.value.found == f"user id {os.geteuid()}, which has none"
