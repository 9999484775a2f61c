"""What sysbench has and this version of dbdyno does not drive: refused by name, never ignored.

An option that is set to its default (``--pgsql-port=5432``) is accepted, so that command lines
which spell out their defaults go on working.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dbdyno.sysbench.options.refusal import Refusal, argument_error, fatal


class NotYet(NamedTuple):
    """An option's name, the values with which it does nothing, and what is missing."""

    name: str
    harmless: frozenset[str | None]
    missing: str


_POSTGRES = "the PostgreSQL driver"

OPTIONS = (
    NotYet("pgsql-host", frozenset({"localhost"}), _POSTGRES),
    NotYet("pgsql-port", frozenset({"5432"}), _POSTGRES),
    NotYet("pgsql-user", frozenset({"sbtest"}), _POSTGRES),
    NotYet("pgsql-password", frozenset({"", None}), _POSTGRES),
    NotYet("pgsql-db", frozenset({"sbtest"}), _POSTGRES),
    NotYet("pgsql-sslmode", frozenset({"prefer"}), _POSTGRES),
)
_BY_NAME = {option.name: option for option in OPTIONS}

TESTS = (
    *("bulk_insert", "oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only"),
    *("oltp_read_write", "oltp_update_index", "oltp_update_non_index", "oltp_write_only"),
    *("select_random_points", "select_random_ranges"),
    *("fileio", "cpu", "memory", "threads", "mutex"),
)


def refusal(what: str, missing: str) -> Refusal:
    """The message about something real that is not driven yet."""
    return argument_error(f"{what}: this version of dbdyno does not do this yet: {missing}")


def driven(typed: Mapping[str, str | None]) -> dict[str, str | None]:
    """The typed options without the harmless ones of this table.

    Raises:
        Refusal: an option asks for something that is not driven yet.
    """
    kept = {}
    for name, raw in typed.items():
        option = _BY_NAME.get(name)
        if option is None:
            kept[name] = raw
        elif raw not in option.harmless:
            raise refusal(f"--{name}", option.missing)
    return kept


def check_test(name: str, ours: Sequence[str]) -> None:
    """Refuses a test that is not one of `ours`: real ones and scripts as not yet, else as unknown.

    Raises:
        Refusal: `name` is not a workload of this version.
    """
    if name in ours:
        return
    there_are = ", ".join(ours)
    if name in TESTS:
        raise refusal(name, f"this test; there are {there_are}")
    if os.path.isfile(name):  # noqa: PTH113 - pathlib costs a fifth of the start-up time
        raise refusal(name, f"Lua scripts; built in are {there_are}")
    raise fatal(f"Cannot find benchmark '{name}': no such built-in test, file or module")
