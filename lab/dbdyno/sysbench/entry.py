"""sysbench's command line: from the arguments to the exit status.

The order of checks is sysbench's: a third word and general options before the banner, the test's
name and its own options after it. Argument errors go to stderr, FATAL lines to stdout, both exit 1.
Where a line is read differently than by sysbench, a note on stderr says so.
"""

from __future__ import annotations

import os
import sys

from dbdyno import _engine
from dbdyno.sysbench.console import ConsoleOutput
from dbdyno.sysbench.legacy import (
    file_of_test,
    is_name_of_test,
    name_of_test,
    original_of,
    passed_over,
    unreleased,
)
from dbdyno.sysbench.options import command_line
from dbdyno.sysbench.options.command_line import (
    PREWARM,
    RELEASES,
    CommandLine,
    banner,
    check_distribution,
    general_help,
    options_help,
)
from dbdyno.sysbench.options.output import is_text_asked
from dbdyno.sysbench.options.table import COMMANDS, of_test
from dbdyno.sysbench.options.values import Refusal, Values, argument_error, boolean, fatal
from dbdyno.sysbench.request import General, Request
from dbdyno.sysbench.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.sysbench.script import ScriptFile


def main(argv: Sequence[str]) -> int:
    """Run sysbench's command line (without the program's name).

    Returns:
        0 done; 1 refused or failed; 128 + n when signal n ended the run, after its report.
    """
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is left to write, and Python must not try.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return status


def _run(argv: Sequence[str]) -> int:
    try:
        return _run_or_refuse(argv)
    except Refusal as refusal:
        stream = sys.stdout if is_text_asked(argv) and not refusal.to_stderr else sys.stderr
        stream.write("\n".join(refusal.lines) + "\n")
        return refusal.exit_status


def _run_or_refuse(argv: Sequence[str]) -> int:
    line = command_line.read_command_line(argv)
    if boolean(line.typed.get("help", "off")):
        sys.stdout.write(general_help())
        return 0
    release = command_line.compat_version(line.typed)
    if boolean(line.typed.get("version", "off")):
        sys.stdout.write(f"sysbench {RELEASES[release]}\n")
        return 0
    if "test" in line.typed and release == command_line.V1_0:
        sys.stderr.write(f"{command_line.TEST_IS_DEPRECATED}\n")
    typed, warnings = command_line.with_current_names(line.typed)
    values = command_line.global_values(typed, release)
    general, output = _general(values, warnings, line.command)
    output.notice(banner(release))
    command_line.refuse_removed(line.spelled, release)
    test = _test(line, release)
    typed.pop("test", None)
    if not isinstance(test, str):
        from dbdyno.sysbench.script import execute_script  # noqa: PLC0415 - start-up time

        return execute_script(test, line, typed, values)
    own_values = command_line.declared_values(line, of_test(test), typed)
    command = _command(line.command, release)
    if command is None:
        sys.stdout.write(options_help((line.test or test).rpartition("/")[2], of_test(test)))
        return 0
    request = Request(test, general, values, own_values)
    gaussian = check_distribution(values, release)
    _write_notes([*line.notes, *([gaussian] if gaussian else []), *request.notes()])
    return _execute(command, request, output)


def _execute(command: str, request: Request, output: ConsoleOutput) -> int:
    from dbdyno.sysbench import commands  # noqa: PLC0415 - start-up time of help

    commands.check_driver(request, command)
    if command == "run" and not request.is_load():
        return commands.run(request, output)
    if command == "prewarm" and not request.has_prewarm():
        raise argument_error(f"Unknown command: {PREWARM[request.general.compat]}")
    if command != "run" and request.is_dry():
        _write_notes(["--mysql-dry-run: there is no server and nothing is done"])
        return 0
    work = {"prewarm": commands.prewarm, "cleanup": commands.cleanup}
    return work.get(command, commands.prepare)(request, output)


def _general(
    values: Values, warnings: Sequence[str], command: str | None
) -> tuple[General, ConsoleOutput]:
    """The general options, and sysbench's warnings before its banner at any verbosity."""
    general = General.of(values)
    is_text = general.output.is_text() or command != "run"
    stream = sys.stdout if is_text else sys.stderr
    if not general.time_s and not general.events:
        endless = "Both event and time limits are disabled, running an endless test"
        warnings = [*warnings, endless]
    stream.writelines(f"WARNING: {text}\n" for text in warnings)
    stream.flush()  # a script prints past this buffer
    return general, ConsoleOutput(general.verbosity, is_text=is_text)


def _test(line: CommandLine, release: str) -> str | ScriptFile:
    """The test's own name, or its script; Refusal if there is neither."""
    typed = line.test
    if typed in (None, "-", "cpu"):
        return _script(typed) or ""
    if original := original_of(typed):
        line.notes.append(f"{typed} is no script of sysbench's: its oltp.lua is run instead")
        typed = original
    ours = _engine.workloads()
    is_named = is_name_of_test(typed, ours)
    path = file_of_test(typed, ours)
    changed = None
    if path:
        from dbdyno.sysbench.script import search_path  # noqa: PLC0415 - start-up time

        changed = unreleased(path, search_path())
    if (changed or not is_named) and (script := _script(typed)):
        if changed and is_named:
            _write_notes([f"{path} is run itself: {_differs(changed)}"])
        return script
    if path and not changed:
        return os.path.basename(path).removesuffix(".lua")  # noqa: PTH119 - start-up time
    if path := passed_over(typed, ours):
        line.notes.append(
            f"the test that is built in runs: {_differs(path)}; to run it, copy the script that"
            " requires it into this folder"
        )
    return name_of_test(typed, is_option=line.names_test, version=release, ours=ours)


def _differs(path: str) -> str:
    return f"the text of {path} is not that of sysbench 1.0.20"


def _script(typed: str | None) -> ScriptFile | None:
    from dbdyno.sysbench.script import find_script  # noqa: PLC0415 - start-up time

    return find_script(typed)


def _command(word: str | None, release: str) -> str | None:
    """The command by its name in 1.0; None for help."""
    if word == "help":
        return None
    if word is None:
        names = ", ".join(["prepare", PREWARM[release], "run", "cleanup", "help"])
        raise fatal(f"Command is required. Supported commands: {names}")
    if word not in COMMANDS:
        raise argument_error(f"Unknown command: {word}")
    return "prewarm" if word == "warmup" else word


def _write_notes(notes: Sequence[str]) -> None:
    sys.stderr.writelines(f"note: {text}\n" for text in notes)
    sys.stderr.flush()
