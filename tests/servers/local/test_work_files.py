import tempfile
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local.files import SOCKET_BYTES_MAX, make_folders, socket_place, write_private

NAME = ".s.PGSQL.5432"


def test_a_file_for_the_server_is_closed_and_never_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "x.conf").symlink_to(tmp_path / "precious")
    written = write_private(tmp_path / "x.conf", "new", None)
    assert written.read_text() == "new"
    assert not written.is_symlink()
    assert written.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "precious").read_text() == "kept"


@pytest.mark.parametrize("folder", ["x" * 120, "one,two"])
def test_a_folder_that_will_not_do_gets_a_socket_in_a_short_one(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert socket_place("pg", Path("/short"), NAME, None, commas=False) == Path("/short") / NAME
    elsewhere = socket_place("pg", tmp_path / folder, NAME, None, commas=False)
    assert len(str(elsewhere)) <= SOCKET_BYTES_MAX
    assert elsewhere.parent.stat().st_mode & 0o777 == 0o700
    elsewhere.parent.rmdir()


def test_no_short_folder_is_an_error(tmp_path, monkeypatch):
    long = tmp_path / ("y" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(ServerError, match="pg: a socket's path may have 107 bytes"):
        socket_place("pg", tmp_path / ("x" * 120), NAME, None, commas=False)
    assert list(long.iterdir()) == []


def test_a_comma_matters_only_to_those_who_cannot_have_one(tmp_path, monkeypatch):
    assert socket_place("my", Path("/a,b"), "my.sock", None, commas=True) == Path("/a,b/my.sock")
    long = tmp_path / ("y" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(ServerError, match="may have 107 bytes at most") as caught:
        socket_place("my", tmp_path / ("x" * 120), "my.sock", None, commas=True)
    assert caught.value.message == "my: a socket's path may have 107 bytes at most"
    assert caught.value.hint == "set TMPDIR to a folder with a shorter name"


def test_folders_for_the_server_are_closed_to_others(tmp_path):
    folders = [tmp_path / "server", tmp_path / "server" / "tmp"]
    make_folders(folders, None)
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]
