"""A container's whole life with a real server in it, over a stand-in for docker.

There is no docker where dbdyno is made. The stand-in (tests/support/fake_docker.py) runs MySQL
itself as the images' entry points do, so what is proved is what a server is given, how it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pymysql
import pytest

from dbdyno.servers import open
from dbdyno.servers.base import Server, ServerSpec
from support.docker_on_path import REFERENCE, Docker

pytestmark = pytest.mark.live
SMALL = {"innodb_log_file_size": "48M", "innodb_buffer_pool_size": "128M"}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    mysqld = open.get("mysql:8.0.15", lambda text: None) / "bin" / "mysqld"
    with TemporaryDirectory(prefix="dbdyno-box-") as name:
        Path(name).chmod(0o755)
        Docker(monkeypatch, Path(name))
        monkeypatch.setenv("FAKE_DOCKER_MYSQLD", str(mysqld))
        yield Path(name)


def as_the_load(server: Server) -> pymysql.Connection:
    return pymysql.connect(
        host=server.endpoint.host,
        port=server.endpoint.port,
        user=server.credentials.user,
        password=server.credentials.password,
        database=server.database,
        autocommit=True,
    )


def test_a_server_in_a_container_is_set_up_proven_loaded_and_brought_back(folder: Path) -> None:
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
