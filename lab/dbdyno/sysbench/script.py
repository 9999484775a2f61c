"""Lua scripts in sysbench's language: finding a test's file, its options and commands.

The script is loaded before its options are known, as in sysbench: output of its top level comes
first, and a mistyped option is found after. Its events are run by the engine like any workload's.
"""

from __future__ import annotations

import os
import sys

from dbdyno import _engine
from dbdyno.sysbench.commands import INITIALIZING, ReportHooks, run
from dbdyno.sysbench.console import ConsoleOutput, write_notes
from dbdyno.sysbench.ending import NotBegunError, StillAtWorkError, failure_of, status, stoppable
from dbdyno.sysbench.legacy import library_path, search_path
from dbdyno.sysbench.options.command_line import (
    RELEASES,
    V1_0,
    V1_1,
    CommandLine,
    declared_values,
    options_help,
)
from dbdyno.sysbench.options.table import GLOBAL_TABLE, NOT_OF_1_0, WITHOUT_DATABASE
from dbdyno.sysbench.options.values import Option, Refusal, Values, argument_error, fatal
from dbdyno.sysbench.request import General, Request, distribution
from dbdyno.sysbench.target import transport
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from dbdyno.sysbench.options.values import Kind

_PARAMETERS = ("gaussian", "special", "pareto", "zipfian")


class ScriptFile(NamedTuple):
    """A script and its name.

    Attributes:
        name: as typed, for messages; empty for the standard input.
        path: of its file; None for the standard input.
    """

    name: str
    path: str | None
    source: str


def read_script(typed: str | None, path: str | None) -> ScriptFile:
    """The script of a test's name: its file, a module of dbdyno's, or the standard input.

    Raises:
        Refusal: the file cannot be read, is bytecode, or is not UTF-8 outside its comments.
    """
    if typed is None or typed == "-":
        return ScriptFile("", None, _text("standard input", _standard_input()))
    if path is None:
        name = os.path.basename(typed).removesuffix(".lua")  # noqa: PTH119 - start-up time
        module = f"sysbench.{name}" if name in WITHOUT_DATABASE else name
        return ScriptFile(typed, name, f'require("{module}")')
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return ScriptFile(typed, path, _text(path, file.read()))
    except OSError as error:
        raise fatal(f"{path}: {error.strerror}") from error


def _text(path: str, script: bytes) -> str:
    """A script's text, any bytes in comments; Refusal if not UTF-8, which servers would get."""
    if script.startswith(b"\x1b"):
        raise fatal(f"{path}: bytecode is not loaded, as nothing checks it: give the source")
    for number, line in enumerate(script.split(b"\n"), 1):
        try:
            line.partition(b"--")[0].decode()
        except UnicodeDecodeError as error:
            raise fatal(f"{path}:{number}: not UTF-8; convert the script, as by iconv") from error
    return script.decode(errors="replace")


def _standard_input() -> bytes:
    if sys.stdin.isatty():
        sys.stdout.write("Reading the script from the standard input:\n\n")
        sys.stdout.flush()
    return sys.stdin.buffer.read()


def execute_script(
    file: ScriptFile, line: CommandLine, typed: Mapping[str, str | None], values: Values
) -> int:
    """Load the script, do its command; Refusal if it raises, or knows no such command or option."""
    general = General.of(values)
    output = ConsoleOutput(general.verbosity, is_text=general.output.is_text())
    # What stands in `request` before the options are known is what every test has.
    request = Request(os.path.basename(file.name), general, values, Values({}, {}))  # noqa: PTH119
    spec = _spec(file, line, request, typed)
    is_ours = file.name in WITHOUT_DATABASE
    with_script = _Script(spec, is_ours=is_ours)
    if file.path is None:
        return 0
    declared = with_script.options()
    own = _own_values(declared, line, typed, general.compat)
    if not declared:
        line.notes += _notes_on_unnamed(file.path, file.source, own)
    spec["options"] = _options(values, own, general.compat)
    if is_ours and not general.output.is_text():
        spec["options"]["verbosity"] = 0  # the test's own lines
    with_script.set_options(spec["options"])
    request = request._replace(own=own, script=spec)
    write_notes([*line.notes, *request.notes(line.command)])
    return _Commands(with_script, request, output, file.name).do(line.command)


