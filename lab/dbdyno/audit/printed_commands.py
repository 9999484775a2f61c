"""sysbench's command lines as pages print them, read with the parser of the persona.

Pages print command lines of sysbench 0.4 to 1.1, over several lines, with escaped underscores, with
a long dash or a blank after the dashes, with variables of a shell, and cut off by words. Options
without a readable value are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from dbdyno import _engine
from dbdyno.sysbench.legacy import COPIES, is_name_of_test, name_of_test
from dbdyno.sysbench.options.command_line import (
    V1_0,
    CommandLine,
    read_command_line,
    with_current_names,
)
from dbdyno.sysbench.options.effects import statements_of_event
from dbdyno.sysbench.options.table import (
    COMMANDS,
    GLOBAL_TABLE,
    LEGACY,
    LEGACY_OPTIONS,
    ONE_TABLE,
    WORKLOAD,
    by_name,
    of_test,
)
from dbdyno.sysbench.options.values import (
    Option,
    Refusal,
    Values,
    boolean,
    canonical,
    integer,
    is_whole_number_text,
)
from dbdyno.sysbench.options.values import (
    number as number_of,
)

COMMAND_MAX: Final = 10_000
"""Signs of a command on several lines."""
NUMBER_MAX: Final = 10**12
PROGRAM: Final = re.compile(r"(?:^|[\s/'\"(])sysbench(?:[_-]\w{1,30})?(?=\s)")
DASHES: Final = re.compile(r"(?<!\S)(?:[–—]{1,2}|--\s+)(?=[A-Za-z][\w-]{0,60}=)")
"""A long dash, or a blank after two dashes, before an option."""
OPTION: Final = re.compile(r"(?<!\S)--[A-Za-z]")
OPTION_NAME: Final = re.compile(r"(?<!\S)--([A-Za-z][\w-]*)")
WORD: Final = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
END: Final = re.compile(r"[|>;&#]|\d>|<(?![A-Za-z])")
VARIABLE: Final = re.compile(r"[$<{\[]")
CLOSING: Final = ",;)，。；）、"
OLD_AND_NEW: Final = {**by_name(WORKLOAD), **by_name(LEGACY_OPTIONS)}
"""Own options of a test whose name is a variable."""
NUMBERS: Final = {
    "tables": ("tables", "oltp-tables-count"),
    "rows_per_table": ("table-size", "oltp-table-size"),
    "threads": ("threads",),
    "time_s": ("time",),
    "warm_up_s": ("warmup-time",),
    "rate_per_s": ("rate",),
    "percentile": ("percentile",),
    "distribution": ("rand-type",),
}
"""Options by the facts that they give."""
OF_RUN: Final = frozenset(("threads", "time_s", "warm_up_s", "rate_per_s", "percentile"))


@dataclass(frozen=True)
class PrintedCommand:
    """A command line, as far as it can be read.

    Attributes:
        line: its first line, counted from 1.
        workload: as tables name it; empty if unknown.
        options: values by the names of `NUMBERS`; zeros, which mean no limit, are left out.
        statements: of an event of `workload`; None if unknown.
    """

    line: int
    workload: str
    options: Mapping[str, str]
    statements: int | None


def printed_commands(lines: Sequence[str]) -> Iterator[PrintedCommand]:
    """Every command line of a page's lines, in order; options alone count as a command."""
    for number, text in _whole(lines):
        starts = [match.end() for match in PROGRAM.finditer(text)]
        if not starts and (option := OPTION.search(text)):
            starts = [option.start()]
            yield from _command(number, text[starts[0] :], is_named=False)
            continue
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            yield from _command(number, text[start:end], is_named=True)


