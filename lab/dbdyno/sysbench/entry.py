"""sysbench's command line: from the arguments to the exit status.

The order of checks is sysbench's: a third word and general options before the banner, the test's
name and its own options after it. Argument errors go to stderr, FATAL lines to stdout, both exit 1.
Where a line is read differently than by sysbench, a note on stderr says so.
"""

from __future__ import annotations

import os
import sys

from dbdyno import _engine, shipped
from dbdyno.sysbench.console import ConsoleOutput, write_notes, write_text
from dbdyno.sysbench.legacy import (
    COMMON,
    changed_file,
    difference,
    file_of_test,
    is_name_of_test,
    name_of_test,
    original_of,
    passed_over,
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
from dbdyno.sysbench.options.table import COMMANDS, WITHOUT_DATABASE, of_test
from dbdyno.sysbench.options.values import Refusal, Values, argument_error, boolean, fatal
from dbdyno.sysbench.request import General, Request
from dbdyno.sysbench.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dbdyno.sysbench.script import ScriptFile

    Login = Callable[[str], Mapping[str, str]]
    """Options for a server of dbdyno's by its name, the password among them; Refusal without it."""


def program(argv: Sequence[str], login: Login | None = None) -> int:
    """As `main`, for a process of its own, with which programs end that scripts have started."""
    _engine.adopt_orphans()
    try:
        return main(argv, login)
    finally:
        _engine.end_descendants()


def main(argv: Sequence[str], login: Login | None = None) -> int:
    """Run sysbench's command line (without the program's name).

    Args:
        login: finds the server of ``--server``; without it the option is refused.

    Returns:
        0 done; 1 refused or failed; 128 + n when signal n ended the run, after its report.
    """
    try:
        status = _run(argv, login)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is left to write, and Python must not try.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return status


def _run(argv: Sequence[str], login: Login | None) -> int:
    try:
        return _run_or_refuse(argv, login)
    except Refusal as refusal:
        stream = sys.stdout if is_text_asked(argv) and not refusal.to_stderr else sys.stderr
        write_text(stream, "\n".join(refusal.lines) + "\n")
        return refusal.exit_status


def _run_or_refuse(argv: Sequence[str], login: Login | None) -> int:
    line = command_line.read_command_line(argv)
    if boolean(line.typed.get("help", "off")):
        sys.stdout.write(general_help())
        return 0
    release = command_line.compat_version(line.typed)
    if boolean(line.typed.get("version", "off")):
        sys.stdout.write(f"sysbench {RELEASES[release]}\n")
        return 0
    if "server" in line.typed:
        if login is None:
            raise argument_error("invalid option: --server", "  hint: begin with dbdyno sysbench")
        line.typed = {**login(line.typed["server"] or ""), **line.typed}
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

        write_notes(line.notes)
        line.notes.clear()
        return execute_script(test, line, typed, values)
    own_values = command_line.declared_values(line, of_test(test), typed)
    command = _command(line.command, release)
    if command is None:
        sys.stdout.write(options_help((line.test or test).rpartition("/")[2], of_test(test)))
        return 0
    request = Request(test, general, values, own_values)
    gaussian = check_distribution(values, release)
    write_notes([*line.notes, *([gaussian] if gaussian else []), *request.notes(command)])
    return _execute(command, request, output)


def _execute(command: str, request: Request, output: ConsoleOutput) -> int:
    from dbdyno.sysbench import commands  # noqa: PLC0415 - start-up time of help

    commands.check_driver(request, command)
    if command == "run" and not request.is_load():
        return commands.run(request, output)
    if command == "prewarm" and not request.has_prewarm():
        raise argument_error(f"Unknown command: {PREWARM[request.general.compat]}")
    if command != "run" and request.is_dry():
        write_notes(["--mysql-dry-run: there is no server and nothing is done"])
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
    if typed is None or typed == "-" or typed in WITHOUT_DATABASE:
        return _script(typed, None)
    if original := original_of(typed):
        line.notes.append(f"{typed} is no script of sysbench's: its oltp.lua is run instead")
        typed = original
    ours = _engine.workloads()
    path = file_of_test(typed)
    if path and path != typed and path.startswith(shipped.folder_of(shipped.WORKLOADS)):
        line.notes.append(f"{typed} is not there: {path}, which comes with dbdyno, is run")
    is_own = path is not None and not is_name_of_test(typed, ours)
    changed = None if is_own else changed_file(typed, path, ours)
    script = _script(typed, path) if is_own or changed else None
    if changed:
        line.notes.append(f"{path or typed} is run itself: {difference(typed, changed, ours)}")
    if path and (script is None or COMMON in script.source) and (note := passed_over(path)):
        line.notes.append(note)
    if script is not None:
        return script
    if path is None:
        return name_of_test(typed, is_option=line.names_test, version=release, ours=ours)
    return os.path.basename(typed).removesuffix(".lua")  # noqa: PTH119 - start-up time


def _script(typed: str | None, path: str | None) -> ScriptFile:
    from dbdyno.sysbench.script import read_script  # noqa: PLC0415 - start-up time

    return read_script(typed, path)


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
