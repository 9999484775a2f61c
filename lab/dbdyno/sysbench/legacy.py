"""Tests of sysbench 0.4 and 0.5 as specs of the engine, and the tests behind names and paths.

The scripts of 0.5 work on tables of their own layout; 0.4's test `oltp` on the one table `sbtest`.
"""

from __future__ import annotations

import os

from dbdyno import _engine, shipped
from dbdyno.sysbench.options.command_line import V1_1
from dbdyno.sysbench.options.table import (
    LEGACY,
    LEGACY_ONE_TABLE,
    LEGACY_OPTIONS,
    ONE_TABLE,
    SCRIPT,
    check_is_supported,
    unsupported,
)
from dbdyno.sysbench.options.values import Values, fatal, whole
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_is_there = os.path.isfile  # pathlib costs start-up time
LOAD_BY_RUN = LEGACY + "parallel_prepare"
BULK_INSERT = LEGACY + "bulk_insert"
_RANDOM = (LEGACY + "select_random_points", LEGACY + "select_random_ranges")

_MODES = {"complex": LEGACY + "oltp", "simple": LEGACY + "oltp_simple"}
_NONTRX = {
    "select": LEGACY + "select",
    "update_key": LEGACY + "update_index",
    "update_nokey": LEGACY + "update_non_index",
    "insert": LEGACY + "insert",
    "delete": LEGACY + "delete",
}
_COUNTS = (
    *("table-size", "range-size", "point-selects", "simple-ranges", "sum-ranges", "order-ranges"),
    *("distinct-ranges", "index-updates", "non-index-updates", "delete-inserts"),
)
_SWITCHES = ("range-selects", "read-only", "write-only", "skip-trx", "auto-inc")
_OTHERS = {
    "random-points": "random_points",
    "number-of-ranges": "number_of_ranges",
    "random-ranges-delta": "delta",
}


