"""What was asked for, in the words of the engine's specs."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from dbdyno.sysbench import legacy
from dbdyno.sysbench.endpoint import Address, address
from dbdyno.sysbench.general import General
from dbdyno.sysbench.legacy import Legacy
from dbdyno.sysbench.names import COMMON
from dbdyno.sysbench.options.compat import PREWARM
from dbdyno.sysbench.options.not_yet import refusal
from dbdyno.sysbench.options.refusal import fatal
from dbdyno.sysbench.options.table import of_test
from dbdyno.sysbench.options.values import Values, whole
from dbdyno.sysbench.target import transport

PASSWORD_VARIABLE = "MYSQL_PWD"  # noqa: S105 - the variable's name
BULK_INSERT = "bulk_insert"
PREPARE_SEED = 1
"""sysbench's prepare ignores ``--rand-seed`` and starts where libc's generator starts."""

_NOT_OF_EVENTS = ("pgsql_variant", "create_table_options", "reconnect")


class Request(NamedTuple):
    """One invocation: the test under its recognised name, and all options."""

    test: str
    general: General
    values: Values
    own: Values

    def address(self) -> Address:
        """Where the servers are; Refusal when the options name none."""
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
            "workload": self._workload(),
            "distribution": self.general.distribution,
            "ignore_errors": self._ignored_errors(),
            **self._connecting(),
        }

    def prepare_spec(self) -> dict[str, Any]:
        """The engine's spec of creating and filling the tables; Refusal as for `run_spec`."""
        common = {"distribution": self.general.distribution, "seed": PREPARE_SEED}
        if legacy.is_legacy(self.test):
            return {**self._login(), **common, **self._legacy().prepare()}
        if self.is_bulk_insert():
            return {
                **self.cleanup_spec(),
                "layout": BULK_INSERT,
                "table_size": 0,
                "create_secondary": False,
                "seed": PREPARE_SEED,
                "threads": 1,
            }
        options = self._options()
        # sysbench's own quirk: what oltp_insert is to number itself begins with empty tables.
        is_empty = self.test == "oltp_insert" and not options["auto_inc"]
        table_options = self.own.text("create_table_options")
        return {
            **self._login(),
            **common,
            "tables": options["tables"],
            "table_size": 0 if is_empty else options["table_size"],
            "threads": self.general.threads,
            "auto_inc": options["auto_inc"],
            "secondary": options["secondary"],
            "create_secondary": options["create_secondary"],
            "engine": options["mysql_storage_engine"],
            **({"table_options": table_options} if table_options else {}),
        }

    def cleanup_spec(self) -> dict[str, Any]:
        """The engine's spec of dropping the tables; Refusal as for `run_spec`."""
        if legacy.is_legacy(self.test):
            return {**self._login(), **self._legacy().cleanup()}
        tables = self.general.threads if self.is_bulk_insert() else self._options()["tables"]
        return {**self._login(), "tables": tables}

    def is_bulk_insert(self) -> bool:
        """Whether each connection has a table of its own, which the run fills."""
        return self.test in (BULK_INSERT, legacy.BULK_INSERT)

    def is_load(self) -> bool:
        """Whether the command `run` creates and fills the tables (`parallel_prepare`)."""
        return self.test == legacy.LOAD_BY_RUN

    def has_prewarm(self) -> bool:
        """Whether sysbench can read the test's tables into memory."""
        return self.test != BULK_INSERT and not legacy.is_legacy(self.test)

    def is_prepared(self) -> bool:
        """Whether the test's statements are prepared ones; Refusal as for `run_spec`."""
        if legacy.is_legacy(self.test):
            return self._legacy().is_prepared() and self._prepared()
        return self.test not in (BULK_INSERT, "oltp_insert") and self._prepared()

    def is_dry(self) -> bool:
        """Whether there is to be no server."""
        return self.values.flag("mysql-dry-run")

    def notes(self) -> list[str]:
        """What the options mean here and not to sysbench; Refusal as for `run_spec`."""
        notes = [*transport(self.values).notes]
        if self.values.text("luajit-cmd"):
            notes.append("--luajit-cmd has no effect: there is no LuaJIT to be switched")
        return [*notes, *(self._legacy().notes() if legacy.is_legacy(self.test) else [])]

    def _legacy(self) -> Legacy:
        return Legacy(self.test, self.own, self.general.threads)

    def _workload(self) -> dict[str, Any]:
        if legacy.is_legacy(self.test):
            return self._legacy().workload()
        if self.test == COMMON:
            raise fatal(
                "`init' function failed: oltp_common has only prepare, cleanup and"
                f" {PREWARM[self.general.compat]}: run one of the oltp_* tests on its tables"
            )
        return {"name": self.test, "options": self._options()}

    def _connecting(self) -> dict[str, Any]:
        """What a run says about its connections, where it says anything."""
        if self.is_dry():
            return {"dry_run": True}
        fields: dict[str, Any] = {}
        if self.values.was_typed("thread-init-timeout"):
            limit_s = self.values.integer("thread-init-timeout")
            if limit_s < 1:
                raise fatal(f"Invalid value for --thread-init-timeout: {limit_s}.")
            fields["connect_timeout_s"] = limit_s
        if events := self._reconnects_every():
            fields["reconnect_every"] = events
        return fields

    def _reconnects_every(self) -> int:
        if legacy.is_legacy(self.test):
            return self._legacy().reconnects_every()
        return whole(self.own, "reconnect")

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
            **transport(self.values).fields,
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
            if option.name in _NOT_OF_EVENTS:
                continue
            if option.kind == "BOOL":
                options[option.name] = self.own.flag(option.name)
            elif option.kind == "DOUBLE":
                options[option.name] = whole(self.own, option.name)
            else:
                options[option.name] = self.own.text(option.name)
        return options
