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
    ("typed", "endpoint", "described"),
    [
        ({"mysql_host": "127.0.0.1"}, tcp("127.0.0.1", 3306), "host '127.0.0.1', port 3306"),
        (
            {"mysql_host": "db", "mysql_port": "3307", "mysql_socket": "/1.sock"},
            {"socket": "/1.sock"},
            "socket '/1.sock'",
        ),
        ({"mysql_port": "3307"}, {"socket": "/s.sock"}, "host 'localhost', port 3307"),
        (
            {"mysql_host": "a,b", "mysql_port": "1,2"},
            [tcp("a", 1), tcp("a", 2), tcp("b", 1), tcp("b", 2)],
            "host 'a', port 1 (the first of 4)",
        ),
        (
            {"mysql_host": "a,b", "mysql_socket": "/1.sock,/2.sock"},
            [{"socket": "/1.sock"}, {"socket": "/2.sock"}],
            "socket '/1.sock' (the first of 2)",
        ),
        (
            {"mysql_host": "localhost,db"},
            [{"socket": "/s.sock"}, tcp("db", 3306)],
            "host 'localhost', port 3306 (the first of 2)",
        ),
    ],
)
def test_sockets_win_over_hosts_which_are_crossed_with_ports(
    monkeypatch, typed, endpoint, described
):
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/s.sock")
    assert address(options(**typed)) == Address(endpoint, described)


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
