"""Rules for a template's values, and each as an expression of Lua.

`template.lua` defines the functions in these expressions; `sysbench.rand` draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.spelling import (
    COLUMN_PATTERN,
    DATE_PATTERN,
    DATETIME_PATTERN,
    DECIMAL_PATTERN,
    NAME_PATTERN,
)

NUMBER_MAX: Final = 2**32 - 2
"""`sysbench.rand` counts the numbers of a range in 32 bits: from 0 to the last it draws 0 alone."""
TEXT_MAX: Final = 65_535
WEIGHT_MAX: Final = 1e9
WORD_LENGTH_MAX: Final = 9
"""Letters of the longest word in `template.lua`."""
DIGITS_MAX: Final = 15
"""Digits of a decimal: a number in Lua keeps so many."""
NUMBER_LENGTH_MAX: Final = 24
"""Characters of a number."""
ROW: Final = "row"
UUID: Final = "uuid"
DRAWS: Final = ("uniform", "gaussian", "special", "pareto", "zipfian")
KINDS: Final = (
    *(*DRAWS, "sequential", "recent", "text", "words", "format", "choice"),
    *("date", "datetime", "decimal", "json", "constant"),
)
EPOCH: Final = datetime(1970, 1, 1)
DAY_S: Final = 86_400
UUID_EXAMPLE: Final = "5d1f0e3a-9c42-4b7e-8a61-0f2d4c6b8e90"
EXAMPLE_LETTERS: Final = 20
"""Letters of a made-up text; its length decides nothing."""
EXPRESSIONS: Final = {
    ROW: ROW,
    UUID: "uuid_of()",
    **{draw: f"rand.{draw}({{low}}, {{high}})" for draw in DRAWS},
    "sequential": "next_of({given})",
    "recent": "recent_of({given}, {high})",
    "text": "text_of({low}, {high})",
    "words": "words_of({low}, {high})",
    "format": "rand.string({given})",
    "choice": "choice_of({{ {given} }}, {{ {limits} }})",
    "date": f'os.date("!%Y-%m-%d", {DAY_S} * whole({{low}}, {{high}}))',
    "datetime": 'os.date("!%Y-%m-%d %H:%M:%S", whole({low}, {high}))',
    "decimal": 'string.format("%.{places}f", whole({low}, {high}) / {units})',
    "json": "object_of({{ {given} }})",
    "constant": "{given}",
}
"""Lua for each kind of value."""

Scalar = int | float | str
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Column = Annotated[str, Field(pattern=COLUMN_PATTERN)]
Count = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Length = Annotated[int, Field(ge=0, le=TEXT_MAX)]
WordCount = Annotated[int, Field(ge=0, le=TEXT_MAX // (WORD_LENGTH_MAX + 1))]
DateText = Annotated[str, Field(pattern=DATE_PATTERN)]
DatetimeText = Annotated[str, Field(pattern=DATETIME_PATTERN)]
DecimalText = Annotated[str, Field(pattern=DECIMAL_PATTERN)]
Range = tuple[Count, Count] | Name
"""From one number to another, or from 1 to the rows of a table."""


class Value(FiniteNoun):
    """Rule for a value: exactly one of these keys beside `null`, or the word ``row`` or ``uuid``.

    Attributes:
        row: the number of the row, from 1; for columns.
        uuid: a random UUID, version 4.
        uniform, gaussian, special, pareto, zipfian: a whole number drawn from a range with this
            distribution.
        sequential: numbers above the greatest in a column, named as ``jobs.id``; each connection
            gets different numbers.
        recent: a key inserted into a column by this connection's last events; before the first of
            them, a number from 1 to the rows of the table.
        text: number of random small letters, or the range of that number.
        words: number of English words, or the range of that number.
        format: a text with each # replaced by a digit and each @ by a small letter.
        choice: values to draw from, by default equally often.
        weights: weight of each choice.
        date, datetime: the first and the last day or second.
        decimal: the least and the greatest number; the digits behind their points are kept.
        members: rules for the members of a JSON object, by key; written ``json`` in a template.
        constant: the same value each time.
        null: share of NULL in place of the value.
    """

    row: bool = False
    uuid: bool = False
    uniform: Range | None = None
    gaussian: Range | None = None
    special: Range | None = None
    pareto: Range | None = None
    zipfian: Range | None = None
    sequential: Column | None = None
    recent: Column | None = None
    text: tuple[Length, Length] | None = None
    words: tuple[WordCount, WordCount] | None = None
    format: Annotated[str | None, Field(max_length=TEXT_MAX)] = None
    choice: Annotated[tuple[Scalar, ...], Field(min_length=1)] | None = None
    weights: tuple[Annotated[float, Field(ge=0, le=WEIGHT_MAX)], ...] | None = None
    date: tuple[DateText, DateText] | None = None
    datetime: tuple[DatetimeText, DatetimeText] | None = None
    decimal: tuple[DecimalText, DecimalText] | None = None
    # The model has a method `json`.
    members: Annotated[dict[str, Value], Field(min_length=1)] | None = Field(None, alias="json")
    constant: Scalar | None = None
    null: Annotated[float, Field(ge=0, le=1)] = 0.0

    @model_validator(mode="after")
    def _is_one_kind(self) -> Value:
        given = [kind for kind in KINDS if self._of(kind) is not None]
        if len(given) + self.row + self.uuid != 1:
            raise ValueError(f"must be {ROW}, {UUID}, or one of {', '.join(KINDS)}")
        low, high = self.ends or (0, 0)
        if low > high:
            first, last = self.spec
            raise ValueError(f"must be from the lesser to the greater, found [{first}, {last}]")
        if self.decimal is not None and max(abs(low), abs(high)) >= 10**DIGITS_MAX:
            raise ValueError(f"must have at most {DIGITS_MAX} digits")
        if self.weights is not None and len(self.weights) != len(self.choice or ()):
            raise ValueError("needs as many weights as there are choices")
        if self.weights is not None and not sum(self.weights):
            raise ValueError("needs a weight above 0")
        if self.choice and len({isinstance(one, str) for one in self.choice}) > 1:
            raise ValueError("must choose among texts or among numbers, not both")
        for key, member in (self.members or {}).items():
            if any(sign in '"\\' or sign < " " for sign in "".join([key, *member.texts])):
                raise ValueError(f"{key!r} has a quotation mark, backslash or control character")
        return self

    def _of(self, kind: str) -> Any:  # noqa: ANN401 - a rule of any kind
        return getattr(self, "members" if kind == "json" else kind)

    @property
    def kind(self) -> str:
        """The key with the rule, or the word."""
        given = (kind for kind in KINDS if self._of(kind) is not None)
        return ROW if self.row else UUID if self.uuid else next(given)

    @property
    def spec(self) -> Any:  # noqa: ANN401 - a rule of any kind
        """The rule under the key `kind`."""
        return self._of(self.kind)

    @property
    def texts(self) -> list[str]:
        """Texts of the template in the rule."""
        given = (self.format, self.constant, *(self.choice or ()))
        return [text for text in given if isinstance(text, str)]

    @property
    def ends(self) -> tuple[int, int] | None:
        """The first and the last number of the rule's range; None without a range in numbers.

        Dates are numbered by days since 1970, datetimes by seconds, decimals by units of the last
        digit.
        """
        if self.kind == "choice" or not isinstance(self.spec, tuple):
            return None
        low, high = map(self._number, self.spec)
        return low, high

    def _number(self, end: int | str) -> int:
        if isinstance(end, int):
            return end
        if self.decimal is not None:
            return int(Decimal(end).scaleb(self.places))
        try:
            after = datetime.fromisoformat(end) - EPOCH
        except ValueError as error:
            raise ValueError(f"{end} does not exist: {error}") from error
        return after // timedelta(days=1) if self.date else after // timedelta(seconds=1)

    @property
    def places(self) -> int:
        """Digits of a decimal behind its point."""
        return max(len(end.partition(".")[2]) for end in self.decimal or ("",))

    @property
    def table(self) -> str | None:
        """The table named in the value's range or column, if any."""
        named = self.spec if self.kind in (*DRAWS, "sequential", "recent") else None
        return named.partition(".")[0] if isinstance(named, str) else None

    @property
    def bytes_max(self) -> int | None:
        """Most bytes of its text; None for a number."""
        match self.kind:
            case "text":
                return int(self.spec[1])
            case "words":
                return int(self.spec[1]) * (WORD_LENGTH_MAX + 1)
            case "json":
                pairs = (self.members or {}).items()
                return 2 + sum(len(key.encode()) + 6 + value._json_max for key, value in pairs)
            case "date" | "datetime" | "decimal" | "uuid":
                return len(UUID_EXAMPLE)
        return max((len(text.encode()) for text in self.texts), default=None)

    @property
    def _json_max(self) -> int:
        """Most bytes as a member of a JSON object."""
        return max(NUMBER_LENGTH_MAX, (self.bytes_max or 0) + 2)

    @property
    def is_quoted(self) -> bool:
        """True unless its text stands without quotation marks in JSON."""
        return self.decimal is None and self.members is None

    def parts(self) -> Iterator[Value]:
        """The rule, and all rules within it."""
        yield self
        for member in (self.members or {}).values():
            yield from member.parts()


