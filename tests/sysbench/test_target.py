"""TLS and compression in the spellings of both sysbenches; addresses."""

from __future__ import annotations

import pytest

from dbdyno.sysbench import target
from dbdyno.sysbench.options.values import Refusal
from dbdyno.sysbench.target import Address, address, transport
from support.sysbench import options

NO_FILES = {"ca": None, "cert": None, "key": None}


def of(**typed):
    return transport(options(**typed))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("off", [{}, {"mysql_ssl": "off"}, {"mysql_ssl": "disabled"}])
def test_nothing_is_said_of_a_plain_connection(off):
    assert of(**off) == ({}, ())


def test_the_switch_of_1_0_takes_the_files_of_the_folder(folder):
    files = {"ca": "cacert.pem", "cert": "client-cert.pem", "key": "client-key.pem"}
    for name in files.values():
        (folder / name).touch()
    tls = {"mode": "required", **files, "ciphers": "AES256"}
    for value in (None, "on", "1"):
        assert of(mysql_ssl=value, mysql_ssl_cipher="AES256") == ({"tls": tls}, ())


def test_a_certificate_without_its_key_is_left_out(folder):
    (folder / "client-cert.pem").touch()
    found = of(mysql_ssl="on")
    assert found.fields["tls"] == {"mode": "required", **NO_FILES, "ciphers": ""}
    assert found.notes == (
        "--mysql-ssl: encrypted without cacert.pem, client-cert.pem, client-key.pem in this folder",
    )


def test_the_mode_of_1_1_has_files_of_its_own(folder):
    (folder / "a.pem").touch()
    found = of(mysql_ssl="VERIFY_CA", mysql_ssl_ca="a.pem")
    assert found.fields["tls"] == {**NO_FILES, "ca": "a.pem", "mode": "verify_ca", "ciphers": ""}
    assert found.notes == ()


def test_compression_is_zlib_s():
    assert of(mysql_compression=None) == ({"compression": True}, ())
    assert of(mysql_compression_algorithms="zstd") == ({}, ())
    several = of(mysql_compression="on", mysql_compression_algorithms="zstd,zlib,uncompressed")
    assert several.fields == {"compression": True}
    with pytest.raises(Refusal, match="compression by other algorithms than zlib"):
        of(mysql_compression="on", mysql_compression_algorithms="zstd")


def test_every_command_is_protected(sysbench, engine):
    for word in ("prepare", "run", "cleanup", "prewarm"):
        assert sysbench(f"oltp_read_only --mysql-ssl=required --mysql-compression {word}") == 0
        assert engine.specs[-1]["tls"]["mode"] == "required"
        assert engine.specs[-1]["compression"] is True


# Addresses; localhost is a socket.


def tcp(host, port):
    return {"host": host, "port": port}


@pytest.mark.parametrize(
    ("typed", "endpoint", "names"),
    [
        ({"mysql_host": "127.0.0.1"}, tcp("127.0.0.1", 3306), ["host '127.0.0.1', port 3306"]),
        (
            {"mysql_host": "db", "mysql_port": "3307", "mysql_socket": "/1.sock"},
            {"socket": "/1.sock"},
            ["socket '/1.sock'"],
        ),
        ({"mysql_port": "3307"}, {"socket": "/s.sock"}, ["host 'localhost', port 3307"]),
        (
            {"mysql_host": "a,b", "mysql_port": "1,2"},
            [tcp("a", 1), tcp("a", 2), tcp("b", 1), tcp("b", 2)],
            [f"host '{host}', port {port}" for host in "ab" for port in (1, 2)],
        ),
        (
            {"mysql_host": "a,b", "mysql_socket": "/1.sock,/2.sock"},
            [{"socket": "/1.sock"}, {"socket": "/2.sock"}],
            ["socket '/1.sock'", "socket '/2.sock'"],
        ),
        (
            {"mysql_host": "localhost,db"},
            [{"socket": "/s.sock"}, tcp("db", 3306)],
            ["host 'localhost', port 3306", "host 'db', port 3306"],
        ),
    ],
)
def test_sockets_win_over_hosts_which_are_crossed_with_ports(monkeypatch, typed, endpoint, names):
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/s.sock")
    assert address(options(**typed)) == Address(endpoint, tuple(names))


