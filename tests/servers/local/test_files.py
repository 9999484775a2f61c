"""Files in folders of the server's user, copies with their holes, and checksums of copies."""

from __future__ import annotations

import collections
import ctypes
import json
import os
import shutil
import socket
import tempfile
import zlib
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.files import open_file, opened_folder, private, remove_tree
from dbdyno.servers.local import files
from dbdyno.servers.local.files import (
    SOCKET_BYTES_MAX,
    make_folders,
    read_file,
    remove_file,
    remove_socket_place,
    socket_place,
)
from support.deep_folders import make_deep

NAME = ".s.PGSQL.5432"


def test_a_file_in_the_servers_folder_is_read_from_its_end(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "postmaster.pid").write_text("4711\n/data\n")
    assert read_file(tmp_path, "data/postmaster.pid") == b"4711\n/data\n"
    assert read_file(tmp_path, "data/postmaster.pid", 6) == b"/data\n"


@pytest.mark.parametrize("what", ["link", "folder link", "pipe", "folder"])
def test_only_a_file_of_the_servers_own_is_opened(tmp_path, what):
    secret, work = tmp_path / "secret", tmp_path / "work"
    secret.mkdir()
    (secret / "pid").write_text("1")
    (work / "data").mkdir(parents=True)
    wanted = work / "data" / "pid"
    if what == "link":
        wanted.symlink_to(secret / "pid")
    elif what == "pipe":
        os.mkfifo(wanted)
    elif what == "folder":
        wanted.mkdir()
    else:
        wanted.parent.rmdir()
        wanted.parent.symlink_to(secret)
    with pytest.raises(OSError, match=r"symbolic link|not a regular file|Not a directory"):
        read_file(work, "data/pid")


def test_a_hard_link_to_a_file_of_the_labs_is_not_opened_for_another_user(tmp_path):
    (tmp_path / "own").write_text("1")
    with opened_folder(tmp_path) as folder:
        os.close(open_file(folder, "own", owner=12345))
        os.link(tmp_path / "own", tmp_path / "linked")
        with pytest.raises(PermissionError, match="not a regular file of its user"):
            open_file(folder, "linked", owner=12345)


def test_nothing_is_written_or_removed_in_a_folder_behind_a_link(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "auto.cnf").write_text("kept")
    (tmp_path / "data").symlink_to(tmp_path / "precious")
    with pytest.raises(NotADirectoryError):
        private(tmp_path / "data" / "auto.cnf", "new")
    with pytest.raises(NotADirectoryError):
        remove_file(tmp_path / "data" / "auto.cnf")
    assert (tmp_path / "precious" / "auto.cnf").read_text() == "kept"