def bind_type(value: Value) -> str:
    """The type by which it is bound, and the length of a text."""
    if (longest := value.bytes_max) is not None:
        return f"types.VARCHAR, {max(1, longest)}"
    numbers = [value.constant, *(value.choice or ())]
    return "types.DOUBLE" if any(isinstance(n, float) for n in numbers) else "types.BIGINT"


def expression(value: Value, rows: Mapping[str, int]) -> str:
    """A Lua expression for the value; in a column `row` is the row's number.

    Args:
        rows: number of rows of each table.
    """
    low, high = _range(value, rows)
    if value.members is not None:
        given = ", ".join(_member(*pair, rows) for pair in value.members.items())
    else:
        given = ", ".join(map(_scalar, value.choice or (value.spec,)))
    weights = value.weights or tuple(1.0 for _ in value.choice or ())
    drawn = EXPRESSIONS[value.kind].format(
        low=low,
        high=high,
        given=given,
        limits=", ".join(map(repr, accumulate(weights))),
        places=value.places,
        units=10**value.places,
    )
    return f"rand.uniform_double() >= {value.null!r} and {drawn} or nil" if value.null else drawn


def _range(value: Value, rows: Mapping[str, int]) -> tuple[int, int]:
    return value.ends or (1, rows.get(value.table or "", 1))


