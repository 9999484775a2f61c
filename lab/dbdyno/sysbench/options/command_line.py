"""sysbench's grammar: ``[--option[=value]]... [test] [command]``, words and options in any order.

Names of options may use ``-`` or ``_``, are never shortened, and the last of several wins; a
``--config-file`` stands for its lines at its place. Options are checked in two passes as in
sysbench: the global ones before the banner, a workload's own after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.sysbench.options import config_file
from dbdyno.sysbench.options.refusal import argument_error
from dbdyno.sysbench.options.table import COMMANDS, GLOBAL_TABLE, by_name, of_test
from dbdyno.sysbench.options.values import Option, Values, boolean, canonical

TEST_IS_DEPRECATED = (
    "WARNING: the --test option is deprecated. You can pass a script name or path on the command"
    " line without any options."
)


class CommandLine:
    """What was typed: the two words, and the options by name (the last of each).

    Attributes:
        spelled: the options as they were typed, for messages.
        places: file and line of those options that came from a file.
        names_test: whether the test was named by ``--test``.
        notes: for stderr: where the line is read otherwise than by sysbench.
    """

    def __init__(self) -> None:
        self.test: str | None = None
        self.command: str | None = None
        self.typed: dict[str, str | None] = {}
        self.spelled: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.names_test = False
        self.notes: list[str] = []

    def take_word(self, word: str) -> None:
        """The first is the test, the second the command."""
        if self.test is None:
            self.test = word
        elif self.command is None:
            self.command = word
        else:
            raise argument_error(f"Unrecognized command line argument: {word}")

    def take_option(self, name: str, value: str | None, spelling: str, place: str | None) -> None:
        """The last of several wins; ``test`` also takes the place of a word that came first."""
        self.typed[name], self.spelled[name] = value, spelling
        self.places.pop(name, None)
        if place is not None:
            self.places[name] = place
        if name == "test":
            self._take_test(value, spelling)

    def _take_test(self, value: str | None, spelling: str) -> None:
        if value is None:
            raise argument_error(f"invalid option: {spelling}", "  hint: it takes a test's name")
        if not value:
            return
        if self.test in COMMANDS and self.command is None:
            self.command = self.test
            self.notes.append(f"'{self.test}' is the command; sysbench wants it after --test")
        self.test, self.names_test = value, True


def read(argv: Sequence[str]) -> CommandLine:
    """Sorts the arguments into words and options; looks no option up.

    Raises:
        Refusal: there is a third word, or a file of options cannot be read.
    """
    line = CommandLine()
    for argument in argv:
        if not argument.startswith("--"):
            line.take_word(argument)
            continue
        name, equals, value = argument[2:].partition("=")
        key = canonical(name)
        if key == "config-file":
            _take_file(line, value if equals else None)
        else:
            line.take_option(key, value if equals else None, argument, None)
    return line


def global_values(
    typed: Mapping[str, str | None], table: Mapping[str, Option] = GLOBAL_TABLE
) -> Values:
    """The general, random, log and database options."""
    return Values(table, _accepted(table, typed))


def workload_values(line: CommandLine, test: str, typed: Mapping[str, str | None]) -> Values:
    """The workload's own options; a file's lines that are of no use are noted in `line`.

    Raises:
        Refusal: an option is unknown, or a BOOL option is neither on nor off.
    """
    table = by_name(of_test(test))
    accepted = _accepted(table, typed)
    known = _accepted(GLOBAL_TABLE, typed) | accepted
    for name in typed:
        place = line.places.get(name)
        if name in accepted and place and name not in GLOBAL_TABLE:
            line.notes.append(f"{place}: {name} is heeded; sysbench heeds no test's own options")
        if name in known:
            continue
        if place and name not in {**GLOBAL_TABLE, **table}:
            line.notes.append(f"{place}: no option is called {name}; it is ignored")
            continue
        hint = _meant(name, {**GLOBAL_TABLE, **table})
        raise argument_error(f"invalid option: {line.spelled[name]}", *hint)
    return Values(table, accepted)


def _take_file(line: CommandLine, path: str | None) -> None:
    for setting in config_file.read(path):
        name, place = setting.name, setting.place
        option = GLOBAL_TABLE.get(name)
        if len(setting.values) > 1 and (option is None or option.kind != "LIST"):
            raise argument_error(f"{place}: {name} has several values: put them in quotes")
        if name == "config-file":
            raise argument_error(f"{place}: a file cannot name another one")
        if setting.had_blanks:
            line.notes.append(f"{place}: sysbench does not see {name} for the blanks around it")
        value = ",".join(setting.values)
        shown = "..." if name.endswith("password") else value
        line.take_option(name, value, f"--{name}={shown} ({place})", place)


def _accepted(
    table: Mapping[str, Option], typed: Mapping[str, str | None]
) -> dict[str, str | None]:
    return {
        name: raw
        for name, raw in typed.items()
        if name in table and not (table[name].kind == "BOOL" and boolean(raw) is None)
    }


def _meant(name: str, table: Mapping[str, Option]) -> list[str]:
    """What a mistyped option may have been meant to be; for a known one, its value is wrong."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake pays for it

    if name in table:
        return ["  hint: it takes on or off"]
    near = get_close_matches(name, [*table], n=1)
    return [f"  hint: did you mean --{near[0]}?"] if near else []