@pytest.mark.parametrize("folder", ["x" * 120, "one,two"])
def test_a_folder_that_will_not_do_gets_a_socket_in_a_short_one(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert socket_place("pg", Path("/short"), NAME, None, commas=False) == Path("/short") / NAME
    assert socket_place("my", Path("/a,b"), "my.sock", None, commas=True) == Path("/a,b/my.sock")
    elsewhere = socket_place("pg", tmp_path / folder, NAME, None, commas=False)
    assert len(str(elsewhere)) <= SOCKET_BYTES_MAX
    assert elsewhere.parent.stat().st_mode & 0o777 == 0o700
    remove_socket_place(elsewhere, tmp_path)
    assert not elsewhere.parent.parent.exists()


@pytest.mark.parametrize(("commas", "unless"), [(False, " and no comma"), (True, "")])
def test_no_short_folder_is_an_error(tmp_path, monkeypatch, commas, unless):
    long = tmp_path / ("y" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(ServerError) as caught:
        socket_place("pg", tmp_path / ("x" * 120), NAME, None, commas=commas)
    assert caught.value.message == f"pg: a socket's path may have 107 bytes at most{unless}"
    assert "set TMPDIR" in (caught.value.hint or "")
    assert list(long.iterdir()) == []


def test_folders_for_the_server_are_closed_to_others(tmp_path):
    folders = [tmp_path / "server", tmp_path / "server" / "tmp"]
    make_folders(folders, None)
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]


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


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def test_a_copy_has_the_same_bytes_holes_and_reserved_space_for_its_owner_alone(source, target):
    files.copy_tree(source, target, owner=None)
    for path in source.rglob("*"):
        twin = target / path.relative_to(source)
        assert twin.is_dir() if path.is_dir() else twin.read_bytes() == path.read_bytes()
    assert (target / "sparse").stat().st_blocks * 512 < 1_000_000
    assert (target / "redo").stat().st_blocks * 512 >= 1_000_000
    assert (target / "reserved").stat().st_blocks * 512 >= 2_000_000
    assert target.stat().st_mode & 0o777 == 0o700
    assert (target / "redo").stat().st_mode & 0o777 == 0o640


def test_a_short_disk_is_found_before_copying(source, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(100, 99, 4096))
    with pytest.raises(ServerError, match="too full") as caught:
        files.copy_tree(source, tmp_path / "target", owner=None)
    needed = files.occupied_bytes(source) + files.RESERVE_BYTES
    assert caught.value.wanted == f"{needed} bytes free at {tmp_path}"
    assert caught.value.found == "4096 bytes free"
    assert not (tmp_path / "target").exists()


class LostWrite:
    """A C library whose file system has lost a write."""

    def __init__(self, name, use_errno):
        self.syncfs = lambda handle: ctypes.set_errno(5) or -1


@pytest.mark.parametrize("failing", ["copying", "flushing"])
def test_a_copy_that_fails_or_cannot_be_flushed_leaves_nothing(
    source, target, monkeypatch, failing
):
    def fail(*_):
        raise OSError(5, "Input/output error")

    if failing == "copying":
        monkeypatch.setattr(os, "sendfile", fail)
    else:
        monkeypatch.setattr(files.ctypes, "CDLL", LostWrite)
    with pytest.raises(ServerError, match=r"cannot be copied.*Input/output error") as caught:
        files.copy_tree(source, target, owner=None)
    assert "look at the disk" in (caught.value.hint or "")
    assert not target.exists()


def test_links_are_not_followed(source, target):
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(ServerError, match="neither a file nor a folder"):
        files.copy_tree(source, target, owner=None)
    assert not target.exists()


@pytest.mark.parametrize("name", ["redo", "mysql"])
def test_a_link_put_there_while_files_are_copied_is_not_followed(
    source, target, tmp_path, monkeypatch, name
):
    def looked_at(what, look=os.stat, **where):
        facts = look(what, **where)
        if what == name:  # right after it was seen to be a file or a folder
            (source / name).rename(tmp_path / name)
            (source / name).symlink_to(tmp_path / name)
        return facts

    monkeypatch.setattr(files.os, "stat", looked_at)
    with pytest.raises(ServerError, match="cannot be copied"):
        files.copy_tree(source, target, owner=None)
    assert not target.exists()


def test_a_copy_goes_to_the_folder_that_was_made_for_it(source, target, tmp_path, monkeypatch):
    def exchanged(handle, name, owner, open_file=files.open_file):
        if name == "redo":
            target.rename(tmp_path / "away")
            (tmp_path / "elsewhere").mkdir()
            target.symlink_to(tmp_path / "elsewhere")
        return open_file(handle, name, owner)

    monkeypatch.setattr(files, "open_file", exchanged)
    files.copy_tree(source, target, owner=None)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "away" / "sparse").exists()


def test_a_file_of_holes_that_would_take_hours_to_read_is_refused(source, target):
    os.truncate(source / "sparse", 2 << 40)
    with pytest.raises(ServerError, match="a file of holes"):
        files.copy_tree(source, target, owner=None)


def test_folders_in_folders_without_end_are_refused_and_removed(source, target):
    make_deep(source, 1500)
    with pytest.raises(ServerError, match="without end"):
        files.copy_tree(source, target, owner=None)
    remove_tree(source)
    assert not source.exists()


def test_sockets_are_left_behind(source, target):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(source / "sock"))
        files.copy_tree(source, target, owner=None)
    assert not (target / "sock").exists()


def test_a_copy_shares_no_blocks_and_goes_on_after_a_short_write(source, target, monkeypatch):
    def no_sharing(*_):
        raise AssertionError("may share blocks where the file system can")

    def short(written, read, at, length, send=os.sendfile):
        return send(written, read, at, min(length, 70_001))

    monkeypatch.setattr(os, "copy_file_range", no_sharing)
    monkeypatch.setattr(os, "sendfile", short)
    files.copy_tree(source, target, None)
    for path in (p for p in source.rglob("*") if p.is_file()):
        assert (target / path.relative_to(source)).read_bytes() == path.read_bytes()


# A kept copy has no zeros, and is laid out with all of them.


