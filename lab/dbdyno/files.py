"""Folders closed to other users, temporary and kept folders, replaced and private files, locks.

A lock is held with flock: the kernel drops it when its holder dies, however it dies, so a crash
leaves no lock to clean, and temporary folders without a lock are a dead process's. A lock file's
content (pid and start time) serves messages and ending the holder; it is valid only while the lock
is held.
"""

from __future__ import annotations

import errno
import fcntl
import grp
import json
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import Final, Protocol

from dbdyno.errors import DbdynoError, StoreError

PROBE_S_MAX: Final = 0.1
"""Longest time for which `is_locked` holds a lock to test it."""

WAIT_S_MAX: Final = 3600.0
"""Longest wait for a lock's holder: more than fetching a server takes."""
TOLD_EVERY_S: Final = 10.0

TEMPORARY: Final = 8
"""Characters that tempfile adds to a name."""
TEMPORARY_FOLDER: Final = ".dbdyno-temporary-"
"""Beginning of a temporary folder's name."""


class Owner(Protocol):
    """A file's future user and group."""

    @property
    def uid(self) -> int:
        """The user's number."""

    @property
    def gid(self) -> int:
        """The group's number."""


def restrict_umask() -> None:
    """Make new files writable by their owner alone, from now on."""
    os.umask((os.umask(0o077) | 0o022) & 0o077)


def make_folder(folder: Path) -> None:
    """Make a folder closed to other users, and its parents; existing folders stay as they are."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)


def refuse_shared(
    path: Path,
    what: str,
    instead: str = "choose another folder with --workspace",
    error: type[DbdynoError] = StoreError,
) -> None:
    """Raise `error` if another user can change a folder or file by its owner, group or mode.

    A user who can put links and files there controls the lab's writes elsewhere and its input.

    Args:
        what: its purpose, for the message: "the workspace".
        instead: the remedy besides changing the mode.
    """
    facts = path.stat()
    if _is_own(facts) and not _is_shared(facts):
        return
    is_everybodys = bool(facts.st_mode & stat.S_ISVTX)  # such as /tmp, which must stay open
    closed = f"chmod -R go-w {path}, or " if _is_own(facts) and not is_everybodys else ""
    raise error(
        f"{what} {path} can be changed by others",
        wanted=f"that only {_name(os.geteuid())} can change it",
        found=f"owner {_name(facts.st_uid)}, group {facts.st_gid}, "
        f"mode {stat.filemode(facts.st_mode)}",
        hint=f"{closed}{instead}",
    )


def _is_own(facts: os.stat_result) -> bool:
    return facts.st_uid in (os.geteuid(), 0)


def _is_shared(facts: os.stat_result) -> bool:
    """Test for write permission of others, or of a group with other members than the user."""
    by_group = bool(facts.st_mode & stat.S_IWGRP) and not _is_private(facts.st_gid)
    return by_group or bool(facts.st_mode & stat.S_IWOTH)


def _is_private(gid: int) -> bool:
    """Test for a user private group, as Debian and Fedora make them; False for root."""
    uid = os.geteuid()
    try:
        user, group = pwd.getpwuid(uid).pw_name, grp.getgrgid(gid)
    except KeyError:  # as in a container: nobody is named, so nobody is a member
        return gid == uid != 0
    return uid != 0 and group.gr_name == user and set(group.gr_mem) <= {user}


def _name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)


def open_own(path: Path, flags: int) -> int:
    """Opens a file of ours, made if `flags` say so; the caller closes the descriptor.

    Raises:
        StoreError: others can change its folder.
        OSError: it cannot be opened, it is a link or no regular file, or others can change it.
    """
    refuse_shared(path.parent, "the folder")
    with opened_folder(path.parent.resolve()) as folder:
        handle = os.open(path.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    facts = os.fstat(handle)
    is_file = stat.S_ISREG(facts.st_mode) and facts.st_nlink <= 1
    if is_file and _is_own(facts) and not _is_shared(facts):
        return handle
    os.close(handle)
    raise PermissionError(errno.EPERM, "not a file that only its user can change", str(path))


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Temporary file beside `path` for the block to write; it replaces `path` at the end.

    A reader sees the old file or the new file whole, after a power cut too; if the block fails, the
    old file stays. Temporary files of dead processes are removed, since their locks are free.
    Raises the file system's OSError.
    """
    prefix = f".{path.name}.dbdyno-"
    for left in path.parent.glob(f"{escape(prefix)}{'?' * TEMPORARY}"):
        with suppress(OSError):
            _remove_unless_locked(left)
    handle, new = _temporary(path.parent, prefix)
    try:
        yield new
        new.chmod(0o644)
        os.fsync(handle)
        new.replace(path)
        _flush_names(path.parent)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
    finally:
        os.close(handle)


