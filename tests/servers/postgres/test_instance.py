"""A PostgreSQL's data directory, and the shared memory that a killed server left."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerError
from dbdyno.servers.local.files import CHECKSUMS, ZEROS
from dbdyno.servers.local.pristine import MARKER, kept
from dbdyno.servers.local.server import Site
from dbdyno.servers.postgres import instance as module
from dbdyno.servers.postgres.instance import is_behind, last_segment, making
from dbdyno.servers.reference import find
from support.archives import program

ENTRY = find("postgres:18.6")
INITDB = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -D) data="$2" ;;
    --pwfile=*) grep -q . "${1#--pwfile=}" || exit 5 ;;
    --wal-segsize=2) echo "no such size"; exit 1 ;;
  esac
  shift
done
mkdir "$data" && echo 18 > "$data/PG_VERSION"
"""


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Programs of which initdb is a script, and a cache of its own."""
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    program(tmp_path / "home" / "bin" / "initdb", INITDB)
    return tmp_path / "home"


def made(home: Path, **asked: str) -> Path:
    site = Site("pg", ENTRY, home, home / "work", None, asked)
    return kept(ENTRY, making(site), None, lambda text: None)


def test_a_data_directory_is_made_for_the_options_of_initdb_without_a_password(home, tmp_path):
    first = made(home)
    assert (first / "PG_VERSION").read_text() == "18\n"
    left = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    lock = next(name for name in left if name.endswith(".lock"))
    assert left == {"PG_VERSION", CHECKSUMS, ZEROS, MARKER, lock}
    assert made(home, work_mem="8MB") == first
    assert made(home, data_checksums="off") != first


def test_what_initdb_says_is_quoted(home):
    with pytest.raises(ServerError, match=r"initdb could not make .* \(exit code 1\)") as caught:
        made(home, wal_segment_size="2MB")
    assert caught.value.found == "no such size"
    assert "--wal-segsize=2" in (caught.value.wanted or "")


SHUT_DOWN, RUNNING = 1, 6
SEGMENT_BYTES = 16 * 1024**2


def control(position, state=SHUT_DOWN):
    """The beginning of a control file: the last checkpoint's position and its timeline, 2."""
    return struct.pack("=QIIIIqQQI", 7, 1800, 2025, state, 0, 99, position, position, 2)


@pytest.mark.parametrize(
    ("content", "last"),
    [
        (control(0x1_0200_0028), "pg_wal/000000020000000100000002"),
        (control(0x1_02FF_FFF0), "pg_wal/000000020000000100000003"),  # its record goes on there
        (control(0x1_FFFF_FFF0), "pg_wal/000000020000000200000000"),
        (control(0x1_0200_0028, RUNNING), ""),
        (b"half", ""),
    ],
)
def test_the_last_segment_of_a_log_has_the_checkpoint_of_the_shutdown(content, last):
    assert last_segment(content, SEGMENT_BYTES) == last


@pytest.mark.parametrize(
    ("path", "behind"),
    [
        ("pg_wal/000000020000000100000001", False),
        ("pg_wal/000000020000000100000002", False),
        ("pg_wal/000000020000000100000003", True),
        ("pg_wal/00000003.history", False),
        ("pg_wal/archive_status/000000020000000100000003.done", False),
        ("pg_xact/0000", False),
    ],
)
def test_only_segments_behind_the_last_are_read_by_no_server(path, behind):
    assert is_behind(path, "pg_wal/000000020000000100000002") == behind
    assert not is_behind(path, "")


HEAD = (
    "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid"
)


def table(users, owner=None, creator=4711):
    uid = os.geteuid() if owner is None else owner
    row = f"   9988    42   600  56 {creator}  4712      {users} {uid} {uid} {uid} {uid} 0 0 0 0 0"
    return f"{HEAD}\n{row}\n"


@pytest.fixture
def left(tmp_path, monkeypatch):
    """What a killed server left: a data directory, a segment, a control file and two others."""
    shared, data = tmp_path / "shm", tmp_path / "data"
    shared.mkdir()
    data.mkdir()
    (data / "postmaster.pid").write_text(
        "4711\n/data\n1\n5999\n/run\n127.0.0.1\n  9988  42\nready\n"
    )
    items = b"".join(struct.pack("=II32x", handle, used) for handle, used in ((7, 2), (8, 0)))
    control = struct.pack("=III4x", module.CONTROL_MAGIC, 2, 64) + items + bytes(999)
    (shared / "PostgreSQL.5").write_bytes(control)
    for name in ("PostgreSQL.7", "PostgreSQL.8", "other"):
        (shared / name).touch()
    (tmp_path / "table").write_text(table(users=0))
    removed = []

    class Library:
        def __init__(self, name):
            self.shmctl = lambda number, order, nothing: removed.append((number, order))

    monkeypatch.setattr(module, "SEGMENTS", tmp_path / "table")
    monkeypatch.setattr(module, "SHARED_FILES", shared)
    monkeypatch.setattr(module, "CHILDREN_S_MAX", 0.0)
    monkeypatch.setattr(module, "_control_handle", lambda number, creator: 5)
    monkeypatch.setattr(module.ctypes, "CDLL", Library)
    return data, shared, removed


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_server_held_is_freed_and_nothing_else(left):
    data, shared, removed = left
    module.free(data)
    assert names(shared) == ["PostgreSQL.8", "other"]  # 8 is in the list, but free already
    assert removed == [(42, module.IPC_RMID)]


@pytest.mark.parametrize(
    "row",
    [table(users=3), table(users=0, owner=12345), table(users=0, creator=1), HEAD + "\n", "odd"],
    ids=["in use", "another owner", "another creator", "gone", "no table"],
)
def test_what_is_used_or_somebody_elses_stays(left, tmp_path, row):
    data, shared, removed = left
    (tmp_path / "table").write_text(row)
    module.free(data)
    assert len(names(shared)) == 4
    assert removed == []


def test_a_server_that_stopped_left_nothing(left, tmp_path):
    data, _, removed = left
    (data / "postmaster.pid").unlink()
    module.free(data)
    module.free(tmp_path / "nowhere")
    assert removed == []


def test_a_control_file_is_not_read_through_a_link(left):
    data, shared, _ = left
    (shared / "PostgreSQL.5").rename(shared / "elsewhere")
    (shared / "PostgreSQL.5").symlink_to(shared / "elsewhere")
    module.free(data)
    assert "PostgreSQL.7" in names(shared)


@given(st.binary(max_size=400))
def test_no_control_file_breaks_the_reading(tmp_path_factory, content):
    shared = tmp_path_factory.mktemp("control")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHARED_FILES", shared)
        file = shared / "PostgreSQL.1"
        file.write_bytes(content)
        listed = module._listed(file.name, os.geteuid())
        assert all(name.startswith("PostgreSQL.") for name in listed)
        file.write_bytes(struct.pack("=III4x", module.CONTROL_MAGIC, 2**32 - 1, 1) + content)
        listed = module._listed(file.name, os.geteuid())
        assert len(list(listed)) <= len(content) // module.ITEM.size
