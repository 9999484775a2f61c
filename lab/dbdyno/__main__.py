"""Where the program begins: chooses between the lab and sysbench's persona, and ends the process.

Called as `sysbench` or `sysbench-1.1`, or with `sysbench` as its first argument, it must start as
quickly as the tool it stands in for, so nothing of the lab is imported before that is settled.
Commands raise; this file alone turns errors into text on stderr and an exit status.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final

from dbdyno.errors import DbdynoError

INTERRUPTED: Final = 130
"""What typer makes of a KeyboardInterrupt before anybody else can see it."""


PERSONAS: Final = {"sysbench": ("sysbench",), "sysbench-1.1": ("sysbench", "--compat=1.1")}
"""First arguments by the name under which the program is called, as by a link."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (without the program's name) and returns the exit status.

    0 done, 1 failed or interrupted, 2 usage, 3 a gate did not hold.
    """
    if argv is None:
        argv = sys.argv[1:]
        called = os.path.basename(sys.argv[0])  # noqa: PTH119 - pathlib costs 6 ms
        argv = [*PERSONAS.get(called, ()), *argv]
    try:
        if argv and argv[0] == "sysbench":
            from dbdyno.sysbench import entry

            return entry.main(argv[1:])
        status = _lab(argv)
        sys.stdout.flush()
        return status
    except DbdynoError as error:
        sys.stderr.write(f"dbdyno: {error}\n")
        return error.exit_status
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader went away, as in `| head`
            sys.stderr.write(f"dbdyno: the system refuses: {error}\n")
        # What stdout could not take it shall not be given again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("dbdyno: interrupted\n")
        return 1


def _lab(argv: Sequence[str]) -> int:
    import io
    import signal

    from dbdyno.cli.app import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A verdict with a question mark for its minus is better than none.
        sys.stdout.reconfigure(errors="replace")

    signal.signal(signal.SIGTERM, _as_interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup: the logout is not for us
        signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        app(args=list(argv), prog_name="dbdyno")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            raise KeyboardInterrupt from None
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _as_interrupt(signum: int, frame: FrameType | None) -> None:
    """A polite end asked for by the system is the same to the lab as Ctrl-C: stop, keep, report."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
