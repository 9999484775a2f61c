"""A watcher process, which ends what the lab started when the lab is gone, however it ended.

The kernel's own signal at a parent's death (PR_SET_PDEATHSIG) is forgotten when a program with file
capabilities is run, as packages give them to mysqld. So the lab holds one end of a socket, and a
watcher, one process for each lab, the other. What `launch` is about to become is handed to the
watcher first, as a handle that no later process can be mistaken for; when the lab's end closes,
all that still run are killed, each with its process group.

The watcher runs this file as a plain script, which has the standard library only.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
from contextlib import suppress
from typing import Final

REGISTERED: Final = b"."
HANDLES: Final = 2
"""What `launch` sends: a handle of its process, and where to answer."""
END_S_MAX: Final = 5.0


class Watcher:
    """The lab's end of it: started before the first process, kept until the lab ends."""

    def __init__(self) -> None:
        from dbdyno import interpreter  # noqa: PLC0415 - the script has no packages

        self.pid = os.getpid()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                interpreter.bare_script(__file__),
                stdin=theirs.fileno(),
                start_new_session=True,  # what ends the lab's group shall not end it
            )
        atexit.register(self._close)

    def fileno(self) -> int:
        """The descriptor for `launch`; while anybody has it open, the lab counts as alive."""
        return self._ours.fileno()

    def is_running(self) -> bool:
        """Whether this process started it and it still runs."""
        return self.pid == os.getpid() and self._process.poll() is None

    def _close(self) -> None:
        if self.pid == os.getpid():  # not in a fork of the lab
            self._ours.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S_MAX)


class _Current:
    watcher: Watcher | None = None


def running() -> Watcher:
    """This process's watcher, started if need be; OSError if it cannot be."""
    if _Current.watcher is None or not _Current.watcher.is_running():
        _Current.watcher = Watcher()
    return _Current.watcher


def watch(lab: socket.socket) -> None:
    """Takes what is handed over until the lab is gone, then kills what is left of it."""
    running: dict[int, int] = {}
    poll = select.poll()
    poll.register(lab, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != lab.fileno():
                poll.unregister(ready)
                os.close(ready)
                del running[ready]
            elif not _take(lab, poll, running):
                for handle, pid in running.items():
                    _kill(handle, pid)
                return


def _take(lab: socket.socket, poll: select.poll, running: dict[int, int]) -> bool:
    """One process that is handed over; False if there is nobody left to do so."""
    text, handles, _, _ = socket.recv_fds(lab, 32, HANDLES)
    if not text:
        return False
    handle, answer = handles
    running[handle] = int(text)
    poll.register(handle, select.POLLIN)  # readable when the process has ended
    with suppress(BrokenPipeError):  # it died meanwhile
        os.write(answer, REGISTERED)
    os.close(answer)
    return True


def _kill(handle: int, pid: int) -> None:
    """The process and its group, if it leads one; it is there, so its number is its own."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, 0)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        signal.pidfd_send_signal(handle, signal.SIGKILL)


if __name__ == "__main__":
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with the lab, and never before
    with socket.socket(fileno=0) as line:
        watch(line)
