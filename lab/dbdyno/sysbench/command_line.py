"""sysbench's grammar: ``[--option[=value]]... [test] [command]``, words and options in any order.

Names of options may use ``-`` or ``_``, are never shortened, and the last of several wins. Options
are checked in two passes as in sysbench: the global ones before the banner, a workload's own after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dbdyno.sysbench.options import GLOBAL_TABLE, by_name, of_test
from dbdyno.sysbench.refusal import argument_error
from dbdyno.sysbench.values import Option, Values, boolean, canonical


class CommandLine(NamedTuple):
    """What was typed: the two words, and the options by name (the last of each).

    Attributes:
        spelled: the options as they were typed, for messages.
    """

    test: str | None
    command: str | None
    typed: dict[str, str | None]
    spelled: dict[str, str]


def read(argv: Sequence[str]) -> CommandLine:
    """Sorts the arguments into words and options; looks no option up.

    Raises:
        Refusal: there is a third word.
    """
    words: list[str] = []
    typed: dict[str, str | None] = {}
    spelled: dict[str, str] = {}
    for argument in argv:
        if not argument.startswith("--"):
            words.append(argument)
            continue
        name, equals, value = argument[2:].partition("=")
        key = canonical(name)
        typed[key] = value if equals else None
        spelled[key] = argument
    if len(words) > 2:
        raise argument_error(f"Unrecognized command line argument: {words[2]}")
    test, command = (*words, None, None)[:2]
    return CommandLine(test, command, typed, spelled)


def global_values(typed: Mapping[str, str | None]) -> Values:
    """The general, random, log and database options."""
    return Values(GLOBAL_TABLE, _accepted(GLOBAL_TABLE, typed))


def workload_values(line: CommandLine, typed: Mapping[str, str | None]) -> Values:
    """The workload's own options.

    Raises:
        Refusal: an option is unknown, or a BOOL option is neither on nor off.
    """
    table = by_name(of_test(line.test))
    accepted = _accepted(table, typed)
    known = _accepted(GLOBAL_TABLE, typed) | accepted
    for name in typed:
        if name not in known:
            hint = _meant(name, {**GLOBAL_TABLE, **table})
            raise argument_error(f"invalid option: {line.spelled[name]}", *hint)
    return Values(table, accepted)


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
