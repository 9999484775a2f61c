"""One lab at a time works on a run, and on a server's files: a lock file held with flock.

The kernel drops the lock when its holder dies, however it dies, so a crash leaves nothing to clean.
What stands in the file (pid and start time) is only for the message to the one who has to wait.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from dbdyno.errors import StoreError


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds the lock `path` for the length of the block.

    Args:
        what: what it is that only one may work on, for the message: "run 20261121-…".

    Raises:
        StoreError: another live lab holds it, or the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"the lock of {what} cannot be opened",
            found=str(error),
            hint="check the workspace folder's owner and free space",
        ) from error
    try:
        _take(descriptor, what)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock at this moment; asking does not touch the lock.

    The kernel's list of locks is read, since trying to take it would turn away a lab that begins.
    """
    try:
        held = path.stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    flocks = (line.split() for line in lines if " FLOCK " in line)
    return any(words[5].endswith(f":{held}") for words in flocks if words[1] != "->")


def _take(descriptor: int, what: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreError(
            f"{what} is being worked on by another dbdyno",
            wanted="one lab at a time",
            found=_holder(descriptor),
            hint="wait until it ends, or stop it",
        ) from None
    holder = {"pid": os.getpid(), "since": datetime.now().astimezone().isoformat("T", "seconds")}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has just begun"
