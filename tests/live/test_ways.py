"""The persona's ways to its servers, from option to server: TLS, compression, several servers, and
sessions that are renewed or lost.

The servers say themselves how they were reached.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.servers.base import Server
from support.real_server import SYSBENCH, started, sysbench_environment
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
PASSWORD = "the same everywhere"
SESSIONS = (
    "SELECT variable_name, variable_value FROM performance_schema.status_by_thread"
    " JOIN performance_schema.threads USING (thread_id)"
    " WHERE processlist_user = 'traveller' AND variable_name IN ('Ssl_cipher', 'Compression')"
)
LOGGED_IN = "SELECT id FROM information_schema.processlist WHERE user = 'traveller'"
ENDLESS = ("--time=0", "--events=0")
Run = subprocess.Popen[str]


def open_to_travellers(server: Server) -> Server:
    asked(
        server,
        f"CREATE USER traveller@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT ALL ON *.* TO traveller@'%'",
    )
    assert finished(begun(place(server), "oltp_read_write", "prepare"))[0] == 0
    return server


@pytest.fixture(scope="module", params=["mysql:8.0.15"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield open_to_travellers(running)


def asked(server: Server, *statements: str) -> list[tuple[str, ...]]:
    """The last statement's answer as text; asked by the administrator, who may grant."""
    rows: list[tuple[str, ...]] = []
    for statement in statements:
        rows = server._client.ask(statement)  # type: ignore[attr-defined]
    return rows


def place(*them: Server) -> list[str]:
    ports = ",".join(str(server.endpoint.port) for server in them)
    return ["--mysql-host=127.0.0.1", f"--mysql-port={ports}"]


def begun(where: list[str], *words: str) -> Run:
    line = ["--mysql-user=traveller", "--mysql-db=sbtest", "--table-size=1000", *where, *words]
    return subprocess.Popen(
        [*SYSBENCH, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=sysbench_environment(MYSQL_PWD=PASSWORD),
    )


def finished(run: Run) -> tuple[int, str, str]:
    out, err = run.communicate(timeout=120)
    assert PASSWORD not in out + err
    return run.returncode, out, err


def interrupted(run: Run) -> str:
    """Ends a run that goes on until then; what it reported."""
    run.send_signal(signal.SIGINT)
    status, out, err = finished(run)
    assert status == 128 + signal.SIGINT, out + err
    return out


def document(run: Run) -> dict[str, Any]:
    status, out, err = finished(run)
    assert status == 0, out + err
    told: dict[str, Any] = json.loads(out)
    return told


def while_running(server: Server, run: Run, statement: str, rows: int) -> list[tuple[str, ...]]:
    """The answer, once it has had so many rows for a moment, as the run goes on."""
    deadline = time.monotonic() + 60
    while run.poll() is None and time.monotonic() < deadline:
        if len(asked(server, statement)) == rows:
            time.sleep(0.5)  # who logs in is not yet compressed
            return asked(server, statement)
        time.sleep(0.05)
    raise AssertionError(finished(run))


@pytest.mark.parametrize(
    ("option", "is_encrypted", "is_compressed"),
    [
        ([], False, False),
        (["--mysql-ssl=required"], True, False),
        (["--mysql-ssl=verify_ca", "--compat=1.1"], True, False),
        (["--mysql-compression=on"], False, True),
        (["--mysql-ssl=required", "--mysql-compression=on"], True, True),
    ],
)
def test_an_option_says_how_sessions_travel(
    server: Server, option: list[str], is_encrypted: bool, is_compressed: bool
) -> None:
    if "--mysql-ssl=verify_ca" in option:
        data = Path(asked(server, "SELECT @@datadir")[0][0])
        option = [*option, f"--mysql-ssl-ca={data / 'ca.pem'}"]
    run = begun(place(server), *option, "oltp_read_only", "--threads=3", *ENDLESS, "run")
    rows = while_running(server, run, SESSIONS, 2 * 3)
    interrupted(run)
    assert {bool(value) for name, value in rows if name == "Ssl_cipher"} == {is_encrypted}
    assert {value for name, value in rows if name == "Compression"} == {
        "ON" if is_compressed else "OFF"
    }


def test_ports_share_the_connections(server: Server) -> None:
    with started("two", "mysql:8.0.15") as running:
        second = open_to_travellers(running)
        line = ["oltp_point_select", "--threads=6", *ENDLESS, "--output=json", "run"]
        run = begun(place(server, second), *line)
        while_running(server, run, LOGGED_IN, 3)
        counted = [len(asked(one, LOGGED_IN)) for one in (server, second)]
        told = json.loads(interrupted(run))
        assert counted == [3, 3]
        assert told["totals"]["events"] > 100


def test_sessions_are_renewed_and_lost_ones_replaced(server: Server) -> None:
    line = ["oltp_point_select", "--threads=1", "--time=0", "--output=json"]
    told = document(begun(place(server), *line, "--events=100", "--reconnect=5", "run"))
    assert (told["totals"]["events"], told["totals"]["reconnects"]) == (100, 20)

    line = ["oltp_point_select", "--threads=4", *ENDLESS, "--output=json", "run"]
    run = begun(place(server), "--mysql-ignore-errors=1213,2006,2013", *line)
    first = while_running(server, run, LOGGED_IN, 4)
    for (number,) in first:
        asked(server, f"KILL {number}")
    lost = ", ".join(number for (number,) in first)
    while_running(server, run, f"{LOGGED_IN} AND id NOT IN ({lost})", 4)
    told = json.loads(interrupted(run))
    assert told["totals"]["reconnects"] == 4
    assert told["totals"]["events"] > 100


def test_a_limit_is_explained_before_the_run(server: Server) -> None:
    asked(server, "SET GLOBAL max_prepared_stmt_count = 10")
    try:
        status, out, _ = finished(begun(place(server), "oltp_read_write", "--threads=8", "run"))
    finally:
        asked(server, "SET GLOBAL max_prepared_stmt_count = 16382")
    assert status == 1
    assert "max_prepared_stmt_count" in out
    assert "Threads started!" not in out
