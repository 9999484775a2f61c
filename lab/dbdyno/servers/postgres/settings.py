"""Compares what a PostgreSQL says of its parameters with what it was asked for.

The server shows a parameter as a number of its own unit (``shared_buffers`` as pages of 8 kB) and
rounds what does not fit that unit; so both sides are brought to the same unit before they are
compared, and a rounded value is an error that names both. Sizes are exact integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final, NamedTuple

from dbdyno.errors import ServerError
from dbdyno.servers.postgres.postgres_settings import SWITCHED_OFF, SWITCHED_ON

QUESTION: Final = "SELECT name, setting, coalesce(unit, ''), vartype FROM pg_settings"
BYTES_OF: Final[Mapping[str, int]] = {
    unit: 1024**power for power, unit in enumerate(("B", "kB", "MB", "GB", "TB"))
}
MICROSECONDS_OF: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
NUMBER: Final = r"[+-]?(?:0x[0-9a-fA-F]{1,16}|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)"
CHOSEN_BY_THE_SERVER: Final[Mapping[str, str]] = {  # asked for with this, shown as what it chose
    "wal_buffers": "-1",
    "commit_timestamp_buffers": "0",
    "subtransaction_buffers": "0",
    "transaction_buffers": "0",
}


class Parameter(NamedTuple):
    """A row of ``pg_settings``.

    Attributes:
        unit: what the number counts, such as ``8kB`` or ``ms``; empty where it counts nothing.
        kind: bool, integer, real, enum or string.
    """

    name: str
    shown: str
    unit: str
    kind: str

    @property
    def text(self) -> str:
        """The value with its unit, as 32768 x 8kB."""
        if not self.unit:
            return self.shown
        between = " x " if self.unit[0].isdigit() else " "
        return f"{self.shown}{between}{self.unit}"


def check(label: str, asked: Mapping[str, str], answered: Iterable[tuple[str, ...]]) -> None:
    """Every asked setting is in force.

    Args:
        label: the system, for messages.
        asked: settings by parameter name.
        answered: the rows of the answer to `QUESTION`.

    Raises:
        ServerError: names every setting that is not as asked, with both values.
    """
    shown = {row[0].lower(): Parameter(*row) for row in answered}
    wrong = [name for name, text in asked.items() if not _in_force(text, shown.get(name))]
    if not wrong:
        return
    found = {name: repr(shown[name].text) if name in shown else "no such" for name in wrong}
    raise ServerError(
        f"{label}: the server did not take {', '.join(wrong)} as asked",
        wanted="; ".join(f"{name} = {asked[name]}" for name in wrong),
        found="; ".join(f"{name} = {text}" for name, text in found.items()),
        hint="ask for a value that its unit can express, or for none",
    )


def _in_force(asked: str, parameter: Parameter | None) -> bool:
    if parameter is None:
        return False
    if CHOSEN_BY_THE_SERVER.get(parameter.name) == asked:
        return True
    return same_value(asked, parameter)


def same_value(asked: str, parameter: Parameter) -> bool:
    """Whether the text asked for means the value shown: 256MB and 32768 of 8kB, yes and on."""
    asked = asked.strip()
    if asked.casefold() == parameter.shown.casefold():
        return True
    if parameter.kind in {"bool", "enum"}:
        wanted = _switched(asked, short=parameter.kind == "bool")
        return wanted is not None and wanted == _switched(parameter.shown, short=False)
    if parameter.kind in {"integer", "real"}:
        wanted_amount, amount = _amount(asked, parameter.unit), _amount(parameter.shown, "")
        return wanted_amount is not None and wanted_amount == amount
    return _words(asked) == _words(parameter.shown)


def _switched(text: str, *, short: bool) -> bool | None:
    """What a word says; a boolean may be cut short, as `t` or `of`."""
    word = text.casefold()
    if word in SWITCHED_ON | SWITCHED_OFF:
        return word in SWITCHED_ON
    if short and word and word != "o":
        for words, meaning in ((SWITCHED_ON, True), (SWITCHED_OFF, False)):
            if any(whole.startswith(word) for whole in words):
                return meaning
    return None


def _amount(text: str, unit: str) -> Fraction | None:
    """A number, which may have a unit of its own, counted in `unit`; None if it is none."""
    found = re.fullmatch(rf"({NUMBER})\s*([a-zA-Z]*)", text)
    if found is None:
        return None
    number = _number(found[1])
    if number is None or not found[2]:
        return number
    factor, own = _factor(unit), _factor(found[2])
    if factor is None or own is None or factor[0] != own[0]:
        return None
    return number * own[1] / factor[1]


def _number(text: str) -> Fraction | None:
    """A decimal, hexadecimal or octal number, as C writes them."""
    try:
        if re.fullmatch(r"[+-]?0x[0-9a-fA-F]+", text):
            return Fraction(int(text, 16))
        if re.fullmatch(r"[+-]?0[0-7]+", text):
            return Fraction(int(text, 8))
        return Fraction(Decimal(text))
    except (InvalidOperation, ValueError, OverflowError):
        return None


def _factor(unit: str) -> tuple[str, int] | None:
    """What a unit measures, and how much of its base it is: ``8kB`` is 8192 bytes."""
    found = re.fullmatch(r"(\d*)([a-zA-Z]+)", unit)
    if found is None:
        return None
    many = int(found[1] or 1)
    if found[2] in BYTES_OF:
        return "bytes", many * BYTES_OF[found[2]]
    if found[2] in MICROSECONDS_OF:
        return "time", many * MICROSECONDS_OF[found[2]]
    return None


def _words(text: str) -> list[str]:
    """A list's items, whatever blanks are between them."""
    return [word.strip().casefold() for word in text.split(",")]
