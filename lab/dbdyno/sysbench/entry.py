"""From the arguments to the exit status: grammar, banner, command.

The order of checks is sysbench's: a third word and general options before the banner, the test's
name and its own options after it. Argument errors go to stderr, FATAL lines to stdout, both exit 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from dbdyno import _engine
from dbdyno.sysbench import command_line, not_yet
from dbdyno.sysbench.general import General
from dbdyno.sysbench.help_text import general_help, version, workload_help
from dbdyno.sysbench.output import Output
from dbdyno.sysbench.refusal import Refusal, argument_error, fatal
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.running import run
from dbdyno.sysbench.telling import is_text_asked
from dbdyno.sysbench.values import boolean
from dbdyno.sysbench.work import cleanup, prepare

Command = Callable[[Request, Output], int]
COMMANDS: dict[str, Command] = {"prepare": prepare, "run": run, "cleanup": cleanup}
_PIPE_CLOSED = 141


def main(argv: Sequence[str]) -> int:
    """Does what sysbench does with these arguments (without the program's name).

    Returns:
        0 done; 1 refused or failed; 128 + n when signal n ended the run, after its report.
    """
    try:
        status = _answer(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is left to be told, and Python must not try.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _PIPE_CLOSED
    return status


def _answer(argv: Sequence[str]) -> int:
    try:
        return _obey(argv)
    except Refusal as refusal:
        stream = sys.stdout if is_text_asked(argv) and not refusal.to_stderr else sys.stderr
        stream.write("\n".join(refusal.lines) + "\n")
        return refusal.exit_status


def _obey(argv: Sequence[str]) -> int:
    line = command_line.read(argv)
    for word, text in (("help", general_help), ("version", version)):
        if word in line.typed and boolean(line.typed[word]):
            sys.stdout.write(text())
            return 0
    typed = not_yet.driven(line.typed)
    values = command_line.global_values(typed)
    general = General.of(values)
    is_text = general.telling.is_text() or line.command != "run"
    output = Output(general.verbosity, is_text=is_text)
    output.notice(version(general.compat))
    if line.test in (None, "-"):
        raise not_yet.refusal("no test", "Lua scripts from the standard input; name a test")
    assert line.test is not None
    not_yet.check_test(line.test, _engine.workloads())
    own_values = command_line.workload_values(line, typed)
    command = _command(line.command)
    if command is None:
        sys.stdout.write(workload_help(line.test))
        return 0
    return command(Request(line.test, general, values, own_values), output)


def _command(word: str | None) -> Command | None:
    """What the word stands for; None for help."""
    if word == "help":
        return None
    if word is None:
        names = ", ".join([*COMMANDS, "help"])
        raise fatal(f"Command is required. Supported commands: {names}")
    if word in not_yet.COMMANDS:
        raise not_yet.refusal(word, "reading the tables into the server's memory")
    if word not in COMMANDS:
        raise argument_error(f"Unknown command: {word}")
    return COMMANDS[word]
