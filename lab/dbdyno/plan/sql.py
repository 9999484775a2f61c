"""Names in a template's SQL: drawn values and tables.

A template may be a stranger's, so each search takes time in proportion to the statement's length,
whatever stands in it: a quoted text or a comment without its end reaches to the statement's end.
"""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`"
_COMMENT: Final = r"--(?!\S)[^\n]*"
_BETWEEN: Final = r"/\*[\s\S]*?(?:\*/|\Z)"
_BLANK: Final = re.compile(rf"({_QUOTED}|(?:--(?=\S)|#)[^\n]*(?:\n|\Z))|(?:{_COMMENT}|\s)+")
NAMES: Final = re.compile(rf"{_QUOTED}|{_COMMENT}|{_BETWEEN}|::|:([A-Za-z_]\w*)|\?")
"""Quoted texts, comments and casts are passed over; a name of a value, a question mark."""
_TABLES: Final = re.compile(
    r"(?i)\b(?:(?<!DISTINCT )FROM|JOIN|INTO|(?<!KEY )UPDATE(?: LOW_PRIORITY| IGNORE| ONLY)*+) "
    r"([A-Z_][A-Z0-9_]*+)(?![.\x00])"
)
_COMMON: Final = re.compile(
    r"(?i)(?:\bWITH(?: RECURSIVE)?|,) ?(\w++) ?(?:\([^()]*+\) )?AS [A-Z ]{0,20}\("
)
_SUBQUERY: Final = re.compile(r"(?i)\s*(?:SELECT|WITH)\b")
_NO_TABLE: Final = frozenset({"select", "lateral", "set", "skip", "nowait", "of", "dual"})


def one_line(sql: str) -> str:
    """The SQL on one line, without comments up to a line's end."""
    return _BLANK.sub(lambda match: match[1] or " ", sql).strip()


def tables_in(sql: str) -> list[str]:
    """Tables of a statement, each once; without those of other schemas and those of its WITH."""
    plain = re.sub(rf"'(?:[^']|'')*'|{_BETWEEN}", "''", one_line(sql))
    common = set(_COMMON.findall(plain))
    names = dict.fromkeys(_TABLES.findall(_without_arguments(plain)))
    return [name for name in names if name not in common and name.lower() not in _NO_TABLE]


def _without_arguments(sql: str) -> str:
    """The SQL with a NUL in place of brackets without a subquery.

    `EXTRACT(YEAR FROM at)` names no table, a subquery does.
    """
    kept: list[str] = []
    opened: list[int] = []
    is_kept = 0  # how many of the open brackets stay, as a subquery is in them
    for part in re.split(r"([()])", sql):
        kept.append(part)
        if part == "(":
            opened.append(len(kept) - 1)
        elif part == ")" and opened:
            place, depth = opened.pop(), len(opened) + 1
            if depth <= is_kept or _SUBQUERY.match(kept[place + 1]):
                is_kept = depth - 1
            else:
                kept[place:] = "\0"
    return "".join(kept)
