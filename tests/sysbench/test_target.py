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
    for name in ("cacert.pem", "client-cert.pem", "client-key.pem"):
        (folder / name).touch()
    for value in (None, "on", "1"):
        assert of(mysql_ssl=value, mysql_ssl_cipher="AES256") == (
            {
                "tls": {
                    "mode": "required",
                    "ca": "cacert.pem",
                    "cert": "client-cert.pem",
                    "key": "client-key.pem",
                    "ciphers": "AES256",
                }
            },
            (),
        )


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


def test_a_file_that_is_not_there_is_said():
    with pytest.raises(Refusal, match=r"--mysql-ssl-key: there is no file 'none\.pem'"):
        of(mysql_ssl="required", mysql_ssl_key="none.pem")


def test_an_unknown_mode_is_an_invalid_option():
    with pytest.raises(Refusal, match=r"invalid option: --mysql-ssl=maybe\n  hint: it takes on"):
        of(mysql_ssl="maybe")


def test_compression_is_zlib_s():
    assert of(mysql_compression=None) == ({"compression": True}, ())
    assert of(mysql_compression_algorithms="zstd") == ({}, ())
    assert of(
        mysql_compression="on", mysql_compression_algorithms="zstd,zlib,uncompressed"
    ).fields == {"compression": True}
    with pytest.raises(Refusal, match="compression by other algorithms than zlib"):
        of(mysql_compression="on", mysql_compression_algorithms="zstd")


def test_every_command_is_protected(sysbench, engine):
    for word in ("prepare", "run", "cleanup", "prewarm"):
        assert sysbench(f"oltp_read_only --mysql-ssl=required --mysql-compression {word}") == 0
        assert engine.specs[-1]["tls"]["mode"] == "required"
        assert engine.specs[-1]["compression"] is True


# Addresses; localhost is a socket.


def address_of(**typed):
    return address(options(**typed))


def test_a_host_is_reached_by_tcp():
    assert address_of(mysql_host="127.0.0.1") == Address(
        {"host": "127.0.0.1", "port": 3306}, "host '127.0.0.1', port 3306"
    )


def test_a_socket_wins_over_host_and_port():
    named = address_of(mysql_host="db", mysql_port="3307", mysql_socket="/s.sock")
    assert named == Address({"socket": "/s.sock"}, "socket '/s.sock'")


def test_localhost_is_the_environment_s_socket(monkeypatch):
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/somewhere/mysqld.sock")
    assert address_of(mysql_port="3307") == Address(
        {"socket": "/somewhere/mysqld.sock"}, "host 'localhost', port 3307"
    )


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
        address_of(mysql_host="h", mysql_port=port)


def test_hosts_and_ports_are_crossed_ports_first():
    crossed = address_of(mysql_host="a,b", mysql_port="1,2")
    assert crossed.endpoint == [
        {"host": "a", "port": 1},
        {"host": "a", "port": 2},
        {"host": "b", "port": 1},
        {"host": "b", "port": 2},
    ]
    assert crossed.described == "host 'a', port 1 (the first of 4)"


def test_several_sockets_win_over_several_hosts(monkeypatch):
    assert address_of(mysql_host="a,b", mysql_socket="/1.sock,/2.sock").endpoint == [
        {"socket": "/1.sock"},
        {"socket": "/2.sock"},
    ]
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/s.sock")
    assert address_of(mysql_host="localhost,db").endpoint == [
        {"socket": "/s.sock"},
        {"host": "db", "port": 3306},
    ]
