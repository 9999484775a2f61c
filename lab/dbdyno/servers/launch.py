"""Script that becomes a server: drops root, ties its life to the lab's, then runs the program.

Run by path as a plain script (``python -I -S launch.py PARENT WATCHER UID GID PROGRAM ARG…``); it
imports nothing of dbdyno, so it costs some 20 ms and works in any environment of the lab's.

First the process is handed to the lab's `watcher`, which ends any program. The
kernel's death signal comes sooner, but is forgotten when a program with file capabilities is run
and when a process changes its user, so it is requested after that change. The lab may have died
before the request, so the parent is compared last of all. The program is run in this very process:
the pid known to the lab is the server's.

A lab under nohup or in the background ignores the signals that stop servers; its servers begin with
the kernel's default for every signal, ignoring and blocking no signal.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
FILES_MAX = 1 << 20  # MySQL 5.7 reserves 24 bytes for each: a limit of 2**30 costs it 24 GiB
KEEP = -1  # this user or group stays as it is
LAB_IS_GONE = 111


def main(arguments: list[str]) -> None:
    """Become the program, or exit with 111 if the lab has already died; never returns."""
    parent, watcher, uid, gid = (int(text) for text in arguments[:4])
    program = arguments[4:]
    _register(watcher)
    _raise_file_limit()
    if uid != KEEP:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(LAB_IS_GONE)
    os.umask(0o027)
    _signals_as_usual()
    os.execv(program[0], program)  # noqa: S606 - no shell is the point


def _register(watcher: int) -> None:
    """Hand this process to the watcher and wait for its answer."""
    line = socket.socket(fileno=watcher)
    line.set_inheritable(False)
    heard, answer = os.pipe()
    try:
        socket.send_fds(line, [b"%d" % os.getpid()], [os.pidfd_open(os.getpid()), answer])
    except ConnectionError:
        sys.exit(LAB_IS_GONE)
    os.close(answer)
    if not os.read(heard, 1):
        sys.exit(LAB_IS_GONE)


def _raise_file_limit() -> None:
    """Allow as many open files as possible: a server trims its connections to fit the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _signals_as_usual() -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


if __name__ == "__main__":
    main(sys.argv[1:])
