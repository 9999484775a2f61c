"""sysbench's grammar: ``[--option[=value]]... [test] [command]``, words and options in any order.

Names of options may use ``-`` or ``_``, are never shortened, and the last of several wins; a
``--config-file`` stands for its lines at its place. Options are checked in two passes as in
sysbench: the global ones before the banner, a workload's own after.
"""

from __future__ import annotations

from dbdyno import __version__, _engine
from dbdyno.sysbench.options.table import (
    COMMANDS,
    DATABASE,
    GENERAL,
    GLOBAL_TABLE,
    LOG,
    MYSQL,
    PGSQL,
    RANDOM,
    WITHOUT_DATABASE,
    by_name,
)
from dbdyno.sysbench.options.values import Option, Values, argument_error, boolean, canonical, fatal
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TEST_IS_DEPRECATED = (
    "WARNING: the --test option is deprecated. You can pass a script name or path on the command"
    " line without any options."
)


class CommandLine:
    """The typed line: the two words, and the options by name (the last of each).

    Attributes:
        arguments: the whole line as typed.
        spelled: the options as typed, for messages.
        places: file and line of options from a file.
        names_test: the test was named by ``--test``.
        notes: for stderr: differences from sysbench's reading of the line.
    """

    def __init__(self) -> None:
        self.arguments: tuple[str, ...] = ()
        self.test: str | None = None
        self.command: str | None = None
        self.typed: dict[str, str | None] = {}
        self.spelled: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.names_test = False
        self.notes: list[str] = []

    def add_word(self, word: str) -> None:
        """The first is the test, the second the command."""
        if self.test is None:
            self.test = word
        elif self.command is None:
            self.command = word
        else:
            raise argument_error(f"Unrecognized command line argument: {word}")

    def add_option(self, name: str, value: str | None, spelling: str, place: str | None) -> None:
        """Add an option; the last of several wins, and ``test`` replaces an earlier word."""
        self.typed[name], self.spelled[name] = value, spelling
        self.places.pop(name, None)
        if place is not None:
            self.places[name] = place
        if name == "test":
            self._add_test(value, spelling)

    def _add_test(self, value: str | None, spelling: str) -> None:
        if value is None:
            raise argument_error(f"invalid option: {spelling}", "  hint: it takes a test's name")
        if not value:
            return
        if self.test in COMMANDS and self.command is None:
            self.command = self.test
            self.notes.append(f"'{self.test}' is the command; sysbench wants it after --test")
        self.test, self.names_test = value, True


def read_command_line(argv: Sequence[str]) -> CommandLine:
    """Sort the arguments into words and options; Refusal for a third word or an unreadable file."""
    line = CommandLine()
    line.arguments = tuple(argv)
    arguments = iter(enumerate(argv))
    for place, argument in arguments:
        if argument == "--" and place + 1 < len(argv):
            typed = argv[place + 1]
            hint = f"  hint: a blank stands after the dashes; --{typed.lstrip('-')} may be meant"
            raise argument_error(f"invalid option: -- {typed}", hint)
        if not argument.startswith("--"):
            line.add_word(argument)
            continue
        name, equals, value = argument[2:].partition("=")
        key = canonical(name)
        if key == "config-file":
            _add_file(line, value if equals else None)
        elif key == "server" and not equals:  # its value may be a word, as of dbdyno's commands
            line.add_option(key, next(arguments, (0, None))[1], argument, None)
        else:
            line.add_option(key, value if equals else None, argument, None)
    return line


def global_values(typed: Mapping[str, str | None], version: str) -> Values:
    """The general, random, log and database options, with the version's defaults."""
    table = with_defaults_of(GLOBAL_TABLE, version)
    return Values(table, _accepted(table, typed))


def declared_values(
    line: CommandLine, options: Iterable[Option], typed: Mapping[str, str | None]
) -> Values:
    """A test's own options, as it declares them; lines of a file without effect become notes.

    Raises:
        Refusal: an option is unknown, or a BOOL option is neither on nor off.
    """
    table = by_name(options)
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
        hint = _suggestion(name, {**GLOBAL_TABLE, **table})
        raise argument_error(f"invalid option: {line.spelled[name]}", *hint)
    return Values(table, accepted)


def _add_file(line: CommandLine, path: str | None) -> None:
    for setting in read_config_file(path):
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
        line.add_option(name, value, f"--{name}={shown} ({place})", place)


