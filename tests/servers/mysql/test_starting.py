import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local.server import Site
from dbdyno.servers.mysql import server
from dbdyno.servers.reference import find

NEW = find("mysql:8.0.15")


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
        server.start(Site("fast", NEW, home, work, None, {"x": "1"}), 4711)
    assert caught.value.found == "[ERROR] unknown variable 'x=1'"
    assert "x=1" in (work / "my.cnf").read_text()
    assert (work / "my.cnf").stat().st_mode & 0o777 == 0o600
    assert not (work / "passwords.sql").exists()
