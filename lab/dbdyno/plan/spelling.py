"""Short ways of writing a plan's values, as types of its fields: ``15s``, ``2%``, one for a list.

Each short way has one long one, which `plan.Plan` describes. A field's type carries both: `Short`
spells a value out before the field checks it, and widens the JSON schema for editors. A value that
fits neither way is left as it stands, so that the check's message shows what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Schema = dict[str, Any]

NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
"""Of a table, a column, or a value that is drawn: both products take it without quotes."""
COLUMN_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,62}\.[A-Za-z_][A-Za-z0-9_]{0,62}$"

_NUMBER: Final = r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*"
_DURATION: Final = re.compile(_NUMBER + r"(ms|s|m|min|h)\s*")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_PERCENT: Final = re.compile(_NUMBER + r"%\s*")

# What editors are told of the short ways.
TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
POSITIVE: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
_DIGITS: Final = r"[0-9]{1,9}(\.[0-9]+)?\s*"
_TIME: Final[Schema] = {"type": "string", "pattern": rf"^\s*{_DIGITS}(ms|s|m|min|h)\s*$"}
_LIMIT: Final[Schema] = {
    "type": "string",
    "pattern": rf"^\s*p(50|95|99|999)\s*=\s*{_DIGITS}(ms|s|m|min|h)\s*$",
}


class Short:
    """Another way of writing the values of a field, put into its type with `Annotated`.

    Args:
        spelled_out: the long way of a short one; anything else as it is.
        also: JSON schemas of the short way; if there is none, an entry of the list.
    """

    def __init__(self, spelled_out: Callable[[Any], object], *also: Schema) -> None:
        self._spelled_out = spelled_out
        self._also = also

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._spelled_out, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        long = handler(core)
        kinds = long.get("anyOf", [long])
        entry = (kind["items"] for kind in kinds if "items" in kind)
        return {"anyOf": [*kinds, *(self._also or entry)]}


class Time(Short):
    """A time with its unit; its key may be written without the unit: ``window`` for `window_s`.

    Args:
        unit: ``s`` or ``ms``: what the field counts in, and what its name ends with.
    """

    def __init__(self, unit: str) -> None:
        super().__init__(self._number, _TIME)
        self.unit = unit

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        return {"anyOf": [handler(core), _TIME]}

    def _number(self, value: object) -> object:
        time = duration_s(value) if self.unit == "s" else duration_ms(value)
        if time is None or (isinstance(time, int | float) and not isinstance(time, bool)):
            return time
        if isinstance(time, str) and _is_number(time):  # from the command line
            return time
        examples = (
            "15s, 2m or 90 (seconds)" if self.unit == "s" else "0.8ms, 1s or 5 (milliseconds)"
        )
        raise PydanticCustomError("time", f"must be a time such as {examples}")


def duration_ms(value: object) -> object:
    """Milliseconds of ``0.8ms``, ``90s``, ``2m`` or ``1h``; anything else comes back as it is."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) * _MILLISECONDS[match[2]] if match else value


def duration_s(value: object) -> object:
    """Seconds of ``90s``, ``2m`` or ``1h``; anything else comes back as it is."""
    time_ms = duration_ms(value)
    return time_ms / 1000 if isinstance(value, str) and isinstance(time_ms, float) else value


def ratio(value: object) -> object:
    """0.02 of ``2%``; anything else comes back as it is."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else value


def latency_limit(value: object) -> object:
    """``{metric: p99, limit_ms: 20}`` of ``p99=20ms``; what is no text comes back as it is."""
    if not isinstance(value, str):
        return value
    metric, _, limit = value.partition("=")
    time_ms = duration_ms(limit)
    if not isinstance(time_ms, float):
        raise PydanticCustomError("slo", "must be a percentile and a time such as p99=20ms")
    return {"metric": metric.strip(), "limit_ms": time_ms}


def listed(*kinds: type) -> Callable[[object], object]:
    """Makes a list of a single value of these types; anything else comes back as it is."""

    def entries(value: object) -> object:
        if isinstance(value, list):
            return tuple(value)
        is_one = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        return (value,) if is_one else value

    return entries


def named(value: object) -> object:
    """The keys of what is written by its name alone; anything else comes back as it is."""
    return {"name": value} if isinstance(value, str) else value


def laid_over(value: object) -> object:
    """One map of a list of maps, later ones over earlier ones; a list in a map is a tuple."""
    parts = value if isinstance(value, list) and value else [value]
    maps = [part for part in parts if isinstance(part, dict)]
    if len(maps) < len(parts):
        return value
    keys = {key: one for part in maps for key, one in part.items()}
    return {key: tuple(one) if isinstance(one, list) else one for key, one in keys.items()}


def text(value: object) -> object:
    """A number as the text that was typed; anything else comes back as it is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


SECONDS: Final = Time("s")
MILLISECONDS: Final = Time("ms")
PERCENT: Final = Short(ratio, {"type": "string", "pattern": rf"^\s*{_DIGITS}%\s*$"})
LATENCY_LIMIT: Final = Short(latency_limit, _LIMIT)
MAPS: Final = Short(laid_over, {"type": "array", "items": {"type": "object"}, "minItems": 1})
LISTED: Final = Short(listed(str, int, float, bool))


def short_keys(model: type[BaseModel]) -> dict[str, str]:
    """The keys of a model that may be written without their unit, and what they are in full."""
    return {
        name.removesuffix(f"_{time.unit}"): name
        for name, field in model.model_fields.items()
        for time in field.metadata
        if isinstance(time, Time)
    }


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model that a field's type is, or holds in a tuple or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (model_in(argument) for argument in get_args(annotation))
    return next((model for model in inner if model is not None), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