def _whole(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Lines with a command or an option, each with its further lines as a single text.

    A line of options that repeats one of the options above it begins another text.
    """
    first, begun, is_open = 0, "", False
    names = set[str]()
    for number, line in enumerate(lines, 1):
        text = DASHES.sub("--", line.replace("\\_", "_").replace("`", " ").strip())
        more = OPTION_NAME.findall(text)
        is_further = is_open or (OPTION.match(text) and names.isdisjoint(more))
        continues = begun and len(begun) <= COMMAND_MAX and is_further
        if begun and is_open and not text:
            continue
        if not continues:
            if begun:
                yield first, begun
            first, begun, names = number, "", set[str]()
            if not (PROGRAM.search(text) or OPTION.search(text)):
                is_open = False
                continue
        is_open = text.endswith("\\")
        names.update(more)
        begun = f"{begun} {text[:-1] if is_open else text}".strip()
    if begun:
        yield first, begun


def _command(number: int, text: str, *, is_named: bool) -> Iterator[PrintedCommand]:
    """The command of the words after the program's name, if they have an option."""
    line = _read(text[:COMMAND_MAX])
    if line is None or not line.typed:
        return
    test = _test_of(line)
    own_table = by_name(of_test(test)) if test else OLD_AND_NEW
    table = {**own_table, **(GLOBAL_TABLE if is_named else {})}
    typed = {name: raw for name, raw in line.typed.items() if _is_readable(table.get(name), raw)}
    current, _ = with_current_names(typed)
    values = Values({**own_table, **GLOBAL_TABLE}, current)
    options = {
        fact: raw
        for fact, names in NUMBERS.items()
        if fact not in OF_RUN or line.command in ("run", None)
        for name in names
        if name in current and (raw := values.text(name)) != "0"
    }
    unread = [name for name in line.typed if name in own_table and name not in typed]
    workload = _workload_of(test, values) if test else ""
    statements = None
    if workload and not unread and line.command in ("run", None):
        try:
            statements = statements_of_event(test, values)
        except Refusal:
            statements = None
    if options or statements:
        yield PrintedCommand(number, workload, options, statements or None)


def _read(text: str) -> CommandLine | None:
    """The words as the persona reads them, up to the end of the command."""
    words: list[str] = []
    ours = _engine.workloads()
    is_test_known = False
    for match in WORD.finditer(text):
        word = match[0].rstrip(CLOSING).replace('"', "").replace("'", "")
        if END.match(match[0]):
            break
        if OPTION.match(word):
            name = canonical(word[2:].partition("=")[0])
            if name and name != "config-file":  # a file of this machine is none of the page's
                words.append(word)
            is_test_known = is_test_known or name == "test"
        elif word in COMMANDS:
            words.append(word)
        elif not is_test_known and (is_name_of_test(word, ours) or word.endswith(".lua")):
            words.append(word)
            is_test_known = True
        elif word != "\\" and not VARIABLE.match(word):
            break
        if match[0].rstrip(CLOSING) != match[0] and word in COMMANDS:
            break
    try:
        line = read_command_line(words)
    except Refusal:
        return None
    if line.test in COMMANDS and line.command is None:
        line.test, line.command = None, line.test
    return line


def _is_readable(option: Option | None, raw: str | None) -> bool:
    """True for a known option with a value of its kind, not a variable."""
    if option is None:
        return False
    if option.kind == "BOOL":
        return boolean(raw) is not None
    if not raw or VARIABLE.match(raw):
        return False
    if option.kind in ("INT", "SIZE"):
        return integer(raw) is not None
    return option.kind != "DOUBLE" or (
        is_whole_number_text(raw) and 0 <= number_of(raw) <= NUMBER_MAX
    )


def _test_of(line: CommandLine) -> str:
    """The persona's name of the test, whatever its path; empty if unknown."""
    if not line.test:
        return ""
    path = PurePosixPath(line.test)
    typed = str(path.with_name(COPIES.get(path.name, path.name))) if path.name else line.test
    try:
        return name_of_test(
            typed, is_option=line.names_test, version=V1_0, ours=_engine.workloads()
        )
    except Refusal:
        return ""


def _workload_of(test: str, own: Values) -> str:
    """The name by which tables call a test."""
    if test not in (ONE_TABLE, f"{LEGACY}oltp"):
        bare = test.removeprefix(LEGACY)
        if bare in ("oltp_simple", "select"):
            return "oltp_point_select"
        return bare if bare.startswith(("oltp_", "select_", "bulk_")) else f"oltp_{bare}"
    for kind in ("read", "write"):
        if own.flag(f"oltp-{kind}-only"):
            return f"oltp_{kind}_only"
    return "oltp_read_write"
