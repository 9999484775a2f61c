import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.kept import kept as module
from dbdyno.servers.kept.kept import KeptState, product_of, shell


def state(reference="mysql:8.0.15", version="8.0.15", programs=""):
    return KeptState(reference, version, 1, "127.0.0.1", 3307, "dbdyno", "sbtest", "now", programs)


def client(folder, name, says):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")
    return tmp_path / "path"


def test_the_password_is_in_the_environment_and_not_among_the_arguments(path):
    program = client(path, "mysql", "mysql  Ver 8.0.33 for Linux")
    made = shell(state(), "secret-4711", ["-e", "SELECT 1"])
    assert made.command == (
        program,
        *("--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port=3307"),
        *("--user=dbdyno", "--database=sbtest", "-e", "SELECT 1"),
    )
    assert made.environment["MYSQL_PWD"] == "secret-4711"
    assert "secret-4711" not in repr(made)


def test_a_client_of_mariadb_is_told_that_there_is_no_tls(path):
    program = client(path, "mariadb", "mariadb from 11.4.5-MariaDB, client 15.2")
    made = shell(state(version="10.11.5-MariaDB-log"), "p", [])
    assert (made.command[0], made.command[-1]) == (program, "--skip-ssl")


def test_the_servers_own_client_comes_first(path, tmp_path):
    client(path, "mysql", "")
    own = client(tmp_path / "home" / "bin", "mysql", "")
    assert shell(state(programs=str(tmp_path / "home")), "p", []).command[0] == own


def test_postgres_gets_its_login_from_the_environment(path):
    program = client(path, "psql", "")
    made = shell(state("postgres:18.6", "18.6"), "secret-4711", ["-c", "SELECT 1"])
    assert made.command == (program, "-c", "SELECT 1")
    login = {name: made.environment[f"PG{name}"] for name in ("HOST", "PORT", "USER", "DATABASE")}
    assert login == {"HOST": "127.0.0.1", "PORT": "3307", "USER": "dbdyno", "DATABASE": "sbtest"}
    assert made.environment["PGPASSWORD"] == "secret-4711"


def test_without_a_client_it_says_what_to_install(path):
    with pytest.raises(ServerError, match="no client for mysql") as caught:
        shell(state(), "p", [])
    assert caught.value.wanted == "mysql or mariadb"


@pytest.mark.parametrize(
    ("reference", "version", "product"),
    [
        ("mysql:8.0.15", "8.0.15", "mysql"),
        ("path:/opt/x", "11.4.5-MariaDB-log", "mariadb"),
        ("path:/opt/x", "PostgreSQL 18.6 on x86_64", "postgres"),
        ("container:percona/percona-server@sha256:00", "8.0.36-28", "mysql"),
    ],
)
def test_the_product_is_what_the_server_says_it_is(reference, version, product):
    assert product_of(state(reference, version)) == product
    assert product in module.CLIENTS
