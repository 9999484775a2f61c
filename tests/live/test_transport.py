"""TLS, compression and several servers, on real servers.

The server says itself how each session came: its counters of the session are the judge, never the
engine's word alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.certificates import Authority
from support.real_server import started
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
HOST = "127.0.0.1"
REQUIRED = {"tls": {"mode": "required"}}
WAYS: dict[str, dict[str, Any]] = {
    "TLS": REQUIRED,
    "compressed": {"compression": True},
    "both": {**REQUIRED, "compression": True},
}
SEEN = """SELECT t.connection_type, s.variable_name, s.variable_value
    FROM performance_schema.threads t JOIN performance_schema.status_by_thread s USING (thread_id)
    WHERE t.processlist_user = 'traveller' AND s.variable_name IN ('Ssl_cipher', 'Compression')"""


def asked(server: Server, *statements: str) -> list[tuple[str, ...]]:
    """The last statement's answer as text; asked by the administrator, who may grant."""
    rows: list[tuple[str, ...]] = []
    for statement in statements:
        rows = server._client.ask(statement)  # type: ignore[attr-defined]
    return rows


ENDLESS: Final[dict[str, Any]] = {"window_s": 60, "events": 0, "interval_s": 0.1}
"""A run that somebody looks at and then stops."""


def spec(server: Server, **changes: Any) -> dict[str, Any]:
    place = {"host": HOST, "port": server.endpoint.port}
    return {
        "endpoint": place,
        "user": "traveller",
        "password": "far away",
        "database": server.database,
        **changes,
    }


def prepare(server: Server, **changes: Any) -> None:
    sized = {"tables": 2, "table_size": 3000, "seed": 3, "threads": 3}
    whole = {**spec(server, **changes), **sized}
    assert _engine.prepare(whole, None, _engine.Stop())["rows"] == 6000


def cleanup(server: Server, **changes: Any) -> None:
    _engine.cleanup({**spec(server, **changes), "tables": 2}, _engine.Stop())


def run(server: Server, **changes: Any) -> dict[str, Any]:
    tell, stop = changes.pop("tell", None), changes.pop("stop", _engine.Stop())
    load = {
        "connections": 4,
        "window_s": 0,
        "events": 100,
        "seed": 5,
        "workload": {"name": "oltp_read_write", "options": {"tables": 2, "table_size": 3000}},
    }
    record = _engine.run({**load, **spec(server, **changes)}, tell, stop)
    assert record["failure"] is None
    return record


def refused(server: Server, **changes: Any) -> str:
    with pytest.raises(RuntimeError) as caught:
        run(server, **changes)
    failure = caught.value.args[0]
    assert failure["stage"] == "connect"
    assert "far away" not in str(caught.value)
    return str(failure["message"])


def seen_by(server: Server, **changes: Any) -> tuple[set[str], dict[str, set[str]]]:
    """How the server saw the sessions of a run: kinds of connection, and values of their status."""
    rows: list[tuple[str, str, str]] = []
    stop = _engine.Stop()

    def look(text: str) -> None:
        if rows:
            return
        # While it runs: a server answers a login before it compresses, and a session that logs out
        # has no cipher any more.
        rows.extend(asked(server, SEEN))
        stop.set()

    while asked(server, SEEN):  # sessions that log out
        time.sleep(0.01)
    record = run(server, tell=look, stop=stop, **ENDLESS, **changes)
    assert record["stopped_by"] == "stop"
    assert sum(interval["events"] for interval in record["intervals"]) > 0
    status: dict[str, set[str]] = {}
    for _, name, value in rows:
        status.setdefault(name, set()).add(value)
    assert rows
    return {kind for kind, _, _ in rows}, status


