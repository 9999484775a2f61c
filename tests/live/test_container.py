"""A container's whole life with a real server in it, over a stand-in for docker.

There is no docker where dbdyno is made. The stand-in (tests/support/fake_docker.py) runs MySQL and
PostgreSQL themselves as the images' entry points do, so what is proved is what a server is given,
how it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pymysql
import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.settle import settle
from dbdyno.servers import open
from dbdyno.servers.base import Server, ServerSpec
from support.docker_on_path import REFERENCE, Docker

pytestmark = pytest.mark.live
SMALL = {"innodb_log_file_size": "48M", "innodb_buffer_pool_size": "128M"}

Contained = Callable[[str, str, str], Path]


@pytest.fixture
def contained(monkeypatch: pytest.MonkeyPatch) -> Iterator[Contained]:
    """Puts a server into the image of a docker; its folder."""
    with TemporaryDirectory(prefix="dbdyno-box-") as name:
        folder = Path(name)
        folder.chmod(0o755)

        def put(reference: str, program: str, says: str) -> Path:
            path = open.get(reference, lambda text: None) / "bin" / program
            Docker(monkeypatch, folder, says)
            monkeypatch.setenv("FAKE_DOCKER_SERVER", str(path))
            return folder

        yield put


def as_the_load(server: Server) -> pymysql.Connection:
    return pymysql.connect(
        host=server.endpoint.host,
        port=server.endpoint.port,
        user=server.credentials.user,
        password=server.credentials.password,
        database=server.database,
        autocommit=True,
    )


def test_a_server_in_a_container_is_set_up_proven_loaded_and_brought_back(
    contained: Contained,
) -> None:
    folder = contained("mysql:8.0.15", "mysqld", "mysqld  Ver 8.0.15 for Linux on x86_64")
    instance = open.instance(ServerSpec("boxed", REFERENCE, SMALL), folder / "b", lambda t: None)
    try:
        server = instance.start()
        assert server.version() == "8.0.15"
        assert server.settings()["log_bin"] == "OFF"
        assert server.status()["Uptime"] >= 0
        with as_the_load(server) as line, line.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
            cursor.execute("INSERT INTO t VALUES (7)")
        server.stop()
        instance.snapshot()
        instance.restore()
        again = instance.start({"innodb_flush_log_at_trx_commit": 2})
        assert again.settings()["innodb_flush_log_at_trx_commit"] == "2"
        assert again.ask("SELECT id FROM sbtest.t") == [("7",)]
        with as_the_load(again) as line:
            assert line.open
        again.stop()
    finally:
        instance.close()
    assert not list((folder / "docker" / "containers").glob("*"))


def as_the_load_of_postgres(server: Server, sql: str, password: str = "") -> int:
    """How many rows a statement of the load's concerns."""
    with psycopg.connect(
        host=server.endpoint.host,
        port=server.endpoint.port,
        user=server.credentials.user,
        password=password or server.credentials.password,
        dbname=server.database,
        autocommit=True,
        sslmode="disable",
    ) as line:
        return line.execute(sql.encode()).rowcount


@pytest.mark.parametrize(
    ("version", "volume"),
    [("15.19", "/var/lib/postgresql/data"), ("18.6", "/var/lib/postgresql")],
)
def test_a_postgres_in_a_container_is_too(contained: Contained, version: str, volume: str) -> None:
    folder = contained(f"postgres:{version}", "postgres", f"postgres (PostgreSQL) {version}")
    (folder / "docker" / "pulled").write_text(f'{{"{volume}": {{}}}}')
    spec = ServerSpec("boxed", REFERENCE, {"shared_buffers": "64MB"})
    instance = open.instance(spec, folder / "b", lambda t: None)
    try:
        server = instance.start()
        assert server.version() == version
        settings = server.settings()
        assert (settings["shared_buffers"], settings["data_checksums"]) == ("64MB", "on")
        as_the_load_of_postgres(server, "CREATE TABLE t AS SELECT generate_series(1, 9) AS id")
        assert settle(server, 60).done
        assert server.status()["database.tup_inserted"] >= 9
        assert server.ask("SELECT tableowner FROM pg_tables WHERE tablename = 't'") == [("dbdyno",)]
        server.stop()
        instance.snapshot()
        assert instance.data_bytes() > 1_000_000
        instance.restore()
        again = instance.start({"synchronous_commit": False})
        assert again.settings()["synchronous_commit"] == "off"
        assert as_the_load_of_postgres(again, "UPDATE t SET id = id + 1") == 9
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            as_the_load_of_postgres(again, "SELECT 1", server.credentials.password)
        again.stop()
    finally:
        instance.close()
    assert not list((folder / "docker" / "containers").glob("*"))


def test_a_postgres_that_ends_at_a_setting_says_which(contained: Contained) -> None:
    folder = contained("postgres:18.6", "postgres", "postgres (PostgreSQL) 18.6")
    spec = ServerSpec("boxed", REFERENCE, {"no_such_setting": 1})
    instance = open.instance(spec, folder / "b", lambda t: None)
    try:
        with pytest.raises(ServerError, match="its container ended") as caught:
            instance.start()
        assert "no_such_setting" in (caught.value.found or "")
    finally:
        instance.close()
