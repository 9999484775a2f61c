"""What sysbench has and this version of dbdyno does not drive: refused by name, never ignored.

An option that is set to what does nothing anyway (``--rate=0``, ``--mysql-ssl=off``) is accepted,
so that command lines which spell out their defaults go on working.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dbdyno.sysbench.refusal import Refusal, argument_error, fatal


class NotYet(NamedTuple):
    """An option's name, the values with which it does nothing, and what is missing."""

    name: str
    harmless: frozenset[str | None]
    missing: str


_OFF: frozenset[str | None] = frozenset({"off", "false", "0"})
_ZERO: frozenset[str | None] = frozenset({"0", "", None})
_UNSET: frozenset[str | None] = frozenset({"", None})
_NONE: frozenset[str | None] = frozenset()

_POSTGRES = "the PostgreSQL driver"
_LEGACY = "the legacy names of options; write {} instead"

OPTIONS = (
    NotYet("config-file", _NONE, "options from a file"),
    NotYet("luajit-cmd", _UNSET, "Lua scripts (sysbench 1.1)"),
    NotYet("thread-init-timeout", _NONE, "a limit for logging in (sysbench 1.1)"),
    NotYet("tx-rate", _ZERO, "load at a fixed rate"),
    NotYet("max-requests", _NONE, _LEGACY.format("--events")),
    NotYet("max-time", _NONE, _LEGACY.format("--time")),
    NotYet("num-threads", _NONE, _LEGACY.format("--threads")),
    NotYet("test", _NONE, "the legacy way to name a test; write the name without --test="),
    NotYet("db-debug", _OFF, "debug output"),
    NotYet("mysql-ssl", _OFF | {"disabled"}, "TLS set by these options"),
    NotYet("mysql-ssl-cipher", _UNSET, "TLS set by these options"),
    NotYet("mysql-ssl-key", _UNSET, "TLS set by these options (sysbench 1.1)"),
    NotYet("mysql-ssl-ca", _UNSET, "TLS set by these options (sysbench 1.1)"),
    NotYet("mysql-ssl-cert", _UNSET, "TLS set by these options (sysbench 1.1)"),
    NotYet("mysql-compression", _OFF, "the compressed protocol"),
    NotYet("mysql-compression-algorithms", _NONE, "the compressed protocol (sysbench 1.1)"),
    NotYet("mysql-debug", _OFF, "debug output"),
    NotYet("mysql-dry-run", _OFF, "running without a server"),
    NotYet("pgsql-host", _NONE, _POSTGRES),
    NotYet("pgsql-port", _NONE, _POSTGRES),
    NotYet("pgsql-user", _NONE, _POSTGRES),
    NotYet("pgsql-password", _NONE, _POSTGRES),
    NotYet("pgsql-db", _NONE, _POSTGRES),
    NotYet("pgsql-sslmode", _NONE, _POSTGRES),
    NotYet("reconnect", _ZERO, "connecting again after every N events (sysbench 1.1)"),
    NotYet("create-table-options", _UNSET, "options for CREATE TABLE (sysbench 1.1)"),
)
_BY_NAME = {option.name: option for option in OPTIONS}

TESTS = (
    *("bulk_insert", "oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only"),
    *("oltp_read_write", "oltp_update_index", "oltp_update_non_index", "oltp_write_only"),
    *("select_random_points", "select_random_ranges"),
    *("fileio", "cpu", "memory", "threads", "mutex"),
)
COMMANDS = ("prewarm", "warmup")


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
