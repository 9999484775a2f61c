"""``--config-file``: a line ``name=value`` for each option, as sysbench reads them.

Two things differ: a name's blanks are cut off (sysbench looks for an option called ``threads ``),
and what cannot be read ends the program (sysbench goes on with the defaults).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dbdyno.sysbench.options.refusal import argument_error
from dbdyno.sysbench.options.values import canonical

_PART = re.compile(r"""[\s,]*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^\s,'"]+))""")
_QUOTES = "'\""


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


def read(path: str | None) -> list[Setting]:
    """The settings of a file, in order. Lines without ``=`` and comments are left out.

    Raises:
        Refusal: there is no such file, or a quotation has no end.
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
    parts: list[str] = []
    at = 0
    while at < len(value):
        rest = value[at:].lstrip(" \t,")
        if not rest or rest.startswith("#"):
            break
        match = _PART.match(value, at)
        if match is None:
            raise argument_error(f"unexpected EOL on line {place.rpartition(' ')[2]} ({place})")
        parts.append(next(part for part in match.groups() if part is not None))
        at = match.end()
    return tuple(parts)
