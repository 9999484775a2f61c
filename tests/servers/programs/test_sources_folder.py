import hashlib

import pytest

from dbdyno.errors import ProvisionError, UnknownSystemError
from dbdyno.servers import process
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs.given import look, read_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a server in it, which runs as ourselves."""
    monkeypatch.setattr(process, "server_user", lambda: None)
    made = tmp_path / "mysql"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "mysqld").write_bytes(b"code")
    (made / "bin" / "mysqld").chmod(0o755)
    return made


def test_the_programs_digest_is_the_identity_and_nothing_is_fetched(folder):
    source = look(read_folder(f"path:{folder}"))
    assert source.identity == hashlib.sha256(b"code").hexdigest()
    assert source.name == str(folder)
    assert (source.download_bytes, source.tools) == (0, ())


def test_a_path_that_depends_on_where_one_stands_is_refused():
    with pytest.raises(UnknownSystemError, match="from the root on") as caught:
        read_folder("path:mysql")
    assert "did you mean path:/" in (caught.value.hint or "")
    with pytest.raises(UnknownSystemError):
        read_folder("path:")


def test_the_users_own_folder_can_be_written_short(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(read_folder("path:~/mysql")) == "/home/somebody/mysql"


def test_a_folder_without_a_server_is_told(tmp_path):
    with pytest.raises(ProvisionError, match="no server's program") as caught:
        look(tmp_path)
    assert "bin/mysqld" in (caught.value.wanted or "")
    with pytest.raises(ProvisionError) as caught:
        look(tmp_path / "nowhere")
    assert caught.value.found == "no such folder"


def test_a_folder_closed_to_the_servers_user_is_told(folder, monkeypatch):
    monkeypatch.setattr(process, "server_user", lambda: ServerUser("nobody", 65534, 65534))
    folder.chmod(0o700)
    with pytest.raises(ProvisionError, match="user nobody may not run"):
        look(folder)
