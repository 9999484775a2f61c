"""Folders that nobody else can change, files that are replaced whole or private, and lock files.

A lock is held with flock: the kernel drops it when its holder dies, however it dies, so a crash
leaves nothing to clean. What stands in the file (pid and start time) is for messages, and for those
who want to end the holder; it means nothing unless the lock is held.
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
"""How long `is_locked` may hold a lock while it looks whether somebody holds it."""

WAIT_S_MAX: Final = 3600.0
"""How long one holder of a lock is waited for: more than anybody needs who fetches a server."""
TOLD_EVERY_S: Final = 10.0

TEMPORARY: Final = 8
"""Characters that tempfile adds to a name."""


class Owner(Protocol):
    """The user and group that a file is given to."""

    @property
    def uid(self) -> int:
        """The user's number."""

    @property
    def gid(self) -> int:
        """The group's number."""


def restrict_umask() -> None:
    """From now on new files are writable by their owner and by nobody else."""
    os.umask((os.umask(0o077) | 0o022) & 0o077)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, that others cannot change; existing ones stay as is."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)


def refuse_shared(
    folder: Path,
    what: str,
    instead: str = "choose another folder with --workspace",
    error: type[DbdynoError] = StoreError,
) -> None:
    """Raises `error` if another user can change a folder, be it by its owner, group or mode.

    Whoever can put links and files there decides what is written elsewhere, and what is believed.

    Args:
        what: the folder's purpose, for the message: "the workspace".
        instead: the remedy besides changing the folder's mode.
    """
    facts = folder.stat()
    if _is_own(facts) and not _is_shared(facts):
        return
    is_everybodys = bool(facts.st_mode & stat.S_ISVTX)  # such as /tmp, which must stay open
    closed = f"chmod -R go-w {folder}, or " if _is_own(facts) and not is_everybodys else ""
    raise error(
        f"{what} {folder} can be changed by others",
        wanted=f"a folder that only {_name(os.geteuid())} can change",
        found=f"owner {_name(facts.st_uid)}, group {facts.st_gid}, "
        f"mode {stat.filemode(facts.st_mode)}",
        hint=f"{closed}{instead}",
    )


def _is_own(facts: os.stat_result) -> bool:
    return facts.st_uid in (os.geteuid(), 0)


def _is_shared(facts: os.stat_result) -> bool:
    """Whether the group or everybody can write, but for a group that the user alone is in."""
    by_group = bool(facts.st_mode & stat.S_IWGRP) and not _is_private(facts.st_gid)
    return by_group or bool(facts.st_mode & stat.S_IWOTH)


def _is_private(gid: int) -> bool:
    """Whether a group is a user's own, as Debian and Fedora make them; never one of root's."""
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
        OSError: it cannot be opened, or it is a link, another user's or no regular file.
    """
    refuse_shared(path.parent, "the folder")
    with opened_folder(path.parent.resolve()) as folder:
        handle = os.open(path.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    facts = os.fstat(handle)
    if stat.S_ISREG(facts.st_mode) and _is_own(facts) and facts.st_nlink <= 1:
        return handle
    os.close(handle)
    raise PermissionError(errno.EPERM, "not a regular file of its user alone", str(path))


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file beside `path` for the block to write, which takes the place of `path` at its end.

    A reader sees the old file or the new one, never half of it, after a power cut too; if the block
    fails, the old one stays. What a process left that died meanwhile is removed: nobody holds its
    lock any more. OSError as the file system says.
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
    """Writes out which files a folder has, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary(folder: Path, prefix: str) -> tuple[int, Path]:
    """A new file under a lock that ends with its descriptor."""
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
    """Write a file that only its owner can read, whole or not at all, in place of what was there.

    Args:
        path: its folder may be another user's: no link in it is followed.
        owner: whose it becomes; None for our own.
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
    """A folder's descriptor; OSError if it is a link or no folder.

    Args:
        path: a folder whose parent is the lab's own, or one name in the folder `inside`.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    handle = os.open(path, flags, dir_fd=inside)
    try:
        yield handle
    finally:
        os.close(handle)


def open_file(folder: int, name: str, owner: int) -> int:
    """A file of an open folder, for reading; the caller closes the descriptor.

    Raises:
        OSError: there is none, or it is a link, no regular file, or neither `owner`'s nor the
            lab's alone.
    """
    # Without O_NONBLOCK a pipe of that name would keep us waiting for its writer.
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    facts = os.fstat(handle)
    ours = facts.st_uid == os.geteuid() and facts.st_nlink == 1  # more: somebody linked it
    if stat.S_ISREG(facts.st_mode) and (facts.st_uid == owner or ours):
        return handle
    os.close(handle)
    raise PermissionError(errno.EPERM, "not a regular file of its user", name)


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it as far as it can be, however deep; no link is followed."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # whoever may write there can put folders into folders without end
        command = [shutil.which("rm") or "/bin/rm", "-rf", "--", str(path)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


@contextmanager
def locked(path: Path, what: str, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Holds the lock file `path`, made if need be, for the length of the block.

    Args:
        what: what is locked, for the message: "run 20261121-…".
        wait: called with a message if another process holds the lock, which is then waited for,
            and again every ten seconds; None to raise instead.

    Raises:
        StoreError: another live process holds it, to the end of the wait if there is one; or the
            file cannot be written.
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
    """Whether a live process holds the lock at this moment; False if there is no such file."""
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
    """The process that wrote the lock file last; None if nobody did. Ask `is_locked` as well."""
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
    """Takes the lock once it is free; StoreError if one holder keeps it for `WAIT_S_MAX`."""
    began = told = time.monotonic()
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
        if now - told > TOLD_EVERY_S:
            told = now
            wait(f"still waiting for {name}, held by {holder}")


def _holder_in_words(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has just begun"
