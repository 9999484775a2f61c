"""A process that kills the lab's servers once the lab is gone, however it ended.

The kernel's own signal at a parent's death (PR_SET_PDEATHSIG) is forgotten when a program with file
capabilities is run, as packages give them to mysqld. So the lab holds one end of a socket, and a
watcher, one process for each lab, the other. `launch` hands its process to the watcher before it
becomes the program, as a handle that no later process can be mistaken for; when the lab's end
closes, all registered processes still running are killed, each with its process group.

The watcher runs this file as a plain script with the standard library only.
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
"""Descriptors that `launch` sends: a handle of its process, and the pipe for the answer."""
END_S_MAX: Final = 5.0


class Watcher:
    """The lab's end: started before the first process, kept until the lab ends."""

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
        """The descriptor for `launch`; the lab counts as alive while any process has it open."""
        return self._ours.fileno()

    def is_running(self) -> bool:
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
    """Register processes until the lab is gone, then kill the rest."""
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
    """Register a process; False once the lab is gone."""
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
    """Kill the process and its group, if any; it was alive, so its pid is its own."""
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
