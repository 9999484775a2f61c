"""The tests of sysbench 0.4 and 0.5 in the words of the engine's specs.

The scripts of 0.5 work on tables of their own layout; 0.4's test `oltp` on the one table `sbtest`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dbdyno.sysbench.options import legacy_options
from dbdyno.sysbench.options.not_yet import refusal
from dbdyno.sysbench.options.refusal import fatal
from dbdyno.sysbench.options.table import LEGACY, ONE_TABLE
from dbdyno.sysbench.options.values import Values, whole

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
    """Whether the test is one of before 1.0."""
    return test == ONE_TABLE or test.startswith(LEGACY)


class Legacy(NamedTuple):
    """A legacy test with its options.

    Attributes:
        threads: connections; bulk_insert has a table for each.
    """

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
        for name, engine_s in _OTHERS.items():
            options[engine_s] = whole(self.own, name)
        if options["read_only"] and options["write_only"]:
            raise fatal("--oltp-read-only and --oltp-write-only are mutually exclusive")
        options["table_locks"] = self._locks_tables()
        if self._is_one():
            self._check_one()
            options["one_table"] = True
        return {"name": self._workload_name(), "options": options}

    def prepare(self) -> dict[str, Any]:
        """Which tables to create, and with how many rows."""
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
        """Which tables to drop."""
        if self.test == BULK_INSERT:
            return {"tables": self.threads, "layout": "bulk_insert", "first_table": 0}
        layout = "legacy_one" if self._is_one() else "legacy"
        return {"tables": self._tables(), "layout": layout}

    def is_prepared(self) -> bool:
        """Whether `--db-ps-mode` matters: 0.5's other scripts send text in any mode."""
        return self._is_one() or self.test in _RANDOM

    def reconnects_every(self) -> int:
        """Events between two connections of 0.4's test; 0 for one connection."""
        mode = self.own.text("oltp-reconnect-mode")
        if mode not in ("session", "transaction"):
            raise refusal(f"--oltp-reconnect-mode={mode}", "connecting again within an event")
        return int(mode == "transaction" or self.own.flag("oltp-reconnect"))

    def notes(self) -> list[str]:
        """Where the options say more to dbdyno than to sysbench's scripts."""
        notes = []
        for option in legacy_options.OPTIONS:
            raw = self.own.raw(option.name)
            if not self.own.was_typed(option.name):
                continue
            if option.kind == "BOOL" and option in legacy_options.SCRIPT and not self._is_one():
                shown = "on" if self.own.flag(option.name) else "off"
                if raw != shown:
                    notes.append(
                        f"--{option.name} is read as {shown}; sysbench's script knows no value but"
                        f" =on and =off"
                    )
                elif (option.name, raw) == ("oltp-secondary", "off"):
                    notes.append("--oltp-secondary=off is read as off, sysbench's script as on")
            elif option in legacy_options.ONE_TABLE and not self._is_one():
                notes.append(f"--{option.name} is of sysbench 0.4's --test=oltp: no effect here")
            elif option.name == "oltp-dist-type" and not self._is_one():
                notes.append("--oltp-dist-type is read as --rand-type; sysbench 1.0 ignores it")
        return notes

    def _is_one(self) -> bool:
        return self.test == ONE_TABLE

    def _tables(self) -> int:
        if self.test in _RANDOM:
            return 1
        tables = whole(self.own, "oltp-tables-count")
        if self._is_one() and tables != 1:
            raise fatal("--test=oltp is sysbench 0.4's and has one table: --oltp-tables-count is 1")
        return tables

    def _locks_tables(self) -> bool:
        is_myisam = self.own.text("mysql-table-engine") == "myisam"
        return is_myisam or (self._is_one() and self.own.text("mysql-engine-trx") == "no")

    def _workload_name(self) -> str:
        if not self._is_one():
            return self.test
        mode = self.own.text("oltp-test-mode")
        if mode == "sp":
            raise refusal("--oltp-test-mode=sp", "calling a stored procedure")
        if mode != "nontrx":
            return self._chosen(mode, _MODES, "oltp-test-mode")
        return self._chosen(self.own.text("oltp-nontrx-mode"), _NONTRX, "oltp-nontrx-mode")

    def _chosen(self, mode: str, known: dict[str, str], option: str) -> str:
        if mode not in known:
            raise fatal(f"Invalid value for --{option}: '{mode}'.")
        return known[mode]

    def _check_one(self) -> None:
        if (name := self.own.text("oltp-table-name")) != "sbtest":
            raise refusal(f"--oltp-table-name={name}", "a table of another name than sbtest")
        if self.own.number("oltp-user-delay-min") or self.own.number("oltp-user-delay-max"):
            raise refusal("--oltp-user-delay-*", "resting before each statement")