def _flush_names(folder: Path) -> None:
    """Flush a folder's entries, if the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary(folder: Path, prefix: str) -> tuple[int, Path]:
    """New file under a lock released with its descriptor."""
    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=prefix)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # somebody took it for one that was left


def _remove_unless_locked(path: Path) -> None:
    with opened_folder(path.parent.resolve()) as folder:  # in a shared one it may be anybody's
        handle = open_file(folder, path.name, os.geteuid())
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(handle)


def private(path: Path, text: str, owner: Owner | None = None) -> Path:
    """Replace a file atomically by text for its owner alone.

    Args:
        path: its folder may be another user's: no link in it is followed.
        owner: its new owner; None for the lab's user.
    """
    new = f".{path.name}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with opened_folder(path.parent) as folder:
        with suppress(FileNotFoundError):  # left by a process that died while it wrote
            os.unlink(new, dir_fd=folder)
        try:
            with os.fdopen(os.open(new, flags, 0o600, dir_fd=folder), "w") as written:
                if owner is not None:
                    os.fchown(written.fileno(), owner.uid, owner.gid)
                written.write(text)
            os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=folder)
            raise
    return path


@contextmanager
def opened_folder(path: str | Path, inside: int | None = None) -> Iterator[int]:
    """Descriptor of a folder; OSError for a link or another kind of file.

    Args:
        path: a folder below a parent of the lab's own, or a name in the folder `inside`.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    handle = os.open(path, flags, dir_fd=inside)
    try:
        yield handle
    finally:
        os.close(handle)


def open_file(folder: int, name: str, owner: int) -> int:
    """Open a file of an open folder for reading; the caller closes the descriptor.

    Raises:
        OSError: it is missing, a link, no regular file, or neither `owner`'s nor the lab's alone.
    """
    # Without O_NONBLOCK a pipe of that name would keep us waiting for its writer.
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    facts = os.fstat(handle)
    ours = facts.st_uid == os.geteuid() and facts.st_nlink == 1  # more: somebody linked it
    if stat.S_ISREG(facts.st_mode) and (facts.st_uid == owner or ours):
        return handle
    os.close(handle)
    raise PermissionError(errno.EPERM, "not a regular file of its user", name)


# A folder that this process holds has a lock, by a descriptor that stays open until its end.

_held: dict[tuple[int, int], int] = {}
"""Descriptors of locked folders, by device and inode."""


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new folder, closed to others, removed at the end of the block.

    Args:
        parent: its place; by default the system's folder for temporary files.
    """
    folder = make_temporary(parent)
    try:
        yield folder
    finally:
        remove_temporary(folder)


def make_temporary(parent: Path | None = None) -> Path:
    """As `temporary_folder`, until `remove_temporary`; if this process dies, `remove_left`."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_FOLDER, dir=parent))
        with suppress(FileNotFoundError):  # another process took it for a dead one's
            hold(folder, fcntl.LOCK_EX)
            return folder


def remove_temporary(folder: Path) -> None:
    """Remove a folder of this process's `make_temporary`, and no other, if it is still there.

    Anything that resists is left to `remove_left`.
    """
    with suppress(FileNotFoundError, KeyError):
        facts = folder.stat()
        held = _held.pop((facts.st_dev, facts.st_ino))
        remove_tree(folder)
        os.close(held)
        remove_unheld(folder)  # once more, if a dying server wrote into it