@pytest.fixture(scope="module", params=["mysql:8.0.15", "mysql:8.0.31"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    """A server with the certificates that it made itself, and tables loaded through TLS."""
    with shared_servers.lent(request.param) as running:
        asked(
            running,
            "CREATE USER traveller@'%' IDENTIFIED WITH caching_sha2_password BY 'far away'",
            "GRANT ALL ON *.* TO traveller@'%'",
        )
        prepare(running, **WAYS["both"])
        yield running


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with tempfile.TemporaryDirectory(prefix="dbdyno-authority-") as name:
        Path(name).chmod(0o755)
        yield Authority(Path(name), "good")


def of_authority(authority: Authority) -> dict[str, str]:
    cert, key = authority.issue("server", HOST)
    return {"ssl_ca": str(authority.ca), "ssl_cert": str(cert), "ssl_key": str(key)}


def own_ca(server: Server) -> str:
    return str(Path(server.settings()["datadir"]) / "ca.pem")


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "text"])
@pytest.mark.parametrize("reactor", ["io_uring", "epoll"])
@pytest.mark.parametrize("way", WAYS)
def test_the_server_sees_each_way(server: Server, way: str, reactor: str, prepared: bool) -> None:
    asked(server, "FLUSH PRIVILEGES")  # forgets passwords: the next login is a full one
    kinds, status = seen_by(server, reactor=reactor, prepared=prepared, **WAYS[way])
    encrypted, compressed = way in {"TLS", "both"}, way in {"compressed", "both"}
    assert kinds == {"SSL/TLS" if encrypted else "TCP/IP"}
    assert status["Compression"] == {"ON" if compressed else "OFF"}
    assert (status["Ssl_cipher"] != {""}) == encrypted


def test_a_cold_cache_is_filled_with_the_servers_key_or_inside_tls(server: Server) -> None:
    stranger = {"endpoint": {"host": "0.0.0.0", "port": server.endpoint.port}}  # not loopback's
    key = str(Path(server.settings()["datadir"]) / "public_key.pem")
    for way in ({"server_key": key}, {"takes_any_key": True}, REQUIRED):
        asked(server, "FLUSH PRIVILEGES")
        assert "asks for the whole password without TLS" in refused(server, **stranger)
        run(server, **stranger, **way)


def test_the_modes_verify_what_they_say(server: Server, authority: Authority) -> None:
    cipher = {"mysql:8.0.15": "DHE-RSA-AES", "mysql:8.0.31": "TLS_AES_"}
    expected = cipher[f"mysql:{server.version()}"]
    for mode in ("preferred", "required", "verify_ca"):
        record = run(server, tls={"mode": mode, "ca": own_ca(server)})
        assert record["transport"].startswith("TLS 1.")
        assert f", {expected}" in record["transport"]
    assert run(server, tls={"mode": "disabled"})["transport"] == "plain"
    other = refused(server, tls={"mode": "verify_ca", "ca": str(authority.ca)})
    assert "UnknownIssuer" in other
    assert "try the certificate of the authority that signed the server's as ca" in other
    # Its own certificates name no host.
    named = refused(server, tls={"mode": "verify_identity", "ca": own_ca(server)})
    assert f'{HOST}:{server.endpoint.port}: wanted a session as user "traveller"' in named
    assert "try a name that the certificate has, or the TLS mode verify_ca" in named


def test_a_chosen_cipher_is_used(server: Server) -> None:
    name = "DHE-RSA-AES128-GCM-SHA256"
    if server.version() != "8.0.15":
        name = f"EC{name}"
    _, status = seen_by(server, tls={"mode": "required", "ciphers": name})
    assert status["Ssl_cipher"] == {name}
    text = refused(server, tls={"mode": "required", "ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256"})
    assert "no TLS version or cipher suite in common; try all ciphers" in text


def test_an_account_that_requires_tls_gets_it(server: Server) -> None:
    asked(server, "ALTER USER traveller@'%' REQUIRE SSL")
    try:
        assert "TLS if the account requires it" in refused(server)
        run(server, tls={"mode": "preferred"})
        run(server, endpoint={"socket": str(server.endpoint.socket)}, **REQUIRED)
    finally:
        asked(server, "ALTER USER traveller@'%' REQUIRE NONE")


def test_a_client_shows_its_certificate(server: Server, authority: Authority) -> None:
    data = Path(server.settings()["datadir"])
    shown = {"cert": str(data / "client-cert.pem"), "key": str(data / "client-key.pem")}
    asked(server, "ALTER USER traveller@'%' REQUIRE X509")
    try:
        assert "Access denied" in refused(server, **REQUIRED)
        run(server, tls={"mode": "required", **shown})
        cert, key = (str(path) for path in authority.issue("stranger", HOST))
        text = refused(server, tls={"mode": "required", "cert": cert, "key": key})
        assert "does not accept the client's certificate" in text
    finally:
        asked(server, "ALTER USER traveller@'%' REQUIRE NONE")