def _accepted(
    table: Mapping[str, Option], typed: Mapping[str, str | None]
) -> dict[str, str | None]:
    return {
        name: raw
        for name, raw in typed.items()
        if name in table and not (table[name].kind == "BOOL" and boolean(raw) is None)
    }


def _suggestion(name: str, table: Mapping[str, Option]) -> list[str]:
    """The option nearest to a mistyped name; of a known option the value is wrong."""
    from dbdyno.errors import most_alike  # noqa: PLC0415 - only a mistake pays for it

    if name in table:
        return ["  hint: it takes on or off"]
    near = most_alike(name, table)
    return [f"  hint: did you mean --{near}?"] if near else []


# ``--config-file``: lines ``name=value``, as sysbench reads them. Two things differ: blanks around
# a name are cut off (sysbench looks for an option called ``threads ``), and a file that cannot be
# read ends the program (sysbench goes on with the defaults).

_PART = r"""[\s,]*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^\s,'"]+))"""


class Setting(NamedTuple):
    """One line of a file.

    Attributes:
        name: as options are looked up.
        values: the parts of the value, quotes removed.
        place: the file and the number of the line, for messages.
        had_blanks: whether sysbench would not find the option for the blanks around its name.
    """

    name: str
    values: tuple[str, ...]
    place: str
    had_blanks: bool


def read_config_file(path: str | None) -> list[Setting]:
    """The settings of a file, in order. Lines without ``=`` and comments are left out.

    Raises:
        Refusal: the file is missing, or a quotation has no end.
    """
    if not path:
        raise argument_error("invalid option: --config-file", "  hint: it takes a file's name")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - start-up
            lines = file.read().splitlines()
    except OSError as error:
        raise argument_error(f"{path}: {error.strerror}") from error
    settings = (_setting(line, f"{path}, line {at}") for at, line in enumerate(lines, 1))
    return [setting for setting in settings if setting is not None]


def _setting(line: str, place: str) -> Setting | None:
    name, equals, value = line.partition("=")
    if not equals or name.lstrip().startswith("#"):
        return None
    return Setting(canonical(name.strip()), _parts(value, place), place, name != name.strip())


def _parts(value: str, place: str) -> tuple[str, ...]:
    """The parts between blanks and commas, up to a comment."""
    import re  # noqa: PLC0415 - start-up time of a line without a file

    parts: list[str] = []
    at = 0
    while at < len(value):
        rest = value[at:].lstrip(" \t,")
        if not rest or rest.startswith("#"):
            break
        match = re.compile(_PART).match(value, at)
        if match is None:
            raise argument_error(f"unexpected EOL on line {place.rpartition(' ')[2]} ({place})")
        parts.append(next(part for part in match.groups() if part is not None))
        at = match.end()
    return tuple(parts)


# Deprecated names of options. They win over the current names whatever the order, as in sysbench,
# but not with a value that means none: ``--max-time=0`` leaves ``--time`` alone.


DEPRECATED = (
    ("num-threads", "threads", 1),
    ("max-requests", "events", 0),
    ("max-time", "time", 0),
    ("tx-rate", "rate", 0),
)
"""Each with its current name and greatest ignored value, in the order of sysbench's warnings."""

RENAMED = {
    "seed-rng": "rand-seed",
    "oltp-dist-type": "rand-type",
    "oltp-dist-iter": "rand-spec-iter",
    "oltp-dist-pct": "rand-spec-pct",
    "oltp-dist-res": "rand-spec-res",
}
"""sysbench 0.4's names; they stay where they are too, for they are a legacy test's own."""


def with_current_names(
    typed: Mapping[str, str | None],
) -> tuple[dict[str, str | None], list[str]]:
    """The options under their current names too, and sysbench's warnings about deprecated ones.

    Scripts read the old names: ``num_threads``.

    Raises:
        Refusal: a deprecated option is not an integer.
    """
    renamed = dict(typed)
    values = Values(GLOBAL_TABLE, {name: raw for name, raw in typed.items() if raw is not None})
    warnings = []
    for name, current, ignored_max in DEPRECATED:
        if name in typed:
            number = values.integer(name)
            if number > ignored_max:
                renamed[current] = str(number)
                warnings.append(f"--{name} is deprecated, use --{current} instead")
    for name, current in RENAMED.items():
        if name in typed and current not in typed:
            renamed[current] = typed[name]
    return renamed, warnings


# ``--compat``: 1.0.20, the last release, or 1.1, built from sysbench's repository. What 1.1 added
# works in both here; what 1.1 removed is refused under ``--compat=1.1`` as 1.1 refuses it.

