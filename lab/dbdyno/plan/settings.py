"""The settings axes, varied in the same way on every system and named independently of products.

An axis is a name and its values; a cell's setting is one value of each axis. `servers.axes`
translates a value to the configuration of a server: for ``durability: double-1``, MySQL 5.6 and
MariaDB 11.8 each get their own keys.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from itertools import product
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.spelling import LISTED, WHOLE, Short, share_of, text

OptionValue = bool | int | float | str
SettingValue = OptionValue | tuple[OptionValue, ...]
"""Value of a configuration key; several values are several lines of the file."""
OF_THE_LOAD: Final = "prepared_statements"
"""The axis of the load alone; servers have no key for it."""
DEFAULT = "default"
"""Name of the setting of a plan without axes."""

_SIZE: Final = re.compile(r"([0-9]{1,15})\s*([KMGT]?)i?B?", re.IGNORECASE)
_UNITS: Final = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T"))}


def each_value(value: SettingValue) -> tuple[OptionValue, ...]:
    """All values of a key: the entries of a list, or its single value."""
    return value if isinstance(value, tuple) else (value,)


def size_bytes(text: str) -> int | None:
    """Size in bytes, such as of ``512M`` or ``1G`` (units of 1024); None for other text."""
    match = _SIZE.fullmatch(text.strip())
    return int(match[1]) * _UNITS[match[2].upper()] if match else None


def _a_size(typed: str) -> str:
    if not size_bytes(typed):
        raise PydanticCustomError("size", "must be a size in bytes such as 512M or 1G")
    return typed


def _a_size_or_share(typed: str) -> str:
    if not (size_bytes(typed) or share_of(typed)):
        raise PydanticCustomError(
            "size", "must be a size such as 512M or 1G, or a share of the dataset such as 25%"
        )
    return typed


def on_or_off(value: object) -> object:
    """YAML's true and false are taken for on and off; anything else comes back as it is."""
    return ("off", "on")[value] if isinstance(value, bool) else value


Durability = Literal["double-1", "0/2"]
Switch = Annotated[Literal["on", "off"], Short(on_or_off, {"type": "boolean"})]
Size = Annotated[str, AfterValidator(_a_size), Short(text, WHOLE)]
SizeOrShare = Annotated[str, AfterValidator(_a_size_or_share), Short(text, WHOLE)]
AXIS_PATTERN = r"^[a-z][a-z0-9_]{0,31}$"
VALUE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:+%/-]{0,31}$"
AxisName = Annotated[str, Field(pattern=AXIS_PATTERN)]
ValueName = Annotated[str, Field(pattern=VALUE_PATTERN)]


Value = TypeVar("Value")
Axis = Annotated[Annotated[tuple[Value, ...], Field(min_length=1)] | None, LISTED]
"""The values of an axis; None where it is not given."""


class SettingsPlan(FiniteNoun):
    """Settings to vary (axes); an axis left out stays as the systems have it.

    Attributes:
        durability: ``double-1`` (each commit is on disk, in redo and binary log) or ``0/2``
            (commits reach the disk later, so a crash of the machine can lose them).
        buffer_pool: size in bytes such as ``1G``, or a share of the loaded dataset such as ``25%``.
        redo_log: total redo space in bytes, such as ``2G``.
        thread_pool: thread pool of the server, ``on`` or ``off``; ``on`` has a group for each core.
        prepared_statements: load sent as prepared statements, ``on`` or ``off``.
        binlog: binary log, ``on`` or ``off``; always ``off`` in PostgreSQL.
        own: further axes by name, each with named values; a value is a map of configuration keys,
            used verbatim.
    """

    durability: Axis[Durability] = None
    buffer_pool: Axis[SizeOrShare] = None
    redo_log: Axis[Size] = None
    thread_pool: Axis[Switch] = None
    prepared_statements: Axis[Switch] = None
    binlog: Axis[Switch] = None
    own: dict[
        AxisName,
        Annotated[dict[ValueName, dict[str, SettingValue]], Field(min_length=1)],
    ] = {}

    @field_validator(
        "durability", "buffer_pool", "redo_log", "thread_pool", "prepared_statements", "binlog"
    )
    @classmethod
    def _no_value_twice(cls, values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if values is not None and len(set(values)) != len(values):
            raise ValueError(f"each value once, found {list(values)}")
        return values

    @field_validator("own")
    @classmethod
    def _own_names_are_new(
        cls, own: dict[str, dict[str, dict[str, SettingValue]]]
    ) -> dict[str, dict[str, dict[str, SettingValue]]]:
        taken = sorted(own.keys() & cls.model_fields.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)} is an axis already; choose another name")
        return own


def axes(settings: SettingsPlan) -> dict[str, tuple[str, ...]]:
    """Axes in use, in their order, with the names of their values."""
    given = {name: getattr(settings, name) for name in SettingsPlan.model_fields if name != "own"}
    known = {name: values for name, values in given.items() if values is not None}
    return {**known, **{name: tuple(values) for name, values in settings.own.items()}}


def combinations(settings: SettingsPlan) -> dict[str, dict[str, str]]:
    """Each setting's name, as cells carry it, and its value on every axis."""
    whole = axes(settings)
    chosen = [dict(zip(whole, values, strict=True)) for values in product(*whole.values())]
    return {setting_name(settings, values): values for values in chosen}


def setting_name(
    settings: SettingsPlan, values: Mapping[str, str], without: Container[str] = ()
) -> str:
    """Name of a setting, made of its values; axes with a single value are left out.

    Args:
        without: further axes to leave out.
    """
    varied = [axis for axis, known in axes(settings).items() if len(known) > 1]
    return ", ".join(f"{axis} {values[axis]}" for axis in varied if axis not in without) or DEFAULT


def setting_names(settings: SettingsPlan) -> list[str]:
    """Names of all settings, in order; `DEFAULT` alone without axes."""
    return list(combinations(settings))
