"""The program's entry point: runs the lab or sysbench's command line, and sets the exit status.

Called as `sysbench` or `sysbench-1.1`, or with `sysbench` as its first argument, it must start as
quickly as sysbench itself, so the lab is imported only after this decision. Commands raise; only
this file turns errors into text on stderr and an exit status.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from dbdyno import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Final

INTERRUPTED: Final = 130
"""The exit status to which typer turns a KeyboardInterrupt, which it catches itself."""

PERSONAS: Final = {
    "sysbench": ("sysbench",),
    "sysbench_orig": ("sysbench",),  # as publications call it beside a changed one
    "sysbench-1.1": ("sysbench", "--compat=1.1"),
}
"""The first arguments that a name of the program stands for, such as that of a link to it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (without the program's name); returns the exit status.

    0 done, 1 failed or interrupted, 2 usage, 3 a gate did not hold, 4 a void measurement.
    """
    is_program = argv is None
    if argv is None:
        _open_closed()
        argv = sys.argv[1:]
        called = os.path.basename(sys.argv[0])  # noqa: PTH119 - pathlib costs 6 ms
        argv = [*PERSONAS.get(called, ()), *argv]
    if not _has_time():
        sys.stderr.write("dbdyno: this machine's clock is beyond the year 2262: set it\n")
        return 1
    try:
        if argv and argv[0] == "sysbench":
            if is_program:
                # Modules are no garbage: to look for some while they load costs a millisecond.
                gc.set_threshold(100_000)
                _hide_passwords()
                _interrupt_ends_it()
            from dbdyno.sysbench import entry

            run = entry.program if is_program else entry.main
            status = run(argv[1:], _login)
            if is_program and not status:
                # All is written: what Python would free one by one, the system frees at once.
                os._exit(0)
            return status
        if list(argv[:2]) == ["completion", "--line"]:  # at each TAB: without typer and commands
            from dbdyno.cli.completion import words_for

            words = words_for(" ".join(argv[2:]))
            sys.stdout.write("".join(f"{word}\n" for word in words))
            sys.stdout.flush()
            return 0
        status = _lab(argv)
        sys.stdout.flush()
        return status
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader went away, as in `| head`
            sys.stderr.write(f"dbdyno: the system refuses: {error}\n")
        # Python flushes stdout when it ends: what failed here must not fail again there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("dbdyno: interrupted\n")
        return 1


def _login(name: str) -> dict[str, str]:
    """sysbench's options for a server of `dbdyno servers start`; to find it takes imports."""
    from dbdyno.cli.kept import sysbench_login

    return sysbench_login(name)


def _open_closed() -> None:
    """Open /dev/null where the caller closed a standard file, as `>&-` does.

    Else the next opened file, such as a store, would get the number of stdout.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - as above; it stays open


def _has_time() -> bool:
    """Test that Python can read the clock, which it does in nanoseconds of 64 bits."""
    try:
        time.time()
    except OverflowError:
        return False
    return True


def _hide_passwords() -> None:
    """Take the values of password options out of the process list, which other users can read.

    The kernel reads them from this process's memory (proc(5), arg_start); Python has copies.
    """
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - pathlib costs 6 ms
            numbers = file.read().rpartition(b")")[2].split()
        start, end = int(numbers[45]), int(numbers[46])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:  # noqa: PTH123 - as above
            memory.seek(start)
            for word in (memory.read(end - start) or b"").split(b"\0"):
                name, _, value = word.partition(b"=")
                if name.startswith(b"--") and name.endswith(b"password"):
                    memory.seek(start + len(name) + 1)
                    memory.write(bytes(len(value)))
                start += len(word) + 1
    except (OSError, ValueError, IndexError):  # such as a system without /proc
        return


def _interrupt_ends_it() -> None:
    """SIGINT ends the persona at once, wherever it waits for no end of a command.

    Python would raise once Lua came back, which a script's top level or its report may never do.
    """
    from dbdyno.sysbench.typed import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _lab(argv: Sequence[str]) -> int:
    import io
    import signal

    from dbdyno import shipped
    from dbdyno.cli.app import command_line
    from dbdyno.errors import DbdynoError

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A question mark for a sign that the encoding lacks is better than no verdict.
        sys.stdout.reconfigure(errors="replace")

    signal.signal(signal.SIGTERM, _as_interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not so under nohup
        signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        command_line()(args=list(argv), prog_name="dbdyno")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            raise KeyboardInterrupt from None
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except DbdynoError as error:
        sys.stderr.write(f"dbdyno: {shipped.with_pages(str(error))}\n")
        return error.exit_status
    return 0


def _as_interrupt(signum: int, frame: FrameType | None) -> None:
    """Treat SIGTERM and SIGHUP as Ctrl-C: stop, keep the stored trials, report."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
