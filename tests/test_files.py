"""Files are replaced whole, private files are closed, and a lock is held by one process alone."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from dbdyno import files
from dbdyno.errors import StoreError
from dbdyno.files import holder, is_locked, locked, private, refuse_shared, replaced

HOLDER = """
import sys, time
from pathlib import Path
from dbdyno.files import locked
with locked(Path(sys.argv[1]), "run r"):
    print("held", flush=True)
    time.sleep(600)
"""


def take(path):
    with locked(path, "run r"):
        return True


def write(path, text, error=None):
    with replaced(path) as new:
        new.write_text(text)
        if error is not None:
            raise error


def test_a_file_is_replaced_at_the_end_of_the_block_or_not_at_all(tmp_path):
    path = tmp_path / "page"
    write(path, "old")
    with pytest.raises(KeyboardInterrupt):
        write(path, "half", KeyboardInterrupt())
    assert path.read_text() == "old"
    write(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_replaced_outlasts_a_power_cut(tmp_path, monkeypatch):
    flushed = []

    def fsync(handle):
        name = str(Path(f"/proc/self/fd/{handle}").readlink())
        flushed.append((name, (tmp_path / "file").exists()))

    monkeypatch.setattr(files.os, "fsync", fsync)
    write(tmp_path / "file", "new")
    (new, was_there), folder = flushed
    assert new.startswith(f"{tmp_path}/.file.")
    assert not was_there
    assert folder == (str(tmp_path), True)


def test_what_a_dead_process_left_beside_it_is_removed_and_what_a_live_one_writes_stays(tmp_path):
    path = tmp_path / "report[1].html"
    (tmp_path / ".report[1].html.dbdyno-abcd_123").write_text("half a page")
    for whose in ("bak", "original"):
        (tmp_path / f".report[1].html.{whose}").write_text("somebody's")
    os.mkfifo(tmp_path / ".report[1].html.dbdyno-abcd_124")  # nobody writes into it
    with replaced(path) as first:
        write(path, "second")
        first.write_text("first")
    assert path.read_text() == "first"
    kept = [".report[1].html.bak", ".report[1].html.dbdyno-abcd_124", ".report[1].html.original"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [*kept, path.name]


LEAVES = (
    "import sys, time; from pathlib import Path; from dbdyno.files import make_temporary;"
    "left = make_temporary(Path(sys.argv[1])); (left / 'data').mkdir();"
    "print(left.name, flush=True); time.sleep(600)"
)


def test_a_temporary_folder_of_a_killed_process_is_removed_and_a_live_ones_stays(tmp_path):
    others = [f"{files.TEMPORARY_FOLDER}and-more-than-8", ".dbdyno-mine", "dbdyno-12345678"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / f"{files.TEMPORARY_FOLDER}a_link_1").symlink_to(tmp_path / others[1])
    running = subprocess.Popen(
        [sys.executable, "-c", LEAVES, tmp_path], stdout=subprocess.PIPE, text=True
    )
    with running, files.temporary_folder(tmp_path) as ours:
        theirs = running.stdout.readline().strip()
        assert ours.stat().st_mode & 0o777 == 0o700
        files.remove_left(tmp_path)
        assert (tmp_path / theirs / "data").is_dir()
        running.kill()
        running.wait()
        files.remove_left(tmp_path)
        assert ours.is_dir()
        assert not (tmp_path / theirs).exists()
    kept = [*others, f"{files.TEMPORARY_FOLDER}a_link_1"]
    assert {each.name for each in tmp_path.iterdir()} == {*kept}


def test_a_private_file_is_closed_and_never_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "x.conf").symlink_to(tmp_path / "precious")
    (tmp_path / ".x.conf.new").symlink_to(tmp_path / "precious")  # left, or laid there
    written = private(tmp_path / "x.conf", "new")
    assert (written.read_text(), written.is_symlink()) == ("new", False)
    assert written.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "precious").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "x.conf"]


def test_a_private_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path):
    (tmp_path / "x.conf").mkdir()
    with pytest.raises(IsADirectoryError):
        private(tmp_path / "x.conf", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["x.conf"]


def test_a_second_taker_is_told_who_holds_it_until_that_one_dies(tmp_path):
    path = tmp_path / "locks" / "r.lock"
    running = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="run r is being worked on by another") as caught:
            take(path)
        assert f"process {running.pid}, since 2" in caught.value.found
        assert (is_locked(path), holder(path)) == (True, running.pid)
        running.send_signal(signal.SIGKILL)
    assert not is_locked(path)
    assert take(path)
    assert holder(path) is None


def test_a_holder_that_wrote_nothing_yet_is_told_so(tmp_path):
    with locked(tmp_path / "l", "run r"):
        (tmp_path / "l").write_text("")
        with pytest.raises(StoreError) as caught:
            take(tmp_path / "l")
    assert "just begun" in caught.value.found


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
def test_a_lock_is_not_written_through_a_link(tmp_path, kind):
    precious, lock = tmp_path / "precious", tmp_path / "locks" / "r.lock"
    lock.parent.mkdir()
    precious.write_text("kept")
    if kind == "hard":
        lock.hardlink_to(precious)
    else:
        lock.symlink_to(precious if kind == "symbolic" else tmp_path / "new")
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        take(lock)
    assert "r.lock there is no link" in caught.value.hint
    assert precious.read_text() == "kept"
    assert not (tmp_path / "new").exists()
    assert not is_locked(lock) or kind == "hard"


def test_a_lock_that_others_can_change_is_not_taken(tmp_path):
    (tmp_path / "r.lock").touch()
    (tmp_path / "r.lock").chmod(0o666)
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        take(tmp_path / "r.lock")
    assert "only its user can change" in caught.value.found


def test_a_lock_in_a_folder_that_others_can_change_is_not_taken(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="can be changed by others"):
        take(tmp_path / "r.lock")
    assert list(tmp_path.iterdir()) == []


class Folder(NamedTuple):
    """A folder by its owner, group and mode, as `refuse_shared` sees it."""

    st_uid: int
    st_gid: int
    st_mode: int

    def stat(self):
        return self

    def __str__(self):
        return "runs"


GROUPS = {1000: ("ann", []), 1001: ("ann", ["bob"]), 100: ("users", []), 0: ("root", [])}
"""Names and members; 1000 is ann's own group."""


