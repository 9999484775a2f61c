"""Which address the options name; localhost is a socket, as in MySQL's client libraries."""

import pytest

from dbdyno.sysbench import target
from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Refusal, Values
from dbdyno.sysbench.target import Address, address


def of(**typed):
    options = {name.replace("_", "-"): value for name, value in typed.items()}
    return address(Values(GLOBAL_TABLE, options))


def test_a_host_is_reached_by_tcp():
    assert of(mysql_host="127.0.0.1") == Address(
        {"host": "127.0.0.1", "port": 3306}, "host '127.0.0.1', port 3306"
    )


def test_a_socket_wins_over_host_and_port():
    named = of(mysql_host="db", mysql_port="3307", mysql_socket="/s.sock")
    assert named == Address({"socket": "/s.sock"}, "socket '/s.sock'")


def test_localhost_is_the_environment_s_socket(monkeypatch):
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/somewhere/mysqld.sock")
    assert of(mysql_port="3307") == Address(
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
        of(mysql_host="h", mysql_port=port)


def test_hosts_and_ports_are_crossed_ports_first():
    crossed = of(mysql_host="a,b", mysql_port="1,2")
    assert crossed.endpoint == [
        {"host": "a", "port": 1},
        {"host": "a", "port": 2},
        {"host": "b", "port": 1},
        {"host": "b", "port": 2},
    ]
    assert crossed.described == "host 'a', port 1 (the first of 4)"


def test_several_sockets_win_over_several_hosts(monkeypatch):
    assert of(mysql_host="a,b", mysql_socket="/1.sock,/2.sock").endpoint == [
        {"socket": "/1.sock"},
        {"socket": "/2.sock"},
    ]
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/s.sock")
    assert of(mysql_host="localhost,db").endpoint == [
        {"socket": "/s.sock"},
        {"host": "db", "port": 3306},
    ]