def _member(key: str, value: Value, rows: Mapping[str, int]) -> str:
    drawn = expression(value, rows)
    as_json = f"json_of({drawn})" if value.is_quoted else f'({drawn} or "null")'
    return f"{quoted(_json_key(key))} .. {as_json}"


def _json_key(key: str) -> str:
    return f'"{key}": '


def example(value: Value, rows: Mapping[str, int]) -> Scalar:
    """An example of the value: from the middle of its range, or its likeliest choice."""
    low, high = _range(value, rows)
    middle = (low + high) // 2
    shown: Scalar
    match value.kind:
        case "sequential":
            shown = high + 1
        case "text" | "words":
            shown = "m" * min(middle, EXAMPLE_LETTERS)
        case "uuid":
            shown = UUID_EXAMPLE
        case "format":
            shown = value.spec.replace("#", "5").replace("@", "m")
        case "choice":
            weights = value.weights or (1.0,)
            shown = value.spec[weights.index(max(weights))]
        case "date":
            shown = f"{EPOCH + timedelta(days=middle):%Y-%m-%d}"
        case "datetime":
            shown = f"{EPOCH + timedelta(seconds=middle)}"
        case "decimal":
            shown = f"{Decimal(middle).scaleb(-value.places):f}"
        case "json":
            pairs = ((key, member, example(member, rows)) for key, member in value.spec.items())
            texts = (_json_key(key) + _as_json(member, inner) for key, member, inner in pairs)
            shown = f"{{{', '.join(texts)}}}"
        case "constant":
            shown = value.spec
        case _:
            shown = middle
    return shown


def _as_json(value: Value, shown: Scalar) -> str:
    return f'"{shown}"' if isinstance(shown, str) and value.is_quoted else f"{shown}"


def _scalar(value: Scalar) -> str:
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    """A text as Lua has it between quotes, its bytes beyond ASCII as numbers."""
    plain = set(range(32, 127)) - set(b'"\\')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03}" for b in text.encode()) + '"'
