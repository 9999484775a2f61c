"""A command line as specs of the engine: `Request`, its general options, rate and pauses."""

from __future__ import annotations

import os
import time

from dbdyno.sysbench import legacy
from dbdyno.sysbench.legacy import COMMON, Legacy
from dbdyno.sysbench.options.command_line import PREWARM
from dbdyno.sysbench.options.effects import notes_without_effect
from dbdyno.sysbench.options.output import OutputOptions
from dbdyno.sysbench.options.table import is_legacy, of_test
from dbdyno.sysbench.options.values import Refusal, Values, fatal, whole
from dbdyno.sysbench.target import (
    PGSQL,
    Address,
    address,
    driver,
    port_notes,
    postgres_address,
    postgres_password,
    postgres_transport,
    transport,
)
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PAUSE = rf"(?a)({_NUMBER})(?:-({_NUMBER}))?"


class Pace(NamedTuple):
    """Timing of events: a rate, pauses, or neither, which is a closed loop.

    With a rate every event is due at some moment, and its latency counts from there. sysbench
    counts from the moment its generator thread got round to it.

    Attributes:
        rate_per_s: events due per second over all connections; 0 for a closed loop.
        arrival: ``poisson`` (random gaps) or ``uniform`` (equal gaps).
        think_time_ms: least and most a connection rests after an event; (0, 0) for no rest.
    """

    rate_per_s: int
    arrival: str
    think_time_ms: tuple[float, float]

    @classmethod
    def of(cls, values: Values) -> Pace:
        """Read and check the options; Refusal if malformed, or without the rate they need."""
        rate_per_s = values.integer("rate")
        if rate_per_s < 0:
            raise fatal(f"Invalid value for --rate: {rate_per_s}. It must be 0 or more.")
        arrival = values.text("arrival")
        if arrival not in ("poisson", "uniform"):
            raise fatal(f"Invalid value for --arrival: '{arrival}'. It must be poisson or uniform.")
        if values.was_typed("arrival") and not rate_per_s:
            raise fatal("--arrival says how the events of a rate follow; give --rate=N with it")
        return cls(rate_per_s, arrival, _think_time_ms(values.text("think-time")))

    def is_set(self) -> bool:
        """True with a rate or pauses; False for a closed loop."""
        return self.rate_per_s > 0 or self.think_time_ms[1] > 0

    def spec(self) -> dict[str, Any]:
        """The engine's fields; empty for a closed loop."""
        spec: dict[str, Any] = {}
        if self.rate_per_s:
            spec |= {"rate_per_s": self.rate_per_s, "arrival": self.arrival}
        if self.think_time_ms[1]:
            spec["think_time_ms"] = list(self.think_time_ms)
        return spec


def _think_time_ms(text: str) -> tuple[float, float]:
    if text in ("", "0"):
        return (0.0, 0.0)
    import re  # noqa: PLC0415 - start-up time without this option

    match = re.fullmatch(_PAUSE, text)
    least = float(match[1]) if match else 0.0
    most = float(match[2]) if match and match[2] else least
    if match is None or most < least:
        raise fatal(
            f"Invalid value for --think-time: '{text}'. It must be milliseconds, one number or two"
            " such as 5-20, the lesser first."
        )
    return (least, most)


VERBOSITY_MAX = 5
_GRACE = r"(?a)([0-9]{1,9})(%?)"


class General(NamedTuple):
    """Options of every test, checked before anything begins.

    Attributes:
        compat: version of sysbench for the printed texts, "1.0" or "1.1".
        warmup_s: seconds of load before anything is counted.
        forced_shutdown_s: time for events in flight after the time limit; None for no limit.
        seed: None for a seed from the system's entropy.
        distribution: as in the engine's spec.
    """

    compat: str
    threads: int
    events: int
    time_s: int
    warmup_s: int
    forced_shutdown_s: float | None
    pace: Pace
    output: OutputOptions
    verbosity: int
    debug: bool
    validate: bool
    seed: int | None
    distribution: dict[str, Any]

    @classmethod
    def of(cls, values: Values) -> General:
        """Read and check the options; Refusal if a number is malformed or out of its range."""
        verbosity = values.integer("verbosity")
        if not 0 <= verbosity <= VERBOSITY_MAX:
            raise Refusal(f"Invalid value for verbosity: {verbosity}")
        if values.size("thread-stack-size") <= 0:
            raise Refusal("FATAL: Invalid value for thread-stack-size: 0.", "")
        debug, time_s = values.flag("debug"), _at_least(values, "time", 0)
        return cls(
            compat=values.text("compat"),
            threads=_at_least(values, "threads", 1),
            events=_at_least(values, "events", 0),
            time_s=time_s,
            warmup_s=_at_least(values, "warmup-time", 0),
            forced_shutdown_s=_forced_shutdown_s(values, time_s),
            pace=Pace.of(values),
            output=OutputOptions.of(values),
            verbosity=VERBOSITY_MAX if debug or values.flag("mysql-debug") else verbosity,
            debug=debug,
            validate=values.flag("validate"),
            seed=values.integer("rand-seed") or None,
            distribution=distribution(values, values.text("rand-type")),
        )

    def spec(self) -> dict[str, Any]:
        """The engine's fields of when and how long, and of live intervals."""
        spec: dict[str, Any] = {
            "connections": self.threads,
            "window_s": self.time_s,
            "events": self.events,
            "tell_begin": True,
            "drain_s": 0,
        }
        if self.warmup_s:
            spec["warmup_s"] = self.warmup_s
        if self.forced_shutdown_s is not None:
            spec["drain_s"] = max(self.forced_shutdown_s, 0.001)  # 0 is no limit to the engine
        return {**spec, **self.pace.spec(), **self.output.spec()}


