"""A server's words steer no terminal, whatever they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.rogue_server import Caller, Talk, postgres_message, rogue, says
from support.sysbench import Shell

WORDS = "a\x1b[2J\x07\r\u202eb\tc é\u00a0".encode()


def refuses_as_mysql(caller: Caller) -> None:
    says(b"\xff\x15\x04#28000" + WORDS)(caller)


def refuses_as_postgres(caller: Caller) -> None:
    caller.line.recv(4096)
    caller.raw(postgres_message(b"E", b"SFATAL\0VFATAL\0C28000\0M" + WORDS + b"\0\0"))


@pytest.mark.parametrize("test", ["oltp_point_select", "script.lua"])
@pytest.mark.parametrize(
    ("talk", "options"),
    [
        (refuses_as_mysql, "--mysql-host=127.0.0.1 --mysql-port={}"),
        (refuses_as_postgres, "--db-driver=pgsql --pgsql-sslmode=disable --pgsql-port={}"),
    ],
    ids=["mysql", "pgsql"],
)
def test_a_refusal_is_shown_without_what_steers_a_terminal(
    shell: Shell, tmp_path: Path, test: str, talk: Talk, options: str
) -> None:
    script = "function event() end function thread_init() sysbench.sql.driver():connect() end"
    with rogue(talk) as (port, _):
        ended = shell(f"{test} {options.format(port)} --time=1 run", script)
    assert ended.returncode == 1
    assert "a [2J   b\tc é\u00a0" in ended.stdout
    assert not {"\x1b", "\x07", "\u202e"} & {*ended.stdout, *ended.stderr}
