"""Short forms of a plan's values, as types of its fields: ``15s``, ``2%``, a value for a list of
it.

Each short form has one long form, described by `plan.Plan`. A field's type carries both: `Short`
converts a value to the long form before the field checks it, and widens the JSON schema for
editors. A value of neither form stays as it is, so the check's message shows it as typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Schema = dict[str, Any]

NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
"""Names of tables, columns and drawn values; both products take them without quotes."""
COLUMN_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,62}\.[A-Za-z_][A-Za-z0-9_]{0,62}$"
DATE_PATTERN: Final = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
DATETIME_PATTERN: Final = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$"
DECIMAL_PATTERN: Final = r"^[-+]?[0-9]{1,15}(\.[0-9]{1,15})?$"

NUMBER: Final = r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*"
_DURATION: Final = re.compile(NUMBER + r"(ms|s|m|min|h)\s*")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_PERCENT: Final = re.compile(NUMBER + r"%\s*")

# JSON schemas of the short forms, for editors.
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
    """A short form of a field's values, put into its type with `Annotated`.

    Args:
        spelled_out: converts a short form to the long form; returns other values unchanged.
        also: JSON schemas of the short form; by default the schema of a list's entry.
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
    """A time with its unit; its key can leave the unit out: ``window`` for `window_s`.

    Args:
        unit: ``s`` or ``ms``: the unit of the field, and the ending of its name.
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


def share_of(text: str) -> float | None:
    """Share such as 0.02 of ``2%``; None for other text."""
    match = _PERCENT.fullmatch(text)
    return float(match[1]) / 100 if match else None


def ratio(value: object) -> object:
    """0.02 of ``2%``; anything else comes back as it is."""
    share = share_of(value) if isinstance(value, str) else None
    return value if share is None else share


def latency_limit(value: object) -> object:
    """``{metric: p99, limit_ms: 20}`` of ``p99=20ms``; returns other values unchanged."""
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
    """Keys of a part that is given by its name alone; returns other values unchanged."""
    return {"name": value} if isinstance(value, str) else value


def laid_over(value: object) -> object:
    """Merge a list of maps, later ones over earlier ones; a list in a map becomes a tuple."""
    parts = value if isinstance(value, list) and value else [value]
    maps = [part for part in parts if isinstance(part, dict)]
    if len(maps) < len(parts):
        return value
    keys = {key: one for part in maps for key, one in part.items()}
    return {key: tuple(one) if isinstance(one, list) else one for key, one in keys.items()}


def text(value: object) -> object:
    """A number as text; returns other values unchanged."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


SECONDS: Final = Time("s")
MILLISECONDS: Final = Time("ms")
PERCENT: Final = Short(ratio, {"type": "string", "pattern": rf"^\s*{_DIGITS}%\s*$"})
LATENCY_LIMIT: Final = Short(latency_limit, _LIMIT)
MAPS: Final = Short(laid_over, {"type": "array", "items": {"type": "object"}, "minItems": 1})
LISTED: Final = Short(listed(str, int, float, bool))


def short_keys(model: type[BaseModel]) -> dict[str, str]:
    """Short keys of a model, without their unit, each with its full key."""
    return {
        name.removesuffix(f"_{time.unit}"): name
        for name, field in model.model_fields.items()
        for time in field.metadata
        if isinstance(time, Time)
    }


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model of a field's type, also from a tuple or an optional type."""
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