def test_tables_are_made_and_dropped_by_each_way(server: Server) -> None:
    checksums = set()
    for way in WAYS.values():
        for load in ("insert", "infile"):
            cleanup(server, **way)
            prepare(server, **way, load=load)
            checksums.add(tuple(asked(server, "CHECKSUM TABLE sbtest.sbtest1, sbtest.sbtest2")))
    assert len(checksums) == 1
    assert asked(server, "SELECT COUNT(*) FROM sbtest.sbtest1") == [("3000",)]


def test_unreadable_files_are_told_before_any_connection(server: Server, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate\n")
    before = server.status()["Connections"]
    missing = refused(server, tls={"mode": "verify_ca", "ca": "/nowhere/ca.pem"})
    assert 'wanted certificates in "/nowhere/ca.pem" (tls.ca), found No such file' in missing
    assert "found none in it" in refused(server, tls={"mode": "verify_ca", "ca": str(empty)})
    assert server.status()["Connections"] == before


@pytest.mark.parametrize("compression", [False, True], ids=["plain", "compressed"])
def test_long_rows_arrive_whole(server: Server, compression: bool) -> None:
    """More than a record, a frame or a buffer holds; rows that do and do not get smaller."""
    options = {"tables": 2, "table_size": 3000, "range_size": 2900, "order_ranges": 5}
    one = {
        "workload": {"name": "oltp_read_only", "options": options},
        "connections": 1,
        "events": 20,
    }
    plain = run(server, **one)
    record = run(server, **one, **REQUIRED, compression=compression)
    received = [
        sum(interval["bytes_received"] for interval in each["intervals"])
        for each in (plain, record)
    ]
    assert received[0] == received[1] > 10_000_000


def test_names_are_compared_with_the_host(authority: Authority) -> None:
    with started("transport", "mysql:8.0.31", {"ssl": "ON", **of_authority(authority)}) as server:
        who = {"user": server.credentials.user, "password": server.credentials.password}
        identity = {"mode": "verify_identity", "ca": str(authority.ca)}
        prepare(server, tls=identity, **who)
        run(server, tls=identity, **who)
        elsewhere = {"host": "localhost", "port": server.endpoint.port}
        text = refused(server, tls=identity, endpoint=elsewhere, **who)
        assert "try a name that the certificate has" in text
        run(server, tls={**identity, "mode": "verify_ca"}, endpoint=elsewhere, **who)


def test_a_server_of_tls_1_1_is_told_from_one_without(authority: Authority) -> None:
    with started("transport", "mysql:5.7.22", {"ssl": "ON", **of_authority(authority)}) as old:
        who = {"user": old.credentials.user, "password": old.credentials.password}
        prepare(old, compression=True, **who)
        text = refused(old, **REQUIRED, **who)
        assert "found a server that speaks only TLS 1.1 or older; try" in text
        assert run(old, compression=True, **who)["transport"] == "compressed"
    with started("transport", "mysql:5.7.22", {}) as bare:
        who = {"user": bare.credentials.user, "password": bare.credentials.password}
        prepare(bare, **who)
        text = refused(bare, **REQUIRED, **who)
        assert "found a server that offers no TLS; try certificates for the server" in text
        assert run(bare, tls={"mode": "preferred"}, **who)["transport"] == "plain"


def test_each_server_of_a_list_gets_its_share(server: Server) -> None:
    with started("transport", f"mysql:{server.version()}", {}) as second:
        asked(
            second,
            "CREATE USER traveller@'%' IDENTIFIED WITH caching_sha2_password BY 'far away'",
            "GRANT ALL ON *.* TO traveller@'%'",
        )
        prepare(second)
        ports = [one.endpoint.port for one in (server, second)]
        places = [{"host": HOST, "port": port} for port in ports]
        threads = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'traveller'"
        counted: list[list[int]] = []
        stop = _engine.Stop()

        def look(text: str) -> None:  # while it runs, and then it may end
            counted.append([int(asked(one, threads)[0][0]) for one in (server, second)])
            stop.set()

        run(server, endpoint=places, connections=10, tell=look, stop=stop, **ENDLESS)
        assert counted[0] == [5, 5]
        second.stop()
        text = refused(server, endpoint=places)
        assert text.startswith(f"{HOST}:{ports[1]}: wanted a session")
