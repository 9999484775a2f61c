"""Value types of sysbench's options, read exactly as sysbench 1.0.20 reads them, traps included.

An option is kept as it was typed and read when it is asked for: sysbench too complains about a
bad integer only at the moment of the first read, so ``--threads=1K --help`` shows the help.
"""

from __future__ import annotations

from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    Kind = Literal["BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE"]

_DIGITS = "0123456789"
_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# Not compiled at each start: `_is_plain` is what nearly all numbers are.
_HEX_NUMBER = (
    r"[ \t\n\v\f\r]*([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
)
_NUMBER = (
    r"(?i)[ \t\n\v\f\r]*"
    r"([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan))"
)


class Option(NamedTuple):
    """An option: its name in the help, its type, default as typed, and description."""

    name: str
    kind: Kind
    default: str | None
    text: str


def canonical(name: str) -> str:
    """The name under which an option is looked up: ``-`` and ``_`` mean the same."""
    return name.replace("_", "-")


def boolean(raw: str | None) -> bool | None:
    """True for on, False for off, else None."""
    if raw in (None, "on", "true", "1"):
        return True
    return False if raw in ("off", "false", "0") else None


def integer(raw: str | None) -> int | None:
    """`strtol` over the whole text within 32 bits; empty is 0; None if not an integer."""
    if not raw:
        return 0
    text = raw.lstrip(" \t\n\v\f\r")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(raw) > 64 or not digits or digits.strip(_DIGITS):
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None


def size(raw: str | None) -> int:
    """Digits with K, M, G or T (1024-based, the rest is ignored); anything else is 0."""
    text = raw or ""
    unit = text.lstrip(_DIGITS)
    digits = text.removesuffix(unit)
    if not 0 < len(digits) <= 20:
        return 0
    return int(digits) * _SIZE_UNITS.get(unit[:1].lower(), 0)


def number(raw: str | None) -> float:
    """`strtod` without any error check: the longest number the text begins with, or 0."""
    text = raw or ""
    if _is_plain(text):
        return float(text)
    import re  # noqa: PLC0415 - start-up time, as nearly all numbers are plain

    if match := re.match(_HEX_NUMBER, text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("inf")
    match = re.match(_NUMBER, text)
    return float(match[1]) if match else 0.0


def _is_plain(text: str) -> bool:
    """True for digits with at most a single point."""
    return text.isascii() and text.replace(".", "", 1).isdigit()


def is_whole_number_text(raw: str) -> bool:
    """True if `strtod` takes all of the text; sysbench drops the rest without a word."""
    if _is_plain(raw):
        return True
    import re  # noqa: PLC0415 - as in `number`

    return any(re.fullmatch(one, raw) for one in (_HEX_NUMBER, _NUMBER))


def items(raw: str | None) -> tuple[str, ...]:
    """The parts between commas; empty ones are dropped."""
    return tuple(part for part in (raw or "").split(",") if part)


def _is_default(option: Option, raw: str | None) -> bool:
    if option.default is None or option.kind not in ("BOOL", "INT", "DOUBLE"):
        return raw == option.default
    read = boolean if option.kind == "BOOL" else number
    return read(raw) == read(option.default)


class Values:
    """The typed values of a table's options, over the table's defaults."""

    def __init__(self, table: Mapping[str, Option], typed: Mapping[str, str | None]) -> None:
        self._table = table
        self._typed = typed

    def options(self) -> list[Option]:
        """The table, in its order."""
        return list(self._table.values())

    def was_typed(self, name: str) -> bool:
        """True if the command line has the option."""
        return canonical(name) in self._typed

    def changed(self) -> list[str]:
        """Names of the typed options that have another value than their default."""
        return [
            name
            for name, option in self._table.items()
            if name in self._typed and not _is_default(option, self._typed[name])
        ]

    def raw(self, name: str) -> str | None:
        """The text after ``=``, or the default's."""
        key = canonical(name)
        return self._typed[key] if key in self._typed else self._table[key].default

    def flag(self, name: str) -> bool:
        """A BOOL option; values that are neither on nor off were refused with the command line."""
        return bool(boolean(self.raw(name)))

    def integer(self, name: str) -> int:
        """An INT option; Refusal if the text is no 32-bit integer."""
        raw = self.raw(name)
        value = integer(raw)
        if value is None:
            option = name.replace("-", "_")
            raise argument_error(f"Invalid value for the '{option}' option: '{raw}'")
        return value

    def size(self, name: str) -> int:
        """A SIZE option."""
        return size(self.raw(name))

    def number(self, name: str) -> float:
        """A DOUBLE option."""
        return number(self.raw(name))

    def text(self, name: str) -> str:
        """A STRING option; unset is empty."""
        return self.raw(name) or ""

    def items(self, name: str) -> tuple[str, ...]:
        """A LIST option."""
        return items(self.raw(name))


def whole(values: Values, name: str) -> int:
    """A DOUBLE option as a whole number; Refusal otherwise: sysbench silently reads 1M as 1."""
    raw, number = values.raw(name) or "", values.number(name)
    if not (is_whole_number_text(raw) and number.is_integer()):
        raise fatal(
            f"Invalid value for --{name}: '{raw}'. It must be a whole number; the numbers of"
            " a test take no suffix K, M or G"
        )
    return int(number)


class Refusal(Exception):  # noqa: N818 - it carries lines for the user, not a program's mistake
    """Ends the command early, with lines in sysbench's words.

    Args:
        lines: printed as they are, in order.
        to_stderr: sysbench writes argument errors to stderr, everything else to stdout.
        exit_status: 1, unless a signal ended the run.
    """

    def __init__(self, *lines: str, to_stderr: bool = False, exit_status: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.to_stderr = to_stderr
        self.exit_status = exit_status


def fatal(*messages: str) -> Refusal:
    """Each message as a FATAL line on stdout."""
    return Refusal(*(f"FATAL: {message}" for message in messages))


def argument_error(*lines: str) -> Refusal:
    """Lines on stderr, without a prefix."""
    return Refusal(*lines, to_stderr=True)