def _spec(
    file: ScriptFile, line: CommandLine, request: Request, typed: Mapping[str, str | None]
) -> dict[str, Any]:
    """The engine's spec of the script, without its options."""
    values, general = request.values, request.general
    others = {name: distribution(values, name) for name in _PARAMETERS}
    return {
        "source": file.source,
        "chunk": f"@{file.path}" if file.path else "=(standard input)",
        "name": file.name,
        "version": RELEASES[general.compat],
        "argv": ["sysbench", *line.arguments],
        "command": line.command,
        "script_path": file.path,
        "package_path": search_path(file.path),
        "package_cpath": library_path(),
        "luajit_cmd": values.text("luajit-cmd") or None,
        "driver": request.driver(),
        "verbosity": general.verbosity,
        "distribution": general.distribution,
        **others,
        "database": request.database_spec(),
        "globals": _globals(typed) if general.compat == V1_0 else [],
    }


def _globals(typed: Mapping[str, str | None]) -> list[str]:
    """Options of 1.0 and typed options, without ours, whose names a script may use."""
    of_1_0 = (name for name, option in GLOBAL_TABLE.items() if option.kind != "FILE")
    names = dict.fromkeys((*of_1_0, *typed))
    return [name.replace("-", "_") for name in names if name not in NOT_OF_1_0]


def _own_values(
    declared: Sequence[Option], line: CommandLine, typed: Mapping[str, str | None], release: str
) -> Values:
    """The script's own options. A script without a table takes any, as text, in sysbench 1.0."""
    if declared or release == V1_1:
        return declared_values(line, declared, typed)
    names = [name for name in typed if name not in GLOBAL_TABLE]
    taken = [Option(name.replace("-", "_"), "STRING", None, "") for name in names]
    return declared_values(line, taken, typed)


def _notes_on_unnamed(path: str, source: str, own: Values) -> list[str]:
    """Notes on options, taken as globals, whose names stand in no script of the folder."""
    unnamed = [option.name for option in own.options() if option.name not in source]
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - start-up time
    if unnamed:
        for name in os.listdir(folder):  # noqa: PTH208 - start-up time
            text = _beside(os.path.join(folder, name))  # noqa: PTH118 - start-up time
            unnamed = [option for option in unnamed if option not in text]
    return [
        f"--{name.replace('_', '-')}: no effect, as no script in {folder} reads {name}"
        for name in unnamed
    ]


def _beside(path: str) -> str:
    """The text of a Lua file; empty for any other, and for a file that cannot be read."""
    if not path.endswith(".lua"):
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _options(values: Values, own: Values, release: str) -> dict[str, Any]:
    """`sysbench.opt`: general options, then the script's own, which win over general ones.

    `mysql_ssl` is a switch in sysbench 1.0, and a mode in 1.1.
    """
    percentiles = values.items("percentile")
    switch = {"mysql_ssl": "tls" in transport(values).fields} if release == V1_0 else {}
    return {
        **{_name(option): _typed_value(values, option) for option in values.options()},
        **switch,
        "percentile": float(percentiles[0]) if percentiles else 0,
        **{_name(option): _typed_value(own, option) for option in own.options()},
    }


def _name(option: Option) -> str:
    return option.name.replace("-", "_")


def _typed_value(values: Values, option: Option) -> bool | float | str | list[str]:
    name = option.name
    match option.kind:
        case "BOOL":
            return values.flag(name)
        case "INT":
            return values.integer(name)
        case "SIZE":
            return values.size(name)
        case "DOUBLE":
            return values.number(name)
        case "LIST":
            return list(values.items(name))
        case _:
            return values.text(name)