def _forced_shutdown_s(values: Values, time_s: int) -> float | None:
    """``off``, seconds, or a percentage of the time limit; without a value 5 %."""
    if not values.was_typed("forced-shutdown") or values.text("forced-shutdown").lower() == "off":
        return None
    import re  # noqa: PLC0415 - start-up time without this option

    text = values.text("forced-shutdown") or "5%"
    match = re.fullmatch(_GRACE, text)
    if match is None:
        raise fatal(f"Invalid value for --forced-shutdown: '{text}'")
    if not time_s:
        return None
    return time_s * int(match[1]) / 100 if match[2] else int(match[1])


def _at_least(values: Values, name: str, least: int) -> int:
    number = values.integer(name)
    if number < least:
        # sysbench's line, with the blank one that follows it.
        raise Refusal(f"FATAL: Invalid value for --{name}: {number}.", "")
    return number


def distribution(values: Values, name: str) -> dict[str, Any]:
    """A distribution with its parameters, as in the engine's spec; Refusal if it cannot be used."""
    parameters: dict[str, dict[str, Any]] = {
        "uniform": {},
        "gaussian": {"iterations": values.integer("rand-spec-iter")},
        "special": {
            "iterations": values.integer("rand-spec-iter"),
            "percent": values.integer("rand-spec-pct"),
            "result": values.integer("rand-spec-res"),
        },
        "pareto": {"h": values.number("rand-pareto-h")},
        "zipfian": {"exponent": values.number("rand-zipfian-exp")},
    }
    if name not in parameters:
        raise fatal(f"Invalid random numbers distribution: {name}.")
    for parameter, value in parameters[name].items():
        if not 0 <= value < float("inf"):
            raise fatal(f"Invalid value for the {name} distribution's {parameter}: {value}.")
    return {"name": name, **parameters[name]}


IGNORED_BY_POSTGRES = ("40P01", "40001", "23505")
"""Deadlock, failed serialization, duplicate key: sysbench has no option for these."""
BULK_INSERT = "bulk_insert"
PREPARE_SEED = 1
"""sysbench's prepare ignores ``--rand-seed`` and starts where libc's generator starts."""

_NOT_OF_EVENTS = ("pgsql_variant", "create_table_options", "reconnect")