class Legacy(NamedTuple):
    """A legacy test with its options; bulk_insert has a table for each thread."""

    test: str
    own: Values
    threads: int

    def workload(self) -> dict[str, Any]:
        """The engine's workload; Refusal when an option's value cannot be used."""
        self._check_variant()
        options: dict[str, Any] = {"tables": self._tables()}
        for name in _COUNTS:
            options[name.replace("-", "_")] = whole(self.own, f"oltp-{name}")
        for name in _SWITCHES:
            options[name.replace("-", "_")] = self.own.flag(f"oltp-{name}")
        for name, engine_name in _OTHERS.items():
            options[engine_name] = whole(self.own, name)
        if options["read_only"] and options["write_only"]:
            raise fatal("--oltp-read-only and --oltp-write-only are mutually exclusive")
        options["table_locks"] = self.own.text("mysql-table-engine") == "myisam"
        if self._is_one_table():
            if (name := self.own.text("oltp-table-name")) != "sbtest":
                raise unsupported(
                    f"--oltp-table-name={name}", "a table of another name than sbtest"
                )
            if self.own.number("oltp-user-delay-min") or self.own.number("oltp-user-delay-max"):
                raise unsupported("--oltp-user-delay-*", "resting before each statement")
            options["table_locks"] |= self.own.text("mysql-engine-trx") == "no"
            options["one_table"] = True
        return {"name": self._workload_name(), "options": options}

    def prepare(self) -> dict[str, Any]:
        """The engine's spec of the tables to create and their rows."""
        self._check_variant()
        if self.test == BULK_INSERT:
            return {**self.cleanup(), "table_size": 0, "create_secondary": False, "threads": 1}
        fields = {
            **self.cleanup(),
            "table_size": whole(self.own, "oltp-table-size"),
            "threads": self.threads,
            "auto_inc": self.own.flag("oltp-auto-inc"),
            "secondary": self.own.flag("oltp-secondary"),
            "create_secondary": self.own.flag("oltp-create-secondary"),
            "engine": self.own.text("mysql-table-engine") or "innodb",
            "max_rows": whole(self.own, "myisam-max-rows"),
        }
        options = self.own.text("mysql-table-options")
        return {**fields, "table_options": options} if options else fields

    def cleanup(self) -> dict[str, Any]:
        """The engine's spec of the tables to drop."""
        if self.test == BULK_INSERT:
            return {"tables": self.threads, "layout": "bulk_insert", "first_table": 0}
        layout = "legacy_one" if self._is_one_table() else "legacy"
        return {"tables": self._tables(), "layout": layout}

    def is_prepared(self) -> bool:
        """True if `--db-ps-mode` matters: 0.5's other scripts send text in any mode."""
        return self._is_one_table() or self.test in _RANDOM

    def reconnects_every(self) -> int:
        """Events between two connections of 0.4's test; 0 for a single connection."""
        if not self._is_one_table():
            return 0
        mode = self.own.text("oltp-reconnect-mode")
        if mode not in ("session", "transaction"):
            raise unsupported(f"--oltp-reconnect-mode={mode}", "connecting again within an event")
        return int(mode == "transaction" or self.own.flag("oltp-reconnect"))

    def notes(self) -> list[str]:
        """Notes on options with another meaning than in sysbench's scripts."""
        notes = []
        for option in LEGACY_OPTIONS:
            raw = self.own.raw(option.name)
            if not self.own.was_typed(option.name):
                continue
            if option.kind == "BOOL" and option in SCRIPT and not self._is_one_table():
                shown = "on" if self.own.flag(option.name) else "off"
                if raw != shown:
                    notes.append(
                        f"--{option.name} is read as {shown}; sysbench's script knows no value but"
                        f" =on and =off"
                    )
                elif (option.name, raw) == ("oltp-secondary", "off"):
                    notes.append("--oltp-secondary=off is read as off, sysbench's script as on")
            elif option in LEGACY_ONE_TABLE and not self._is_one_table():
                notes.append(f"--{option.name} is of sysbench 0.4's --test=oltp: no effect here")
            elif option.name == "oltp-dist-type" and not self._is_one_table():
                notes.append("--oltp-dist-type is read as --rand-type; sysbench 1.0 ignores it")
        return notes

    def _check_variant(self) -> None:
        if variant := self.own.text("pgsql-variant"):
            raise unsupported(f"--pgsql-variant={variant}", "tables of Redshift")

    def _is_one_table(self) -> bool:
        return self.test == ONE_TABLE

    def _tables(self) -> int:
        if self.test in _RANDOM:
            return 1
        tables = whole(self.own, "oltp-tables-count")
        if self._is_one_table() and tables != 1:
            raise fatal("--test=oltp is sysbench 0.4's and has one table: --oltp-tables-count is 1")
        return tables

    def _workload_name(self) -> str:
        if not self._is_one_table():
            return self.test
        mode = self.own.text("oltp-test-mode")
        if mode == "sp":
            raise unsupported("--oltp-test-mode=sp", "calling a stored procedure")
        if mode != "nontrx":
            return self._chosen(mode, _MODES, "oltp-test-mode")
        return self._chosen(self.own.text("oltp-nontrx-mode"), _NONTRX, "oltp-nontrx-mode")

    def _chosen(self, mode: str, known: dict[str, str], option: str) -> str:
        if mode not in known:
            raise fatal(f"Invalid value for --{option}: '{mode}'.")
        return known[mode]


# Which test is meant: a built-in one, by its name or by the path under which sysbench ships it.
# Published command lines have paths of other machines.

COMMON = "oltp_common"
"""The module that sysbench 1.0's tests share; its prepare and cleanup are theirs."""

SCRIPTS = (
    *("oltp", "oltp_simple", "select", "insert", "delete", "update_index", "update_non_index"),
    *("bulk_insert", "parallel_prepare", "select_random_points", "select_random_ranges"),
)
"""The scripts of sysbench 0.5, which 1.0 has under tests/include/oltp_legacy."""

COPIES = {"oltp.lua.bak": "oltp.lua", "oltp_new.lua": "oltp.lua"}
"""Names under which publications ran a copy of a script that they do not show."""


def name_of_test(typed: str, *, is_option: bool, version: str, ours: Sequence[str]) -> str:
    """The test's own name: from `ours`, `COMMON`, `ONE_TABLE`, or `LEGACY` and a script's name.

    Args:
        is_option: typed as ``--test=``, which takes bare names of scripts.

    Raises:
        Refusal: it is no test of ours.
    """
    folder, base = os.path.split(typed)
    stem = base.removesuffix(".lua")
    is_bare = typed == stem
    if stem in (*ours, COMMON) and not _is_of_legacy_scripts(folder):
        return stem
    if stem not in SCRIPTS or (is_bare and not is_option):
        check_is_supported(typed, ours)
    if version == V1_1:
        too_old = "a legacy test of sysbench 1.0 and before: leave --compat=1.1 out"
        raise fatal(f"{typed}: {too_old}")
    return ONE_TABLE if typed == ONE_TABLE else LEGACY + stem