@pytest.fixture
def kept(source, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    (source / "log").write_bytes(os.urandom(70_000) + bytes(300_000) + b"end")
    files.keep(source, folder)
    return folder


def occupied(path):
    return path.stat().st_blocks * 512


def test_a_kept_copy_has_the_same_bytes_and_takes_no_room_for_zeros(source, kept):
    for path in (p for p in source.rglob("*") if p.is_file()):
        assert (kept / "data" / path.relative_to(source)).read_bytes() == path.read_bytes()
    assert occupied(kept / "data" / "redo") < 100_000
    assert occupied(kept / "data" / "reserved") < 100_000
    assert 70_000 <= occupied(kept / "data" / "log") < 250_000
    zeros = files.zeros_of(kept)
    assert (zeros["mysql/user.ibd"], zeros["log"]) == ([], [[131_072, 327_680]])
    assert not {"sparse", "empty"} & zeros.keys()  # the one has holes of its own


def test_a_kept_copy_is_laid_out_with_its_zeros_on_disk(source, kept, target):
    files.copy_tree(kept / "data", target, None, files.zeros_of(kept))
    for path in (p for p in source.rglob("*") if p.is_file()):
        assert (target / path.relative_to(source)).read_bytes() == path.read_bytes()
    sizes = {name: occupied(target / name) for name in ("redo", "reserved", "log", "sparse")}
    assert sizes["redo"] >= 1_000_000
    assert sizes["reserved"] >= 2_000_000
    assert sizes["log"] >= 370_003
    assert sizes["sparse"] < 1_000_000
    with (target / "redo").open("rb") as redo:
        assert os.lseek(redo.fileno(), 0, os.SEEK_HOLE) == 1_000_000  # written, not only reserved


def test_a_disk_has_room_for_a_laid_out_copy_only_with_its_zeros(kept, target, monkeypatch):
    left_out = files.left_out_bytes(kept)
    assert 3_100_000 < left_out < 3_200_000
    assert files.left_out_bytes(kept, "mysql") == 0
    assert files.left_out_bytes(target) == 0
    needed = files.occupied_bytes(kept / "data") + left_out + files.RESERVE_BYTES
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, needed - 1))
    with pytest.raises(ServerError, match="too full"):
        files.copy_tree(kept / "data", target, None, files.zeros_of(kept))
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, needed))
    files.copy_tree(kept / "data", target, None, files.zeros_of(kept))


def test_a_file_that_no_server_reads_is_kept_as_zeros_of_its_length(source, tmp_path, target):
    kept = tmp_path / "kept"
    kept.mkdir()
    files.keep(source, kept, lambda path: path == "mysql/user.ibd")
    assert files.zeros_of(kept)["mysql/user.ibd"] == [[0, 100_000]]
    assert occupied(kept / "data" / "mysql" / "user.ibd") == 0
    files.copy_tree(kept / "data", target, None, files.zeros_of(kept))
    assert (target / "mysql" / "user.ibd").read_bytes() == bytes(100_000)
    assert occupied(target / "mysql" / "user.ibd") >= 100_000
    files.check_checksums("fast", target, kept / files.CHECKSUMS)


def test_a_long_file_is_kept_and_laid_out_piece_by_piece(source, tmp_path, target, monkeypatch):
    monkeypatch.setattr(files, "COPY_CHUNK_BYTES", 100_000)
    monkeypatch.setattr(files, "ZERO_PIECE", bytes(8192))
    content = bytes(150_000) + os.urandom(90_001) + bytes(200_000)
    (source / "undo").write_bytes(content)
    (tmp_path / "kept").mkdir()
    files.keep(source, tmp_path / "kept")
    assert (tmp_path / "kept" / "data" / "undo").read_bytes() == content
    files.copy_tree(tmp_path / "kept" / "data", target, None, files.zeros_of(tmp_path / "kept"))
    assert (target / "undo").read_bytes() == content


# A restored folder passes only as exactly what was listed.


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "snapshot" / "data"
    (data / "sbtest").mkdir(parents=True)
    (data / "ibdata1").write_bytes(b"system")
    (data / "sbtest" / "sbtest1.ibd").write_bytes(os.urandom(100_000))
    (data.parent / files.CHECKSUMS).write_text(json.dumps(files.checksums_of(data)))
    return data


def check(folder):
    files.check_checksums("fast", folder, folder.parent / files.CHECKSUMS)


def test_files_are_listed_by_their_path_with_length_and_crc(folder, monkeypatch):
    monkeypatch.setattr(files, "CHECKSUM_CHUNK_BYTES", 4)  # sums of pieces are those of the whole
    assert files.checksums_of(folder)["ibdata1"] == [6, zlib.crc32(b"system")]
    assert list(files.checksums_of(folder)) == ["ibdata1", "sbtest/sbtest1.ibd"]
    check(folder)


def test_one_changed_byte_is_found_and_named(folder):
    table = folder / "sbtest" / "sbtest1.ibd"
    content = bytearray(table.read_bytes())
    content[70_000] ^= 1
    table.write_bytes(content)
    with pytest.raises(ServerError, match="not those of the snapshot") as caught:
        check(folder)
    assert caught.value.found == "sbtest/sbtest1.ibd"
    assert caught.value.wanted.startswith("2 files")


def test_files_too_many_or_too_few_are_found_and_five_of_them_named(folder):
    (folder / "ibdata1").rename(folder / "ibdata2")
    with pytest.raises(ServerError) as caught:
        check(folder)
    assert caught.value.found == "ibdata1, ibdata2"
    for number in range(9):
        (folder / f"a{number}").touch()
    with pytest.raises(ServerError) as caught:
        check(folder)
    assert caught.value.found == "a0, a1, a2, a3, a4 …"