class Request(NamedTuple):
    """A test to run or prepare, with its options.

    Attributes:
        test: the test's own name, however it was typed.
        values: the options of every test.
        own: the options of this test.
        script: the engine's spec of a Lua script; None for a built-in test.
    """

    test: str
    general: General
    values: Values
    own: Values
    script: Mapping[str, Any] | None = None

    def address(self) -> Address:
        """Addresses of the servers; Refusal if the options have none."""
        return (postgres_address if self.driver() == PGSQL else address)(self.values)

    def driver(self) -> str:
        """`mysql` or `pgsql`; Refusal for any other."""
        return driver(self.values)

    def run_spec(self) -> dict[str, Any]:
        """The engine's spec of a run; Refusal if an option's value cannot be used."""
        spec = {
            **self.database_spec(),
            **self.general.spec(),
            **self._seeding(),
            "distribution": self.general.distribution,
        }
        if self.script is not None:
            return {**spec, "workload": {"name": "script"}, "script": self.script}
        if is_legacy(self.test):
            every = self._legacy().reconnects_every()
        else:
            every = whole(self.own, "reconnect")
        if every and not self.is_dry():
            spec["reconnect_every"] = every
        return {**spec, "workload": self._workload()}

    def database_spec(self) -> dict[str, Any]:
        """The engine's spec of a script's connections; Refusal as for `run_spec`."""
        return {
            **self._login(),
            "prepared": self._prepared(),
            "ignore_errors": self._ignored_errors(),
            **self._connecting(),
        }

    def prepare_spec(self) -> dict[str, Any]:
        """The engine's spec of creating and filling the tables; Refusal as for `run_spec`."""
        common = {"distribution": self.general.distribution, "seed": PREPARE_SEED}
        if is_legacy(self.test):
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
        if is_legacy(self.test):
            return {**self._login(), **self._legacy().cleanup()}
        tables = self.general.threads if self.is_bulk_insert() else self._options()["tables"]
        return {**self._login(), "tables": tables}

    def is_bulk_insert(self) -> bool:
        """True if each connection has a table of its own, filled by the run."""
        return self.test in (BULK_INSERT, legacy.BULK_INSERT)

    def is_load(self) -> bool:
        """True if the command `run` creates and fills the tables (`parallel_prepare`)."""
        return self.test == legacy.LOAD_BY_RUN

    def has_prewarm(self) -> bool:
        """True if sysbench can read the test's tables into memory."""
        return self.test != BULK_INSERT and not is_legacy(self.test)

    def is_prepared(self) -> bool:
        """True if the test uses prepared statements; Refusal as for `run_spec`."""
        if is_legacy(self.test):
            return self._legacy().is_prepared() and self._prepared()
        return self.test not in (BULK_INSERT, "oltp_insert") and self._prepared()

    def is_dry(self) -> bool:
        return self.values.flag("mysql-dry-run")

    def notes(self, command: str | None) -> list[str]:
        """Notes on options without effect, or with another meaning than in sysbench.

        Raises:
            Refusal: as for `run_spec`.
        """
        notes = [*transport(self.values).notes, *port_notes(self.values)]
        test = None if self.script is not None else self.test
        if test is not None and self.values.text("luajit-cmd"):
            notes.append("--luajit-cmd has no effect: there is no LuaJIT to be switched")
        if test is not None and is_legacy(test):
            notes += self._legacy().notes()
        return [*notes, *notes_without_effect(self.values, self.own, test, command)]

    def _legacy(self) -> Legacy:
        return Legacy(self.test, self.own, self.general.threads)

    def _workload(self) -> dict[str, Any]:
        if is_legacy(self.test):
            return self._legacy().workload()
        if self.test == COMMON:
            raise fatal(
                "`init' function failed: oltp_common has only prepare, cleanup and"
                f" {PREWARM[self.general.compat]}: run one of the oltp_* tests on its tables"
            )
        return {"name": self.test, "options": self._options()}

    def _connecting(self) -> dict[str, Any]:
        """Fields about connections that differ from the engine's defaults."""
        if self.is_dry():
            return {"dry_run": True}
        fields: dict[str, Any] = {}
        if self.values.was_typed("thread-init-timeout"):
            limit_s = self.values.integer("thread-init-timeout")
            if limit_s < 1:
                raise fatal(f"Invalid value for --thread-init-timeout: {limit_s}.")
            fields["connect_timeout_s"] = limit_s
        return fields

    def _login(self) -> dict[str, Any]:
        """Address and account; a typed password wins over others even if empty."""
        values, kind = self.values, self.driver()
        if values.was_typed(f"{kind}-password"):
            password = values.text(f"{kind}-password")
        elif kind == PGSQL:
            password = postgres_password(values)
        else:
            password = os.environ.get("MYSQL_PWD", "")
        login = {
            "endpoint": self.address().endpoint,
            "user": values.text(f"{kind}-user"),
            "password": password,
            "database": values.text(f"{kind}-db"),
        }
        if kind == PGSQL:
            return {**login, "driver": PGSQL, **postgres_transport(values)}
        return {**login, **transport(values).fields}

    def _seeding(self) -> dict[str, Any]:
        if self.general.seed is None:
            drawn = int.from_bytes(os.urandom(8)) ^ time.time_ns()
            return {"seed": drawn >> 1, "seeding": "streams"}
        return {"seed": self.general.seed & 0xFFFF_FFFF, "seeding": "sysbench"}

    def _prepared(self) -> bool:
        mode = self.values.text("db-ps-mode")
        if mode not in ("auto", "disable"):
            raise fatal(f"Invalid value for db-ps-mode: {mode}")
        return mode == "auto"

    def _ignored_errors(self) -> list[int] | list[str] | str:
        if self.driver() == PGSQL:
            return list(IGNORED_BY_POSTGRES)
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
