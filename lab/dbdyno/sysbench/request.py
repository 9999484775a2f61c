"""What was asked for, in the words of the engine's specs."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from dbdyno.sysbench.endpoint import Address, address
from dbdyno.sysbench.general import General
from dbdyno.sysbench.not_yet import refusal
from dbdyno.sysbench.options import of_test
from dbdyno.sysbench.refusal import fatal
from dbdyno.sysbench.values import Values, is_whole_number_text

PASSWORD_VARIABLE = "MYSQL_PWD"  # noqa: S105 - the variable's name
BULK_INSERT = "bulk_insert"
PREPARE_SEED = 1
"""sysbench's prepare ignores ``--rand-seed`` and starts where libc's generator starts."""


class Request(NamedTuple):
    """One invocation: the test, and all options."""

    test: str
    general: General
    values: Values
    own: Values

    def address(self) -> Address:
        """Where the server is; Refusal when the options do not name one address."""
        return address(self.values)

    def run_spec(self) -> dict[str, Any]:
        """The engine's spec of a run.

        Raises:
            Refusal: an option's value cannot be used.
        """
        return {
            **self._login(),
            **self.general.spec(),
            **self._seeding(),
            "prepared": self._prepared(),
            "workload": {"name": self.test, "options": self._options()},
            "distribution": self.general.distribution,
            "ignore_errors": self._ignored_errors(),
        }

    def prepare_spec(self) -> dict[str, Any]:
        """The engine's spec of creating and filling the tables; Refusal as for `run_spec`."""
        options = self._options()
        if self.is_bulk_insert():
            return {
                **self.cleanup_spec(),
                "layout": BULK_INSERT,
                "table_size": 0,
                "create_secondary": False,
                "seed": PREPARE_SEED,
                "threads": 1,
            }
        # sysbench's own quirk: what oltp_insert is to number itself begins with empty tables.
        is_empty = self.test == "oltp_insert" and not options["auto_inc"]
        return {
            **self._login(),
            "tables": options["tables"],
            "table_size": 0 if is_empty else options["table_size"],
            "distribution": self.general.distribution,
            "seed": PREPARE_SEED,
            "threads": self.general.threads,
            "auto_inc": options["auto_inc"],
            "secondary": options["secondary"],
            "create_secondary": options["create_secondary"],
            "engine": options["mysql_storage_engine"],
        }

    def cleanup_spec(self) -> dict[str, Any]:
        """The engine's spec of dropping the tables; Refusal as for `run_spec`."""
        tables = self.general.threads if self.is_bulk_insert() else self._options()["tables"]
        return {**self._login(), "tables": tables}

    def is_bulk_insert(self) -> bool:
        """Whether each connection has a table of its own, which the run fills."""
        return self.test == BULK_INSERT

    def is_prepared(self) -> bool:
        """Whether the test's statements are prepared ones; Refusal as for `run_spec`."""
        return self.test not in (BULK_INSERT, "oltp_insert") and self._prepared()

    def _login(self) -> dict[str, Any]:
        driver = self.values.text("db-driver") or "mysql"
        if driver == "pgsql":
            raise refusal("--db-driver=pgsql", "the PostgreSQL driver")
        if driver != "mysql":
            raise fatal(f"invalid database driver name: '{driver}'")
        password = self.values.text("mysql-password") or os.environ.get(PASSWORD_VARIABLE, "")
        return {
            "endpoint": self.address().endpoint,
            "user": self.values.text("mysql-user"),
            "password": password,
            "database": self.values.text("mysql-db"),
        }

    def _seeding(self) -> dict[str, Any]:
        if self.general.seed is None:
            return {"seed": int.from_bytes(os.urandom(8)) >> 1, "seeding": "streams"}
        return {"seed": self.general.seed & 0xFFFF_FFFF, "seeding": "sysbench"}

    def _prepared(self) -> bool:
        mode = self.values.text("db-ps-mode")
        if mode not in ("auto", "disable"):
            raise fatal(f"Invalid value for db-ps-mode: {mode}")
        return mode == "auto"

    def _ignored_errors(self) -> list[int] | str:
        items = self.values.items("mysql-ignore-errors")
        if "all" in items:
            return "all"
        for item in items:
            if not (item.isascii() and item.isdigit() and len(item) <= 5 and int(item) < 65536):
                raise fatal(
                    f"Invalid value for --mysql-ignore-errors: '{item}'. It is no error code."
                )
        return [int(item) for item in items]

    def _options(self) -> dict[str, Any]:
        """The workload's options for the engine, which checks their ranges."""
        options: dict[str, Any] = {}
        for option in of_test(self.test):
            if option.kind == "BOOL":
                options[option.name] = self.own.flag(option.name)
            elif option.kind == "DOUBLE":
                options[option.name] = self._count(option.name)
            elif option.name != "pgsql_variant":
                options[option.name] = self.own.text(option.name)
        return options

    def _count(self, name: str) -> int:
        """A number of things; sysbench reads 1M as 1 and says nothing, which helps nobody."""
        raw, number = self.own.raw(name) or "", self.own.number(name)
        if not (is_whole_number_text(raw) and number.is_integer()):
            raise fatal(
                f"Invalid value for --{name}: '{raw}'. It must be a whole number; the numbers of"
                " a test take no suffix K, M or G"
            )
        return int(number)
