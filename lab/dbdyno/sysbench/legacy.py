"""Tests of sysbench 0.4 and 0.5 as specs of the engine, and the tests behind names and paths.

The scripts of 0.5 work on tables of their own layout; 0.4's test `oltp` on the one table `sbtest`.
"""

from __future__ import annotations

import os

from dbdyno.sysbench.options.command_line import V1_1
from dbdyno.sysbench.options.table import (
    LEGACY,
    LEGACY_ONE_TABLE,
    LEGACY_OPTIONS,
    ONE_TABLE,
    SCRIPT,
    WITHOUT_DATABASE,
    check_is_supported,
    unsupported,
)
from dbdyno.sysbench.options.values import Values, fatal, whole
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

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


def is_legacy(test: str) -> bool:
    """True for tests of sysbench before 1.0."""
    return test == ONE_TABLE or test.startswith(LEGACY)


class Legacy(NamedTuple):
    """A legacy test with its options; bulk_insert has a table for each thread."""

    test: str
    own: Values
    threads: int

    def workload(self) -> dict[str, Any]:
        """The engine's workload; Refusal when an option's value cannot be used."""
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
# Published command lines have paths of other machines. Such a path means the built-in test unless
# there is a file with a text that no release has.

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
    stem = os.path.basename(typed).removesuffix(".lua")  # noqa: PTH119 - start-up time
    return stem in (*ours, COMMON, *SCRIPTS, *WITHOUT_DATABASE)


def passed_over(typed: str, ours: Sequence[str]) -> str | None:
    """The user's module that the scripts of this bare name would require; else None."""
    module = f"./{COMMON}.lua"
    is_required = typed in ours and typed != "bulk_insert" and os.path.isfile(module)  # noqa: PTH113
    return module if is_required and not _is_released(module) else None


def _is_of_legacy_scripts(folder: str) -> bool:
    return os.path.basename(folder) in ("db", "oltp_legacy")  # noqa: PTH119 - start-up time


def original_of(typed: str) -> str | None:
    """The original of a script's copy published under another name; else None, also for a file."""
    folder, base = os.path.split(typed)
    is_there = os.path.isfile(typed)  # noqa: PTH113 - start-up time
    if base not in COPIES or is_there or not _is_of_legacy_scripts(folder):
        return None
    return os.path.join(folder, COPIES[base])  # noqa: PTH118


def file_of_test(typed: str, ours: Sequence[str]) -> str | None:
    """The file run by sysbench: the path itself, or a module in the working directory."""
    places = [typed, f"./{typed}.lua"] if typed in (*ours, COMMON, *SCRIPTS) else [typed]
    return next((place for place in places if os.path.isfile(place)), None)  # noqa: PTH113


# Texts of sysbench's own scripts, of 1.0.20 as Debian's package installs it. A file of another
# release is run as it is, which is right too, and only takes more of the machine.

_DIGESTS = {
    "bulk_insert": "aa303c46d71f2200bec4fe143fe746f5d4f0aebd47023149ce3fe64b51635a68",
    COMMON: "710c3b38027668c83e46f3c0814dc7cfd67cc8c4012df6cab461e46d62b5996a",
    "oltp_delete": "0f66a3cc6547269619a8db8ea660b4764b26facdf8db234583d93d0a9d16c74b",
    "oltp_insert": "41e948b4b5104c38bc7d0623b22b7777e6f974b69217a291fe16281911c38584",
    "oltp_point_select": "a8df447935502a9cd6f9cbf11e91e1403afc14776af2d795e6c25790a786307b",
    "oltp_read_only": "2e85a293465743ec51947ea643b8e506c5e55a65004e178292c730fe59361917",
    "oltp_read_write": "7896a91b452a24e70ccf96809649c64172f73ae515531fa1c0cd2336d16de9b4",
    "oltp_update_index": "ee08292a90b002de58c5e0240a4c675462b568d88d5c0ddb56bc522220e663a5",
    "oltp_update_non_index": "9f802610b8f38d1b1390ad06cfccbc5f9b7462404968fb4039a3965474d7c65d",
    "oltp_write_only": "e06be71d5aacf5fbd96db871247e9097307cad5f255f8358aa2c9b801e1a729f",
    "select_random_points": "dea05906163359d8d460669ffa5eb6b75ff9528911c31e2b5e1527d1e52b431f",
    "select_random_ranges": "6bb9ee3b66f28ef241c000ace5f0d1fd11696da8d48fe5bd3ebaac71f00f85ab",
}


def _is_released(path: str) -> bool:
    """True if the file has the text of the released script of its name."""
    from hashlib import sha256  # noqa: PLC0415 - start-up time

    name = os.path.basename(path).removesuffix(".lua")  # noqa: PTH119 - start-up time
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return False
    if text.startswith(b"#!"):  # by which program it is run, in which packages differ
        text = text.partition(b"\n")[2]
    return sha256(text).hexdigest() == _DIGESTS.get(name)


def unreleased(path: str, search_path: str) -> str | None:
    """First file of a test with a text of its own: its script, or the required module.

    Args:
        search_path: Lua's path for the module; the script's own folder counts as well.
    """
    is_there = os.path.isfile
    files = [path]
    if os.path.basename(path) != "bulk_insert.lua":  # noqa: PTH119 - which requires nothing
        files.append(os.path.join(os.path.dirname(path), f"{COMMON}.lua"))  # noqa: PTH118, PTH120
        places = (place.replace("?", COMMON) for place in search_path.split(";"))
        files += [place for place in places if is_there(place)][:1]
    return next((file for file in files if is_there(file) and not _is_released(file)), None)