V1_0 = "1.0"
V1_1 = "1.1"
RELEASES = {V1_0: "1.0.20", V1_1: "1.1.0"}
"""What each calls itself; scripts read this number."""

REMOVED = {
    "rand-spec-iter": None,
    "rand-spec-pct": None,
    "rand-spec-res": None,
    "tx-rate": "rate",
    "max-requests": "events",
    "max-time": "time",
    "num-threads": "threads",
    "test": None,
}
"""Options that 1.1 does not have any more, and what it has instead."""

_DEFAULTS_OF_1_1 = {"rand-type": "uniform", "mysql-ssl": "disabled"}
PREWARM = {V1_0: "prewarm", V1_1: "warmup"}
"""The name of the command that reads tables into the server's memory; both names work."""


def compat_version(typed: Mapping[str, str | None]) -> str:
    """The version given by ``--compat``; Refusal for an unknown version."""
    name = typed.get("compat", V1_0)
    if name not in RELEASES:
        known = " or ".join(RELEASES)
        raise fatal(f"Invalid value for --compat: '{name or ''}'. It must be {known}.")
    return name


def with_defaults_of(options: Mapping[str, Option], version: str) -> dict[str, Option]:
    """The options with the version's defaults, also of refused options."""
    if version == V1_0:
        return dict(options)
    changed = {name: options[name]._replace(default=it) for name, it in _DEFAULTS_OF_1_1.items()}
    return {**options, **changed}


def refuse_removed(spelled: Mapping[str, str], version: str) -> None:
    """Refuse options unknown to the version, in its words."""
    for name, spelling in spelled.items():
        if version == V1_1 and name in REMOVED:
            instead = REMOVED[name]
            hint = f"sysbench 1.1 has --{instead}" if instead else "sysbench 1.1 has it no more"
            raise argument_error(f"invalid option: {spelling}", f"  hint: {hint}")


def check_distribution(values: Values, version: str) -> str | None:
    """A note where the draws differ from the version's own; Refusal if it does not know them."""
    name = values.text("rand-type")
    if version == V1_1 and name == "special":
        raise fatal(f"Invalid random numbers distribution: {name}.")
    if version == V1_1 and name == "gaussian":
        return (
            "--rand-type=gaussian draws a bell curve here, as in sysbench 1.0; sysbench 1.1 always"
            " draws the first row"
        )
    return None


# Help and version, in sysbench's layout.

_SHAPES = {
    "BOOL": "[=on|off]",
    "INT": "=N",
    "SIZE": "=SIZE",
    "DOUBLE": "=N",
    "STRING": "=STRING",
    "LIST": "=[LIST,...]",
    "FILE": "=FILENAME",
}


def banner(release: str) -> str:
    """The first line of every command; scripts read "sysbench" and the number after it."""
    return f"sysbench {RELEASES[release]} (using dbdyno {__version__})\n"


def general_help() -> str:
    """The text of ``--help``."""
    tests = "".join(f"  {name} - {text}\n" for name, text in WITHOUT_DATABASE.items())
    sql_tests = "".join(f"  {name}\n" for name in _engine.workloads())
    return "\n".join(
        [
            "Usage:\n  sysbench [options]... [testname] [command]\n",
            "Commands implemented by most tests: prepare run cleanup help\n",
            _section("General options", GENERAL),
            _section("Pseudo-Random Numbers Generator options", RANDOM),
            _section("Log options", LOG),
            _section("General database options", DATABASE),
            "Compiled-in database drivers:\n  mysql - MySQL driver\n  pgsql - PostgreSQL driver\n",
            _section("mysql options", MYSQL),
            _section("pgsql options", PGSQL),
            f"Compiled-in tests:\n{tests}",
            f"SQL tests, which have the command prewarm too:\n{sql_tests}",
            "See 'sysbench <testname> help' for a list of options for each test.\n",
        ]
    )


def options_help(name: str, options: Sequence[Option]) -> str:
    """The text of a test's ``help`` with these options."""
    return _section(f"{name} options", options) + "\n"


def _section(title: str, options: Sequence[Option]) -> str:
    shapes = [f"--{option.name}{_SHAPES[option.kind]}" for option in options]
    width = max(len(shape) for shape in shapes)
    lines = (
        f"  {shape:<{width}} {option.text}{_default(option)}\n"
        for shape, option in zip(shapes, options, strict=True)
    )
    return f"{title}:\n" + "".join(lines)


def _default(option: Option) -> str:
    return "" if option.default is None else f" [{option.default}]"
