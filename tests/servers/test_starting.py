import socket
import tempfile
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers import starting
from dbdyno.servers.reference import find
from dbdyno.servers.started import PortTakenError, Site

NEW = find("mysql:8.0.15")


def site(work: Path, **asked: str) -> Site:
    return Site("fast", NEW, Path("/home-of-mysql"), work, None, asked)


def test_a_fixed_port_that_is_taken_says_who_wanted_what(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ServerError) as caught:
            starting.start(site(tmp_path, port=str(port)))
    assert caught.value.message == f"fast: its settings want port {port}, which is taken"
    assert "for fast (mysql:8.0.15)" in (caught.value.wanted or "")
    assert "held by" in (caught.value.found or "")


@pytest.mark.parametrize("port", ["many", "0", "70000"])
def test_a_port_that_is_no_port_is_refused(tmp_path, port):
    with pytest.raises(ServerError, match="not a port number"):
        starting.start(site(tmp_path, port=port))


def test_a_port_lost_in_a_race_is_chosen_again(tmp_path, monkeypatch):
    tried: list[int] = []

    def start_on(_, port):
        tried.append(port)
        if len(tried) < 3:
            raise PortTakenError("taken")
        return "server"

    monkeypatch.setattr(starting, "_start_on", start_on)
    assert starting.start(site(tmp_path)) == "server"
    assert len(tried) == 3


def test_a_port_that_is_always_lost_is_an_error(tmp_path, monkeypatch):
    tried: list[int] = []

    def start_on(_, port):
        tried.append(port)
        raise PortTakenError("taken")

    monkeypatch.setattr(starting, "_start_on", start_on)
    with pytest.raises(PortTakenError):
        starting.start(site(tmp_path))
    assert len(tried) == starting.PORT_ATTEMPTS


def test_a_program_that_ends_at_once_is_quoted_and_leaves_no_password(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "server"
    (home / "bin").mkdir(parents=True)
    (home / "share" / "charsets").mkdir(parents=True)
    (home / "share" / "charsets" / "Index.xml").touch()
    work.mkdir()
    program = home / "bin" / "mysqld"
    program.write_text("#!/bin/sh\necho \"[ERROR] unknown variable 'x=1'\"\nexit 7\n")
    program.chmod(0o755)
    with pytest.raises(ServerError, match=r"did not start \(exit code 7\)") as caught:
        starting.start(Site("fast", NEW, home, work, None, {"x": "1"}))
    assert caught.value.found == "[ERROR] unknown variable 'x=1'"
    assert "x=1" in (work / "my.cnf").read_text()
    assert (work / "my.cnf").stat().st_mode & 0o777 == 0o600
    assert not (work / "passwords.sql").exists()


def test_a_long_folder_gets_a_socket_in_a_short_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert starting._socket(site(Path("/short"))) == Path("/short/my.sock")
    elsewhere = starting._socket(site(tmp_path / ("x" * 120)))
    assert len(str(elsewhere)) <= starting.SOCKET_BYTES_MAX
    assert elsewhere.parent.stat().st_mode & 0o777 == 0o700
    elsewhere.parent.rmdir()


def test_no_short_folder_is_an_error(tmp_path, monkeypatch):
    long = tmp_path / ("y" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(ServerError, match="107 bytes"):
        starting._socket(site(tmp_path / ("x" * 120)))
    assert list(long.iterdir()) == []


def test_a_file_for_the_server_is_never_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "my.cnf").symlink_to(tmp_path / "precious")
    written = starting._write(tmp_path / "my.cnf", "new", None)
    assert written.read_text() == "new"
    assert not written.is_symlink()
    assert (tmp_path / "precious").read_text() == "kept"