def remove_left(parent: Path) -> None:
    """Remove temporary folders in `parent` that dead processes of this user left there."""
    for left in parent.glob(f"{TEMPORARY_FOLDER}{'?' * TEMPORARY}"):
        remove_unheld(left)


def hold(folder: Path, how: int = fcntl.LOCK_SH) -> None:
    """Keep a folder from `remove_unheld` until this process ends.

    Raises:
        FileNotFoundError: it was removed meanwhile.
    """
    with opened_folder(folder.resolve()) as opened:
        facts = os.fstat(opened)
        if (facts.st_dev, facts.st_ino) in _held:
            return
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(opened, how)
        if not os.path.samestat(facts, folder.stat()):
            raise FileNotFoundError(errno.ENOENT, "another folder is in its place", str(folder))
        _held[facts.st_dev, facts.st_ino] = os.dup(opened)


def remove_unheld(folder: Path) -> bool:
    """Remove a folder of this user that no process holds, as far as it can be; True if it is gone.

    The folder may be in a place for everybody's files: others' folders and links stay.
    """
    with suppress(OSError), opened_folder(folder) as opened:
        if os.fstat(opened).st_uid == os.geteuid():
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
    return not folder.exists()


def occupied_bytes(folder: Path) -> int:
    """Disk space of all files below a folder, however deep; vanishing and closed ones count 0."""
    total, folders = 0, [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return total


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it as far as it can be, however deep; no link is followed."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # whoever may write there can put folders into folders without end
        command = [shutil.which("rm") or "/bin/rm", "-rf", "--", str(path)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


@contextmanager
def locked(path: Path, what: str, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock file `path`, made if missing, during the block.

    Args:
        what: the locked object, for the message: "run 20261121-…".
        wait: called with a message when another process holds the lock, and every ten seconds while
            waiting for it; None raises instead.

    Raises:
        StoreError: another live process holds it, to the end of a wait; or the file cannot be
            written.
    """
    try:
        make_folder(path.parent)
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise StoreError(
            f"the lock of {what} cannot be opened",
            found=str(error),
            hint=f"check the owner and the free space of its folder, and that {path.name} there "
            "is no link",
        ) from error
    try:
        if not _taken(descriptor):
            if wait is None:
                raise StoreError(
                    f"{what} is being worked on by another dbdyno",
                    wanted="one lab at a time",
                    found=_holder_in_words(descriptor),
                    hint="wait until it ends, or stop it",
                )
            wait(f"waiting for another dbdyno that holds {path.name}")
            _await(descriptor, path.name, wait)
        now = datetime.now().astimezone().isoformat("T", "seconds")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": now}).encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Test for a live holder of the lock now; False without the file."""
    try:
        descriptor = _open_to_look(path)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> int | None:
    """Pid of the lock file's last writer, else None; see `is_locked` for a live holder."""
    try:
        with os.fdopen(_open_to_look(path)) as file:
            return int(json.load(file)["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open_to_look(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _taken(descriptor: int) -> bool:
    """Tries to take the lock, for a little longer than `is_locked` may hold it."""
    ends = time.monotonic() + PROBE_S_MAX
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends:
                return False
            time.sleep(0.005)
        else:
            return True


def _await(descriptor: int, name: str, wait: Callable[[str], None]) -> None:
    """Wait for the lock and take it; StoreError if a holder keeps it for `WAIT_S_MAX`."""
    began = told_at = time.monotonic()
    held_by = _holder_in_words(descriptor)
    while not _taken(descriptor):
        now, holder = time.monotonic(), _holder_in_words(descriptor)
        if holder != held_by:
            began, held_by = now, holder
        if now - began > WAIT_S_MAX:
            raise StoreError(
                f"another dbdyno holds {name} for more than {WAIT_S_MAX / 60:.0f} min",
                found=holder,
                hint="see what it waits for, or stop it",
            )
        if now - told_at > TOLD_EVERY_S:
            told_at = now
            wait(f"still waiting for {name}, held by {holder}")


def _holder_in_words(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has just begun"