def refused(monkeypatch, uid, folder):
    """The hint with which user `uid` (ann is 1000) is refused a folder; None if not."""

    def known(gid):
        return SimpleNamespace(gr_name=GROUPS[gid][0], gr_mem=GROUPS[gid][1])

    names = {0: "root", 1000: "ann", 1002: "bob"}
    monkeypatch.setattr(files.os, "geteuid", lambda: uid)
    monkeypatch.setattr(files.pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=names[uid]))
    monkeypatch.setattr(files.grp, "getgrgid", known)
    try:
        refuse_shared(folder, "the workspace")
    except StoreError as error:
        return error.hint
    return None


@pytest.mark.parametrize(
    ("uid", "owner", "group", "mode"),
    [
        (1000, 1000, 1000, 0o755),
        (1000, 1000, 1000, 0o775),  # umask 002 and a group of one's own, as Fedora has it
        (1000, 1000, 100, 0o755),
        (1000, 1000, 4242, 0o750),
        (1000, 0, 0, 0o755),
        (4242, 4242, 4242, 0o775),  # a container's user, whom nobody named
        (0, 0, 0, 0o755),
        (0, 0, 1000, 0o750),
    ],
)
def test_a_folder_that_its_user_alone_can_change_is_used(monkeypatch, uid, owner, group, mode):
    assert refused(monkeypatch, uid, Folder(owner, group, mode)) is None


@pytest.mark.parametrize(
    ("uid", "owner", "group", "mode"),
    [
        (1000, 1000, 1000, 0o777),
        (1000, 1000, 1001, 0o775),  # bob is in it
        (1000, 1000, 100, 0o775),
        (1000, 1000, 4242, 0o770),
        (4242, 4242, 100, 0o775),
        (0, 0, 0, 0o775),
        (0, 0, 1000, 0o775),
        (0, 0, 0, 0o757),
    ],
)
def test_a_folder_that_others_can_write_is_refused(monkeypatch, uid, owner, group, mode):
    hint = refused(monkeypatch, uid, Folder(owner, group, mode))
    assert hint == "chmod -R go-w runs, or choose another folder with --workspace"


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_folder_that_is_everybodys_is_refused_and_stays_open(monkeypatch, uid):
    hint = refused(monkeypatch, uid, Folder(uid, uid, 0o1777))  # as /tmp
    assert hint == "choose another folder with --workspace"


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_folder_of_another_user_is_refused(monkeypatch, uid):
    hint = refused(monkeypatch, uid, Folder(1002, 1002, 0o700))
    assert hint == "choose another folder with --workspace"


def test_a_lock_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        take(tmp_path / "file" / "l")


def test_who_waits_is_told_so_and_comes_second(tmp_path):
    lock, told, order = tmp_path / "x.lock", [], []
    waiting = threading.Event()

    def wait(text):
        told.append(text)
        waiting.set()

    def second():
        with locked(lock, "x", wait=wait):
            order.append("second")

    with locked(lock, "x"):
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(60)
        order.append("first")
    other.join(60)
    assert order == ["first", "second"]
    assert told == ["waiting for another dbdyno that holds x.lock"]


def test_waiting_is_told_again_and_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TOLD_EVERY_S", 0.15)
    monkeypatch.setattr(files, "WAIT_S_MAX", 0.6)
    lock, told = tmp_path / "x.lock", []
    with (
        locked(lock, "x"),
        pytest.raises(StoreError, match=r"another dbdyno holds x\.lock for more than") as caught,
        locked(lock, "x", wait=told.append),
    ):
        pass
    assert caught.value.found.startswith(f"process {os.getpid()}, since ")
    assert told[1] == f"still waiting for x.lock, held by {caught.value.found}"


def test_asking_whether_a_lock_is_held_does_not_make_it_or_turn_a_taker_away(tmp_path):
    path = tmp_path / "r.lock"
    assert not is_locked(path)
    assert not path.exists()
    assert take(path)
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            is_locked(path)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    try:
        assert all(take(path) for _ in range(200))
    finally:
        stop.set()
        for asker in askers:
            asker.join()


def test_a_lock_is_not_inherited_by_programs_that_its_holder_starts(tmp_path):
    with locked(tmp_path / "l", "run r"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert not is_locked(tmp_path / "l")
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
