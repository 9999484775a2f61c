"""Start of a server's process such that it cannot outlive the lab, and never as root.

The kernel kills the server when the *thread* that started it ends, not only when the process does.
Servers are therefore started from the main thread only; from another thread it is an error, since
the server would vanish in the middle of a trial when that thread returned.
"""

from __future__ import annotations

import os
import pwd
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import psutil

from dbdyno import interpreter
from dbdyno.errors import ServerError
from dbdyno.servers import launch, watcher

LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - recognised, not listened at
LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
PASSED_ON: Final = ("PATH", "TZ", LIBRARY_PATH)
DEV_NULL: Final = Path(os.devnull)
OUTPUT_BYTES_MAX: Final = 1 << 20
OWN_USER: Final = "dbdyno-server"
"""Created by `tools/requirements.sh` if it runs as root; no other program runs as this user."""


@dataclass(frozen=True)
class ServerUser:
    """The unprivileged user that servers run as when the lab is root."""

    name: str
    uid: int
    gid: int


def server_user() -> ServerUser | None:
    """User for servers; None = our own. As root ``$DBDYNO_SERVER_USER``, else `OWN_USER`.

    Without this user it is `nobody`, under whom other programs may run too.

    Raises:
        ServerError: there is no such user, or it is root.
    """
    if os.geteuid() != 0:
        return None
    named = os.environ.get("DBDYNO_SERVER_USER")
    for name in (named,) if named else (OWN_USER, "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid == 0:
                hint = "name a user with DBDYNO_SERVER_USER"
                raise ServerError("servers do not run as root", hint=hint)
            return ServerUser(name, entry.pw_uid, entry.pw_gid)
    raise ServerError(
        f"there is no user {named or 'nobody'!r} to run servers as",
        hint="make one, or name another with DBDYNO_SERVER_USER",
    )


def spawn(
    command: Sequence[str],
    folder: Path,
    user: ServerUser | None,
    output: Path,
    *,
    fed: Path = DEV_NULL,
    libraries: Path | None = None,
    env: Mapping[str, str] | None = None,
    fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `command` as the server's user in `folder`; it dies with the lab.

    Args:
        output, fed: files for the program's output and input.
        libraries: folder of the program's own shared libraries.
        env: its whole environment; by default a server's (`environment`).
        fds: descriptors that it inherits.

    Raises:
        ServerError: called from another thread than the main thread, or the fork failed.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ServerError(
            "a server must be started from the main thread",
            found=threading.current_thread().name,
            hint="the kernel ends a server together with the thread that started it",
        )
    try:
        with fed.open("rb") as read, output.open("ab") as printed:
            return subprocess.Popen(
                [*launcher(user), *command],
                cwd=folder,
                env=env or environment(folder, libraries),
                stdin=read,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is the lab's to handle, not the server's
                pass_fds=(*passed(), *fds),
            )
    except OSError as error:
        raise ServerError(f"{command[0]} cannot be started: {error.strerror}") from error


def launcher(user: ServerUser | None) -> list[str]:
    """Prefix of a command to make it die with the lab, run as `user` if given.

    The process must inherit the descriptors `passed`.
    """
    ids = (user.uid, user.gid) if user else (launch.KEEP, launch.KEEP)
    start = interpreter.bare_script(launch.__file__)
    return [*start, *map(str, (os.getpid(), watcher.running().fileno(), *ids))]


def passed() -> tuple[int, ...]:
    """Descriptors that a process behind `launcher` must inherit."""
    return (watcher.running().fileno(),)


def run(
    command: Sequence[str],
    limit_s: float,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    merged: bool = False,
    fds: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, away from the lab's terminal; returns the end of its output.

    The program may be untrusted: on a terminal it could type for the user, and `subprocess.run`
    would keep its whole output in memory.

    Args:
        folder: its working folder; None for our own.
        env: its whole environment; None for our own.
        merged: stderr goes into stdout.
        fds: descriptors that it inherits: `passed` behind a `launcher`.

    Raises:
        subprocess.TimeoutExpired: it was ended, with all processes it had started.
        OSError: it cannot be started.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        start_new_session=True,  # Ctrl-C and a logout are the lab's to handle
        pass_fds=fds,
    ) as running:
        try:
            printed = _printed(running, time.monotonic() + limit_s)
            running.wait(limit_s)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            raise
    texts = [stream.decode(errors="replace") for stream in printed]
    return subprocess.CompletedProcess(command, running.returncode, *[*texts, ""][:2])


def _printed(running: subprocess.Popen[bytes], until_s: float) -> list[bytearray]:
    """The end of each stream, read until all are closed."""
    streams = [stream for stream in (running.stdout, running.stderr) if stream is not None]
    printed = {stream.fileno(): bytearray() for stream in streams}
    with selectors.DefaultSelector() as waiting:
        for handle in printed:
            waiting.register(handle, selectors.EVENT_READ)
        while waiting.get_map():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(running.args, left_s)
            for key, _ in waiting.select(left_s):
                piece = os.read(key.fd, OUTPUT_BYTES_MAX)
                printed[key.fd] += piece
                del printed[key.fd][:-OUTPUT_BYTES_MAX]
                if not piece:
                    waiting.unregister(key.fd)
    return list(printed.values())


def environment(folder: Path, libraries: Path | None = None) -> dict[str, str]:
    """A server's whole environment, with `folder` as its home; `libraries` as of `spawn`."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    if libraries is not None:
        paths = [str(libraries), *filter(None, [kept.get(LIBRARY_PATH)])]
        kept[LIBRARY_PATH] = ":".join(paths)
    return {**kept, "HOME": str(folder), "LC_ALL": "C"}


def free_port() -> int:
    """A loopback port that was free a moment ago; another program may take it first."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """True if a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def holder(port: int) -> str:
    """Program and pid that listens on a port, as far as visible; for messages."""
    with suppress(psutil.Error):
        for _, pid in _listening(port):
            if pid is not None:
                return f"{psutil.Process(pid).name()} (pid {pid})"
    return "another program"


def listener(host: str, port: int) -> tuple[int, str] | None:
    """Pid and program that listens at an address of this machine; None if it is not seen.

    Names are not looked up: only an address, localhost and this machine's name are recognised.
    """
    with suppress(psutil.Error, OSError, ValueError):
        own = {one.address for each in psutil.net_if_addrs().values() for one in each}
        names = {"localhost": ("127.0.0.1", "::1"), socket.gethostname(): (*own,)}
        wanted = names.get(host) or (str(ip_address(host.strip("[]"))),)
        local = {address for address in wanted if address in own or ip_address(address).is_loopback}
        if not local:
            return None
        pids = {pid for address, pid in _listening(port) if address in {*local, *EVERYWHERE}}
        if len(pids) == 1 and (pid := pids.pop()) is not None:
            return pid, psutil.Process(pid).name()
    return None


def _listening(port: int) -> list[tuple[str, int | None]]:
    """Address and pid of all that listen on a port; None for a pid that is not shown to us."""
    return [
        (str(next(iter(one.laddr))), one.pid)
        for one in psutil.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr[1:] == (port,)
    ]


def give_to(folder: Path, user: ServerUser | None) -> None:
    """Give a folder to the server's user, closed to everybody else."""
    if user is not None:
        os.chown(folder, user.uid, user.gid)
    folder.chmod(0o700)
