"""The settings axis: what is varied in the same way on every system, by names of the field.

An axis is a name and the values it takes; a cell's setting is one value of each axis. What a value
means in the configuration of one server is not said here (`servers.bundles` does): a plan says
``durability: double-1``, and MySQL 5.6 and MariaDB 11.8 get the keys they understand.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated

from pydantic import Field

from dbdyno.measurement import Noun

OptionValue = bool | int | float | str
DEFAULT = "default"
"""Name of the setting where nothing is varied."""

Values = Annotated[tuple[str, ...], Field(min_length=1)]


class SettingsPlan(Noun):
    """The axes; one that is not given stays as the systems have it.

    Attributes:
        durability: ``double-1`` (each commit is on disk, in redo and binary log) or ``0/2``.
        buffer_pool: bytes such as ``1G``, or a share of the loaded dataset such as ``25%``.
        redo_log: bytes of redo space in all.
        thread_pool, prepared_statements, binlog: ``on`` or ``off``.
        own: further axes, by name: the keys of each named value, verbatim.
    """

    durability: Values | None = None
    buffer_pool: Values | None = None
    redo_log: Values | None = None
    thread_pool: Values | None = None
    prepared_statements: Values | None = None
    binlog: Values | None = None
    own: dict[str, dict[str, dict[str, OptionValue]]] = {}


def axes(settings: SettingsPlan) -> dict[str, tuple[str, ...]]:
    """The axes that are varied, in their order, and the names of their values."""
    given = {name: getattr(settings, name) for name in SettingsPlan.model_fields if name != "own"}
    known = {name: values for name, values in given.items() if values is not None}
    return {**known, **{name: tuple(values) for name, values in settings.own.items()}}


def combinations(settings: SettingsPlan) -> dict[str, dict[str, str]]:
    """Each setting's name, as cells carry it, and its value on every axis."""
    varied = axes(settings)
    chosen = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    return {_name(values): values for values in chosen}


def setting_names(settings: SettingsPlan) -> list[str]:
    """The names of all settings, in order; `DEFAULT` alone where nothing is varied."""
    return list(combinations(settings))


def _name(values: dict[str, str]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in values.items()) or DEFAULT