def is_name_of_test(typed: str, ours: Sequence[str]) -> bool:
    """True for names of sysbench's own scripts."""
    return _stem(typed) in (*ours, COMMON, *SCRIPTS)


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".lua")  # noqa: PTH119 - start-up time


def _is_of_legacy_scripts(folder: str) -> bool:
    return os.path.basename(folder) in ("db", "oltp_legacy")  # noqa: PTH119 - start-up time


def original_of(typed: str) -> str | None:
    """The original of a script's copy published under another name; else None, also for a file."""
    folder, base = os.path.split(typed)
    if base not in COPIES or _is_there(typed) or not _is_of_legacy_scripts(folder):
        return None
    return os.path.join(folder, COPIES[base])  # noqa: PTH118


# A test's file, as sysbench looks for it: the path as typed, else a module on Lua's search path. It
# is run itself unless its code is that of the built-in test, whatever its folder is called.


def search_path(script: str | None = None) -> str:
    """Lua's search path for modules; behind sysbench's own places, the folder of the script."""
    own = ["./?.lua", "./?/init.lua", "./src/lua/?.lua"]
    folder = os.path.dirname(script or "")  # noqa: PTH120 - start-up time
    path = _paths("LUA_PATH", ["?.lua", "?/init.lua"], own, "share")
    return f"{path.rstrip(';')};{folder}/?.lua" if folder else path


def library_path() -> str:
    """Lua's search path for compiled modules."""
    return _paths("LUA_CPATH", ["?.so"], ["./?.so"], "lib")


def _paths(variable: str, names: Sequence[str], own: Sequence[str], kind: str) -> str:
    """A search path by sysbench's rules; ``;;`` in the variable stands for the default."""
    rocks = f"{os.environ.get('HOME', '')}/.luarocks/{kind}/lua"
    folders = (f"{rocks}/5.1", rocks, f"/usr/local/{kind}/lua/5.1", f"/usr/{kind}/lua/5.1")
    paths = [*own, *(f"{folder}/{name}" for folder in folders for name in names)]
    default = ";".join([*paths, f"/usr/{kind}/sysbench/{names[0]}"]) + ";"
    typed = os.environ.get(variable)
    return default if typed is None else typed.replace(";;", f";{default}").lstrip(";")


def file_of_test(typed: str) -> str | None:
    """The file run for a test's name: the path itself, a module as in sysbench, or a script of
    dbdyno's own."""
    is_ours = typed.startswith(f"{shipped.WORKLOADS}/")  # another may have a tpcc.lua too
    path = shipped.path_of(typed, shipped.WORKLOADS) if is_ours else typed
    return path if _is_there(path) else _module(typed, search_path())


def _module(name: str, path: str) -> str | None:
    places = (place.replace("?", name.replace(".", "/")) for place in path.split(";"))
    return next((place for place in places if _is_there(place)), None)


def changed_file(typed: str, path: str | None, ours: Sequence[str]) -> str | None:
    """First file of a test with code of its own: its script, or the module it requires."""
    name = _stem(typed)
    folder = os.path.dirname(typed)  # noqa: PTH120 - start-up time
    if path and not (name in (*ours, COMMON) and _engine.is_released(name, path)):
        return path
    if name not in ours or name == "bulk_insert" or (not path and _is_of_legacy_scripts(folder)):
        return None  # they require no module, or one of their own
    module = _module(COMMON, search_path(path))
    return None if module is None or _engine.is_released(COMMON, module) else module


def difference(typed: str, changed: str, ours: Sequence[str]) -> str:
    """Reason for running a file with the name of a built-in test itself."""
    folder = os.path.dirname(changed)  # noqa: PTH120 - start-up time
    if _stem(typed) in (*ours, COMMON) and not _is_of_legacy_scripts(folder):
        return f"the code of {changed} is not that of sysbench 1.0.20 or 1.1"
    return "a script of before sysbench 1.0 is replaced by a built-in test only where it is missing"


def passed_over(path: str) -> str | None:
    """A note on a changed module beside a script, where Lua finds another one first; else None."""
    folder, base = os.path.split(path)
    beside = os.path.join(folder, f"{COMMON}.lua")  # noqa: PTH118 - start-up time
    if base in ("bulk_insert.lua", f"{COMMON}.lua") or not _is_there(beside):
        return None
    module = _module(COMMON, search_path(path))
    is_first = module is None or os.path.samefile(beside, module)  # noqa: PTH121 - start-up time
    if is_first or _engine.is_released(COMMON, beside):
        return None
    return f"{beside} is not loaded: {module} comes first, as in sysbench; set LUA_PATH"
