"""What an image of PostgreSQL is told, and who is let in, over a stand-in for docker."""

import re
from itertools import pairwise

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.servers import open
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.foreign import postgres_container
from dbdyno.servers.postgres import server as postgres_server
from dbdyno.servers.postgres.settings import COMMON, QUESTION
from support.docker_on_path import DIGEST, Docker

IMAGE = f"docker.io/library/postgres@{DIGEST}"
REFERENCE = f"container:{IMAGE}"
SAYS = "postgres (PostgreSQL) 18.6 (Debian 18.6-1.pgdg13+1)"
SPEC = ServerSpec("boxed", REFERENCE, {"shared_buffers": "64MB"})
IN_FORCE = {**COMMON, "shared_buffers": "64MB"}
VERSION = "SHOW server_version"


class Client:
    """Logs in at once, remembers what was ordered by whom and where."""

    orders, answers = [], {}

    def __init__(self, label, place, who, database):
        self.label, self.who, self.database = label, who, database

    def try_login(self):
        return True

    def ask(self, sql, shown_as=""):
        Client.orders.append((self.who.user, self.database, sql))
        return Client.answers.get(sql, [])

    def close(self):
        return None


@pytest.fixture
def docker(monkeypatch, tmp_path):
    shown = [(name, text, "", "string") for name, text in IN_FORCE.items()]
    monkeypatch.setattr(Client, "orders", [])
    monkeypatch.setattr(Client, "answers", {VERSION: [(SAYS.split(" ", 2)[2],)], QUESTION: shown})
    monkeypatch.setattr(postgres_container, "PostgresClient", Client)
    monkeypatch.setattr(postgres_server, "sealed", lambda password: "SCRAM-SHA-256$x")
    made = Docker(monkeypatch, tmp_path, SAYS)
    (made.folder / "pulled").write_text('{"/var/lib/postgresql": {}}')
    return made


@pytest.fixture
def instance(docker, tmp_path):
    made = open.instance(SPEC, tmp_path / "boxed", str)
    yield made
    made.close()


def container(docker):
    """What was said when the only container there is was made."""
    (about,) = docker.containers().values()
    return about


def variables(docker):
    return dict(line.split("=", 1) for line in container(docker)["environment"].splitlines())


def test_new_data_are_made_as_those_of_the_labs_own_servers(docker, instance):
    server = instance.start()
    words = container(docker)["words"]
    after = dict(pairwise(words))
    assert after["--publish"] == "127.0.0.1::5432"
    assert after["--volume"].endswith("-data:/var/lib/postgresql")
    assert after["--stop-signal"] == "SIGINT"
    given = words[words.index(IMAGE) + 1 :]
    assert set(given[::2]) == {"-c"}
    expected = {f"{name}={text}" for name, text in IN_FORCE.items() if name != "data_checksums"}
    assert set(given[1::2]) == expected
    told = variables(docker)
    assert re.fullmatch("[0-9a-f]{48}", told.pop("POSTGRES_PASSWORD"))
    assert told == {
        "PGDATA": "/var/lib/postgresql/pgdata",
        "POSTGRES_USER": "dbdyno_admin",
        "POSTGRES_DB": "postgres",
        "POSTGRES_INITDB_ARGS": "--auth=scram-sha-256 --encoding=UTF8 --locale=C --data-checksums",
    }
    assert (server.driver, server.database) == ("pgsql", "sbtest")
    assert server.pid > 0


def test_the_administrator_lets_the_load_in_and_asks_in_its_database(docker, instance):
    server = instance.start()
    server.ask("SELECT count(*) FROM sbtest1")
    assert server.credentials.user == "dbdyno"
    assert [order for order in Client.orders if "SELECT" not in order[2]] == [
        ("dbdyno_admin", "postgres", 'CREATE ROLE "dbdyno"'),
        ("dbdyno_admin", "postgres", "ALTER ROLE \"dbdyno\" LOGIN PASSWORD 'SCRAM-SHA-256$x'"),
        ("dbdyno_admin", "postgres", 'CREATE DATABASE "sbtest" OWNER "dbdyno"'),
        ("dbdyno_admin", "sbtest", VERSION),
    ]
    assert Client.orders[-1] == ("dbdyno_admin", "sbtest", "SELECT count(*) FROM sbtest1")


def test_on_old_data_the_administrator_gets_a_new_password_before_the_server_runs(docker, instance):
    first = instance.start()
    old = variables(docker)["POSTGRES_PASSWORD"]
    first.stop()
    server = instance.start()
    (name,) = docker.containers()
    words = container(docker)["words"]
    after = dict(pairwise(words))
    assert (after["--user"], after["--entrypoint"]) == ("postgres", "sh")
    script, *given = words[words.index(IMAGE) + 2 :]
    assert script.startswith("postgres --single ")
    assert script.endswith(' postgres </dbdyno.sql >/dev/null && exec postgres "$@"')
    assert given[:3] == ["sh", "-c", "shared_buffers=64MB"]
    assert variables(docker) == {"PGDATA": "/var/lib/postgresql/pgdata"}
    sql = (docker.folder / "containers" / name / "rootfs" / "dbdyno.sql").read_text()
    (new,) = re.findall(r"""^ALTER ROLE "dbdyno_admin" PASSWORD '([0-9a-f]{48})'\n$""", sql)
    secrets = {old, new, first.credentials.password, server.credentials.password}
    assert len(secrets) == 4
    assert not any(secret in str(docker.calls()) for secret in secrets)
    assert not any(secret in str(Client.orders) for secret in secrets)


def test_the_size_is_that_of_the_loads_database(docker, instance):
    instance.start().stop()
    (volume,) = docker.volumes()
    for name, size in (("1", 8192), ("5", 8192), ("16384", 2048), ("16400", 1024)):
        folder = docker.folder / "volumes" / volume / "pgdata" / "base" / name
        folder.mkdir(parents=True)
        (folder / "2619").write_bytes(bytes(size))
    instance.snapshot()
    assert instance.data_bytes() == 3072


def test_a_setting_that_is_not_in_force_is_an_error(docker, instance):
    Client.answers = {**Client.answers, QUESTION: [("shared_buffers", "16384", "8kB", "integer")]}
    with pytest.raises(ServerError, match="did not take shared_buffers, huge_pages") as caught:
        instance.start()
    assert "shared_buffers = '16384 x 8kB'" in (caught.value.found or "")
    assert docker.containers() == {}


def test_another_version_than_the_images_is_an_error(docker, instance):
    Client.answers = {**Client.answers, VERSION: [("17.11 (Debian 17.11-1.pgdg13+1)",)]}
    with pytest.raises(ServerError, match="another version") as caught:
        instance.start()
    assert (caught.value.wanted, (caught.value.found or "")[:5]) == ("18.6", "17.11")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data_directory": "/x"}, "data_directory cannot be set"),
        ({"port": 5433}, "at a port that docker finds"),
        ({"data_checksums": "perhaps"}, "takes no value but on or off"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_before_a_container_is_made(
    docker, tmp_path, settings, message
):
    with pytest.raises(UsageError, match=message):
        open.instance(ServerSpec("x", REFERENCE, settings), tmp_path / "x", str)
    assert docker.volumes() == []


def test_data_that_are_there_take_no_other_checksums(docker, instance):
    with pytest.raises(UsageError, match="a data directory that exists") as caught:
        instance.start({"data_checksums": "off"})
    assert (caught.value.wanted, caught.value.found) == ("--no-data-checksums", "--data-checksums")
