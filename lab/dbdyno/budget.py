"""Limits of the work that a stranger's bytes ask for: CPU time and memory.

A file of some kilobytes can ask for hours or for all memory, and much of the work is done in C code
that hears no signal. So a reader of foreign bytes runs in a forked child process, which the kernel
stops at a limit; its result comes back through a pipe. `DBDYNO_READ_S` and `DBDYNO_READ_MIB` raise
the limits. A reader's own limits (files, values, members) are beside it and are met much earlier.
"""

from __future__ import annotations

import errno
import os
import pickle
import resource
import select
import signal
import stat
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, Never, TypeVar

from dbdyno import _engine
from dbdyno.errors import DbdynoError, UsageError

CPU_S: Final = "DBDYNO_READ_S"
MEMORY_MIB: Final = "DBDYNO_READ_MIB"
DEFAULTS: Final = {CPU_S: 120, MEMORY_MIB: 4096}
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HEARD_MS: Final = 100
"""How long a signal may wait that comes just before the wait for a result."""
OUT_OF_MEMORY: Final = 2
"""Exit status of a child process without memory for its work."""
Result = TypeVar("Result")
_is_child = False


def limit(name: str) -> int:
    """A limit: its environment variable, else its default; UsageError if it is no number."""
    text = os.environ.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise UsageError(f"{name} is no limit", wanted="a whole number above 0", found=text[:60])
    return int(text or DEFAULTS[name])


def too_much(
    subject: str, name: str, error: type[DbdynoError] = UsageError, times: int = 1
) -> DbdynoError:
    """Error for work beyond so many times the limit `name`."""
    most, is_time = limit(name), name == CPU_S
    time, memory = "takes more time to read than it may", "takes more memory to read than it may"
    return error(
        f"{subject} {time if is_time else memory}",
        wanted=f"at most {times * most:,} {'s of CPU time' if is_time else 'MiB of memory'}",
        hint=f"give less at once; or, if you trust its source, raise the limit: {name}={4 * most}",
    )


def within(
    subject: str,
    work: Callable[[], Result],
    error: type[DbdynoError] = UsageError,
    times: int = 1,
) -> Result:
    """Result of reading a stranger's bytes in a child process with limits; raises as `work` does.

    Args:
        subject: the bytes, for the message: "the bundle x.zip".
        error: raised at a limit.
        times: multiple of the CPU time, for work such as unpacking gigabytes.
    """
    if _is_child:
        return work()
    cpu_s, memory_mib = times * limit(CPU_S), limit(MEMORY_MIB)
    reading, writing = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        _work(work, writing, parent, cpu_s, memory_mib)
    try:
        os.close(writing)
        answer = _answer(reading)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reading)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if -status in ENDING:
        raise KeyboardInterrupt
    if status == -signal.SIGXCPU:
        raise too_much(subject, CPU_S, error, times)
    if status:
        raise too_much(subject, MEMORY_MIB, error)
    result, failure = pickle.loads(answer)  # noqa: S301 - of our own child process
    if failure is not None:
        raise failure
    kept: Result = result
    return kept


def _answer(pipe: int) -> bytes:
    """All that is written into a pipe."""
    parts, poller = list[bytes](), select.poll()
    poller.register(pipe, select.POLLIN)
    while True:
        if poller.poll(HEARD_MS):
            parts.append(os.read(pipe, 1 << 20))
            if not parts[-1]:
                return b"".join(parts)


def _work(
    work: Callable[[], object], writing: int, parent: int, cpu_s: int, memory_mib: int
) -> Never:
    """Do the work and write its result; exit without anything that belongs to the parent."""
    global _is_child  # noqa: PLW0603 - a fact of this process
    status = 1
    try:
        for ending in ENDING:
            if signal.getsignal(ending) is not signal.SIG_IGN:  # not so under nohup
                signal.signal(ending, signal.SIG_DFL)
        _engine.end_with_parent()
        if os.getppid() != parent:  # it died before
            os._exit(status)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for the last words of C code without memory
        _is_child = True
        _restrict(cpu_s, memory_mib)
        try:
            answer = pickle.dumps((work(), None), pickle.HIGHEST_PROTOCOL)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except BaseException as failure:
            answer = _failed(failure)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        status = 0
    finally:
        os._exit(status)


def _restrict(cpu_s: int, memory_mib: int) -> None:
    """Set the limits: memory beyond that of the parent, which the child shares."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, used + (memory_mib << 20)),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(
            kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def _failed(failure: BaseException) -> bytes:
    if not isinstance(failure, DbdynoError):
        failure.add_note(traceback.format_exc())
    try:
        return pickle.dumps((None, failure))
    except Exception:  # an exception of C code may hold anything
        return pickle.dumps((None, RuntimeError(traceback.format_exc())))


def content(path: Path, bytes_max: int) -> bytes:
    """Bytes of a file, a byte more than `bytes_max` if it is larger.

    Raises:
        OSError: it cannot be read, or is a pipe or a device, which may give bytes without end.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder is refused as it is opened
            refusal = "it is a pipe, a terminal or a device: save its content in a file"
            raise OSError(errno.EINVAL, refusal, str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(bytes_max + 1)
    finally:
        os.close(handle)