def test_an_address_is_named_by_what_the_engine_calls_it():
    several = address(options(mysql_host="a,::1", mysql_port="1"))
    assert several.named("a:1") == "host 'a', port 1"
    assert several.named("[::1]:1") == "host '::1', port 1"
    assert several.named("") == "host 'a', port 1 (the first of 2)"
    sockets = address(options(mysql_socket="/1.sock,/2.sock"))
    assert sockets.named("/2.sock") == "socket '/2.sock'"
    assert address(options(mysql_host="a")).named("b:1") == "host 'a', port 3306"


def test_localhost_is_else_the_first_socket_that_is_there(monkeypatch, tmp_path):
    monkeypatch.delenv("MYSQL_UNIX_PORT", raising=False)
    there = tmp_path / "2.sock"
    monkeypatch.setattr(target, "DEFAULT_SOCKETS", ("/no/1.sock", str(there)))
    assert target.default_socket() == "/no/1.sock"
    there.touch()
    assert target.default_socket() == str(there)


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "1e3", "\u0663"])
def test_a_port_that_is_none(port):
    with pytest.raises(Refusal, match="It must be from 1 to 65535"):
        address(options(mysql_host="h", mysql_port=port))


# The password of a PostgreSQL, by libpq's rules.


@pytest.fixture
def pgpass(folder, monkeypatch):
    """Writes PGPASSFILE."""
    path = folder / "pgpass"
    monkeypatch.setenv("PGPASSFILE", str(path))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setattr(target, "_warned", set())

    def write(text, mode=0o600):
        path.write_text(text)
        path.chmod(mode)

    return write


WHERE = {"pgsql_host": "db", "pgsql_port": "6432", "pgsql_user": "u", "pgsql_db": "d"}


@pytest.mark.parametrize(
    ("lines", "password"),
    [
        ("db:6432:d:u:secret-4711", "secret-4711"),
        ("db:6432:d:u:secret-4711\r\n", "secret-4711"),
        ("*:*:*:*:secret-4711", "secret-4711"),
        ("db:5432:d:u:no\ndb:*:d:u:yes\n*:*:*:*:late", "yes"),
        ("# db:6432:d:u:no\ndb:6432:*:u:a\\:b\\\\c", "a:b\\c"),
        ("db:6432:d:u:a:b", "a"),
        ("db:6432:d:u", ""),
        ("other:6432:d:u:no\n\n", ""),
        ("db:6432:d:*u:no", ""),
    ],
)
def test_a_password_is_found_in_libpq_s_file(pgpass, lines, password):
    pgpass(lines)
    assert target.postgres_password(options(**WHERE)) == password


def test_a_user_that_is_not_utf_8_has_no_line_of_the_file(pgpass):
    pgpass("db:*:*:?:no")
    assert target.postgres_password(options(**{**WHERE, "pgsql_user": "\udcff"})) == ""


def test_a_socket_of_the_usual_folder_is_called_localhost(pgpass):
    pgpass("localhost:*:*:*:here\n/srv/pg:*:*:*:there")
    for host, password in (("/tmp", "here"), ("", "here"), ("/srv/pg", "there"), ("db", "")):
        assert target.postgres_password(options(**{**WHERE, "pgsql_host": host})) == password


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_may_read_is_passed_over_with_a_warning(pgpass, capsys, mode):
    pgpass("*:*:*:*:secret-4711", mode)
    for _ in range(2):
        assert target.postgres_password(options(**WHERE)) == ""
    told = capsys.readouterr().err
    assert told.startswith("WARNING: ")
    assert told.count("chmod 600") == 1
    assert "secret-4711" not in told


def test_the_file_comes_after_the_line_and_the_variable(pgpass, sysbench, engine, monkeypatch):
    pgpass("*:*:*:*:of the file")
    line = "oltp_read_only --db-driver=pgsql --events=1"
    assert sysbench(f"{line} run") == 0
    assert engine.specs[-1]["password"] == "of the file"
    monkeypatch.setenv("PGPASSWORD", "of the variable")
    assert sysbench(f"{line} run") == 0
    assert engine.specs[-1]["password"] == "of the variable"
    assert sysbench(f"{line} --pgsql-password=typed run") == 0
    assert engine.specs[-1]["password"] == "typed"


def test_without_a_variable_the_file_is_in_the_home_folder(pgpass, folder, monkeypatch):
    pgpass("*:*:*:*:secret-4711")
    (folder / "pgpass").rename(folder / ".pgpass")
    assert target.postgres_password(options(**WHERE)) == ""
    monkeypatch.delenv("PGPASSFILE")
    monkeypatch.setenv("HOME", str(folder))
    assert target.postgres_password(options(**WHERE)) == "secret-4711"
