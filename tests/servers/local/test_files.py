import collections
import ctypes
import os
import shutil
import socket

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local import files

Usage = collections.namedtuple("Usage", "total used free")


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    (folder / "mysql").mkdir(parents=True)
    (folder / "mysql" / "user.ibd").write_bytes(os.urandom(100_000))
    (folder / "redo").write_bytes(bytes(1_000_000))
    (folder / "empty").touch()
    with (folder / "sparse").open("wb") as sparse:
        sparse.seek(8_000_000)
        sparse.write(b"end")
    with (folder / "reserved").open("wb") as reserved:
        os.posix_fallocate(reserved.fileno(), 0, 2_000_000)
    return folder


def test_a_copy_has_the_same_bytes(source, tmp_path):
    files.copy_tree(source, tmp_path / "target", owner=None)
    for path in source.rglob("*"):
        twin = tmp_path / "target" / path.relative_to(source)
        assert twin.is_dir() if path.is_dir() else twin.read_bytes() == path.read_bytes()


def test_holes_stay_holes_and_reserved_space_stays_reserved(source, tmp_path):
    files.copy_tree(source, tmp_path / "target", owner=None)
    assert (tmp_path / "target" / "sparse").stat().st_blocks * 512 < 1_000_000
    assert (tmp_path / "target" / "redo").stat().st_blocks * 512 >= 1_000_000
    assert (tmp_path / "target" / "reserved").stat().st_blocks * 512 >= 2_000_000


def test_only_the_owner_can_enter_the_copy(source, tmp_path):
    files.copy_tree(source, tmp_path / "target", owner=None)
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "target" / "redo").stat().st_mode & 0o777 == 0o640


def test_a_short_disk_is_found_before_copying(source, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(100, 99, 4096))
    with pytest.raises(ServerError, match="too full") as caught:
        files.copy_tree(source, tmp_path / "target", owner=None)
    needed = files.occupied_bytes(source) + files.RESERVE_BYTES
    assert caught.value.wanted == f"{needed} bytes free at {tmp_path}"
    assert caught.value.found == "4096 bytes free"
    assert not (tmp_path / "target").exists()


def test_a_failing_copy_leaves_nothing_behind(source, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "_copy_range", fail)
    with pytest.raises(ServerError, match="cannot be copied"):
        files.copy_tree(source, tmp_path / "target", owner=None)
    assert not (tmp_path / "target").exists()


def test_a_copy_that_cannot_be_flushed_leaves_nothing_behind(source, tmp_path, monkeypatch):
    class Library:
        """Its file system has lost a write."""

        def __init__(self, name, use_errno):
            self.syncfs = lambda handle: ctypes.set_errno(5) or -1

    monkeypatch.setattr(files.ctypes, "CDLL", Library)
    with pytest.raises(ServerError, match=r"cannot be copied.*Input/output error"):
        files.copy_tree(source, tmp_path / "target", owner=None)
    assert not (tmp_path / "target").exists()


def test_links_are_not_followed(source, tmp_path):
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(ServerError, match="neither a file nor a folder"):
        files.copy_tree(source, tmp_path / "target", owner=None)
    with pytest.raises(OSError, match="symbolic links"):
        files.copy_file(source / "link", tmp_path / "copy", None)


def test_sockets_are_left_behind(source, tmp_path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(source / "sock"))
        files.copy_tree(source, tmp_path / "target", owner=None)
    assert not (tmp_path / "target" / "sock").exists()


def test_a_copy_shares_no_blocks_and_goes_on_after_a_short_write(source, tmp_path, monkeypatch):
    def no_sharing(*_):
        raise AssertionError("may share blocks where the file system can")

    def short(written, read, at, length, send=os.sendfile):
        return send(written, read, at, min(length, 70_001))

    monkeypatch.setattr(os, "copy_file_range", no_sharing)
    monkeypatch.setattr(os, "sendfile", short)
    files.copy_tree(source, tmp_path / "copy", None)
    for path in (p for p in source.rglob("*") if p.is_file()):
        assert (tmp_path / "copy" / path.relative_to(source)).read_bytes() == path.read_bytes()