class _Script:
    """The engine's script; its errors become FATAL lines.

    Args:
        is_ours: a test without a database, whose errors stand for themselves, as sysbench's do.
    """

    def __init__(self, spec: Mapping[str, Any], *, is_ours: bool = False) -> None:
        self._is_ours = is_ours
        try:
            self._script = _engine.Script({**spec})
        except RuntimeError as error:
            raise _refusal(error) from error

    def options(self) -> list[Option]:
        try:
            declared = self._script.options()
        except RuntimeError as error:
            raise _refusal(error) from error
        return [
            Option(one["name"], cast("Kind", one["kind"]), one["default"], one["text"])
            for one in declared
        ]

    def set_options(self, options: Mapping[str, Any]) -> None:
        try:
            self._script.set_options({**options})
        except RuntimeError as error:  # of a validator
            refusal = fatal if self._is_ours else argument_error
            raise refusal(str(failure_of(error)["message"])) from error
        except ValueError as error:  # `inf`, which sysbench takes and JSON has not
            raise argument_error(str(error)) from error

    def defines(self, name: str) -> bool:
        return self._script.defines(name)

    def command(self, name: str) -> bool | None:
        """True if the script's command runs in all threads; None for an unknown command."""
        return self._script.command(name)

    def call(self, name: str) -> int:
        """Calls a global function; the exit status, 128 + n when signal n ended it."""
        return self._finish(lambda _stop: self._script.call(name))

    def run_command(self, name: str, threads: int) -> int:
        """Run a declared command; as `call`, and 1 if the command reports a failure."""
        answers: list[bool] = []
        status = self._finish(lambda _: answers.append(self._script.run_command(name, threads)))
        return status or int(answers == [False])

    def hooks(self, threads: int, output: ConsoleOutput, *, intervals: bool) -> ReportHooks:
        """The script's report hooks; interval hooks get a Lua state of their own.

        An error in a hook is printed, and the run goes on.
        """
        script = self._script
        if intervals:
            try:
                script.open_reporter(threads)
            except RuntimeError as error:
                raise _refusal(error) from error

        def report(name: str, figures: dict[str, float]) -> bool:
            try:
                return script.report(name, figures)
            except RuntimeError as error:
                output.fatal(str(failure_of(error)["message"]))
                return True

        return ReportHooks(report, script.close_reporter)

    def _finish(self, work: Callable[[_engine.Stop], None]) -> int:
        outcome = stoppable(work, _engine.Stop())
        if isinstance(outcome.error, RuntimeError):
            message = str(failure_of(outcome.error)["message"])
            if self._is_ours:
                message = message.partition("' function failed: ")[2] or message
            raise fatal(message) from outcome.error
        if outcome.error is not None:
            raise outcome.error
        return status(outcome)


def _refusal(error: RuntimeError) -> Refusal:
    return fatal(str(failure_of(error)["message"]))


class _Commands(NamedTuple):
    """Commands of a script (the second word), in sysbench's order."""

    script: _Script
    request: Request
    output: ConsoleOutput
    typed: str

    def do(self, command: str | None) -> int:
        """Does it; the exit status."""
        if command is None and self.typed in WITHOUT_DATABASE:
            hint = f"See 'sysbench {self.typed} help'"
            raise argument_error(f"The '{self.typed}' test requires a command argument. {hint}")
        if command is None:
            return 0
        is_parallel = self.script.command(command)
        if is_parallel is not None:
            threads = self.request.general.threads if is_parallel else 1
            if threads > 1:
                self.output.notice(INITIALIZING)
            return self.script.run_command(command, threads)
        if command in ("prepare", "cleanup", "help"):
            return self._call(command)
        if command == "run":
            return self._run()
        raise argument_error(f"Unknown command: {command}")

    def _call(self, command: str) -> int:
        test, options = self.request.test, self.request.own.options()
        if self.script.defines(command):
            return self.script.call(command)
        if command != "help" or not options:
            raise argument_error(f"'{test}' test does not implement the '{command}' command.")
        sys.stdout.write(options_help(test, options))
        return 0

    def _run(self) -> int:
        if self.script.defines("init") and (ended := self.script.call("init")):
            return ended
        if not self.script.defines("event"):
            raise fatal(f"cannot find the event() function in {self.request.test}")
        general = self.request.general
        intervals = general.output.report_interval_s > 0
        hooks = self.script.hooks(general.threads, self.output, intervals=intervals)
        try:
            ended = run(self.request, self.output, hooks)
        except (NotBegunError, StillAtWorkError):
            # There is nothing to end; or the script is at work, which `done` would wait for.
            raise
        except Refusal as refusal:
            if refusal.to_stderr:
                raise
            self._tell(refusal)
            self._done()
            return refusal.exit_status
        return self._done() or ended

    def _done(self) -> int:
        """Let the script end; as in sysbench an error is printed and fails nothing."""
        try:
            return self.script.call("done") if self.script.defines("done") else 0
        except Refusal as refusal:
            self._tell(refusal)
            return 0

    def _tell(self, refusal: Refusal) -> None:
        for line in refusal.lines:
            self.output.fatal(line.removeprefix("FATAL: "))
