"""Defaults of options: from the environment, else from a file `dbdyno.toml`.

    workspace = "~/runs"      # DBDYNO_WORKSPACE sets the same, and wins

    [compare]
    time = "30m"              # DBDYNO_COMPARE_TIME

The file sets numbers, times, formats and switches. It may lie in a stranger's folder, so it cannot
choose a server, a setting, a program or a file, open a port, or answer for the user (`--trust`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from dbdyno.errors import PlanError, PlanMistake, UsageError, did_you_mean

FILES: Final = ("dbdyno.toml", "~/.config/dbdyno/dbdyno.toml")
"""Places of the file; the first existing file is read."""
FILE_BYTES_MAX: Final = 100_000
GENERAL: Final = ("workspace", "output", "lang", "exit_code")
"""Options of many commands, which stand above the tables."""
VALUES: Final = (
    *("TIME", "SECONDS", "RATIO", "SHARE", "INTEGER", "N"),
    *("N,N…", "RATE,RATE…", "p99=20ms"),
)
"""Values that the file sets, as the help writes them."""
SWITCHES: Final = ("--strict",)
COMMANDS: Final = Path(__file__).with_name("commands.txt")


@cache
def commands() -> dict[str, dict[str, str]]:
    """Arguments and options of each command, with the value that an option takes, or with ""."""
    rows = (line.partition(":") for line in COMMANDS.read_text(encoding="utf-8").splitlines())
    return {path: dict(map(_word, words.split())) for path, _, words in rows}


def _word(text: str) -> tuple[str, str]:
    word, _, value = text.partition("=")
    return word, value


@cache
def keys() -> dict[str, tuple[str, ...]]:
    """Every key of the file, such as `compare.time`, split into commands and option.

    A general option belongs to no command.
    """
    split: dict[str, tuple[str, ...]] = {key: (key,) for key in GENERAL}
    for path, options in commands().items():
        for option, value in options.items():
            words = (*path.split()[1:], _name(option))
            may_stand = value in VALUES if value else option in SWITCHES
            if may_stand and option.startswith("--") and words[-1] not in GENERAL:
                split[".".join(words)] = words
    return split


def _name(option: str) -> str:
    """Name of an option in the file: `exit_code` of `--exit-code`."""
    return option.removeprefix("--").replace("-", "_")


def given() -> dict[str, bool | str]:
    """Defaults that are set, by key; the environment wins.

    Raises:
        PlanError: all mistakes of the file, with their lines.
        UsageError: the file cannot be read.
    """
    file = next(filter(_is_file, map(_expanded, FILES)), None)
    values: dict[str, bool | str] = {} if file is None else _read(file)
    for key in keys():
        if text := os.environ.get(f"DBDYNO_{re.sub('[.-]', '_', key)}".upper()):
            values[key] = text
    return values


def by_command() -> dict[str, Any]:
    """Defaults as the command line looks them up: by command, inner command and option."""
    values = given()
    general = {key: values[key] for key in GENERAL if key in values}
    tables: dict[str, Any] = {}
    for path in commands():
        table = tables
        for name in path.split()[1:]:
            table = table.setdefault(name, dict(general))
    for key, (*names, option) in keys().items():
        table = tables
        for name in names:
            table = table[name]
        if names and key in values:
            table[option] = values[key]
    return tables


def workspace() -> Path:
    """Folder for results, unless `--workspace` names another."""
    return _expanded(str(given().get("workspace", "dbdyno-runs")))


def _expanded(path: str) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - it leaves `~nobody` as it is


def _is_file(path: Path) -> bool:
    """Test for a file, which a folder closed to the user does not show."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for such a folder


def _read(file: Path) -> dict[str, bool | str]:
    import tomllib  # noqa: PLC0415 - only a file pays for it

    try:
        with file.open("rb") as opened:
            text = opened.read(FILE_BYTES_MAX).decode()
        values = {_key(key): value for key, value in _flat(tomllib.loads(text))}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read", found=str(error)) from error
    known = keys()
    wrong = [PlanMistake(key, _why(key), _line(text, key)) for key in values if key not in known]
    if wrong:
        raise PlanError(str(file), wrong)
    return values


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, bool | str]]:
    """Keys of a table and its tables, joined by dots; numbers and lists as on a command line."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield f"{prefix}{key}", ",".join(map(str, value))
        else:
            yield f"{prefix}{key}", value if isinstance(value, bool) else str(value)


def _key(written: str) -> str:
    """A key with `_` in the option's name, which may be written with `-` too."""
    table, dot, option = written.rpartition(".")
    return f"{table}{dot}{_name(option)}"


def _why(key: str) -> str:
    """Message for an unknown key."""
    table, _, option = key.rpartition(".")
    if option in GENERAL:
        return "holds for all commands: write it above the tables"
    path = " ".join(["dbdyno", *table.split(".")])
    if f"--{option.replace('_', '-')}" in commands().get(path, ()):
        return "cannot be set in this file: give it on the command line"
    return f"is no default of a command{did_you_mean(key, keys())}"


def _line(text: str, key: str) -> int | None:
    """Line of a key in the file; None for a key of an unusual form."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = f"{header[1]}."
        elif (written := re.match(r"\s*([\w.-]+)\s*=", line)) and _key(table + written[1]) == key:
            return number
    return None
