"""Protocols of servers and their files, independent of the product.

An `Instance` is files (programs, data directory, snapshot) and may outlive many starts; a `Server`
is a running process of it. The two are separate types so that "restore the data" cannot be called
on a process with the files open.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.settings import SettingValue
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers.process import LOOPBACK

DATABASE: Final = "sbtest"
LOAD_USER: Final = "dbdyno"

MYSQL, PGSQL = "mysql", "pgsql"
"""The engine's drivers, under sysbench's names."""

STOP_S: Final = 60.0
"""Time for a server to stop if its data is not needed any more."""
DIGITS_MAX: Final = 25
"""More digits than any count has; a decimal's arithmetic is exact up to 28."""
OFF: Final = "disabled"
"""Mode of connections without TLS."""


@dataclass(frozen=True)
class Encryption:
    """TLS to a foreign server, or encryption of the password alone, as MySQL's own clients have it.

    Attributes:
        mode: `OFF`, ``required`` (any certificate), ``verify_ca`` (signed by an authority of `ca`)
            or ``verify_identity`` (and issued for the host).
        ca: file of the authorities' certificates (PEM); with ``required`` the certificate is
            verified if there is such a file, as by libpq.
        key: file of the server's public key (PEM), which encrypts the password without TLS.
        takes_any_key: without TLS the password is encrypted with the key that the server sends.
    """

    mode: str = OFF
    ca: Path | None = None
    key: Path | None = None
    takes_any_key: bool = False


PLAIN: Final = Encryption()


@dataclass(frozen=True)
class Endpoint:
    """Address of a server: on loopback, unless others run it.

    Attributes:
        socket: the unix socket, if there is one.
        others: further servers that take connections in turn with this server.
        encryption: of foreign servers only.
        is_foreign: run by somebody else, who gets the password only as MySQL's own clients give it.
    """

    host: str
    port: int
    socket: Path | None
    others: tuple[Endpoint, ...] = ()
    encryption: Encryption = PLAIN
    is_foreign: bool = False


@dataclass(frozen=True)
class Credentials:
    """A user of one server; the password is random and never printed."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def fresh(cls, user: str) -> Credentials:
        """A user with a new random password."""
        return cls(user, secrets.token_hex(24))


@dataclass(frozen=True)
class ServerSpec:
    """A server to run: label for messages, reference (``mysql:8.0.15``) and the user's settings.

    Attributes:
        settings: verbatim configuration keys, laid over the common settings of a fair comparison.
        topology: its replicas and the acknowledgements a commit waits for.
        password_env: environment variable with the password of an endpoint's user.
        dataset: identifies the loaded rows, to recognise the tables on an endpoint.
        replica_ms: delay added to a round trip between any two of its servers.
        after_start: SQL that follows each start of a run.
        has_scripts: the load creates tables under names known to its scripts only.
        address: address to listen on; loopback unless the load comes from other machines.
    """

    label: str
    reference: str
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    topology: TopologyPlan = field(default_factory=TopologyPlan)
    password_env: str = ""
    dataset: str = ""
    replica_ms: float = 0.0
    after_start: tuple[str, ...] = ()
    has_scripts: bool = False
    address: str = LOOPBACK


def unique_settings(pairs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Settings by name, from triples of the key as typed, its name and its text.

    Raises:
        UsageError: two keys are spellings of the same name.
    """
    settings: dict[str, str] = {}
    for key, name, text in pairs:
        if name in settings:
            raise UsageError(f"the setting {name} is given twice, the second time as {key}")
        settings[name] = text
    return settings


def refuse_owned(reference: str, own: Mapping[str, str], owned: Collection[str]) -> None:
    """Raise UsageError if the user sets a key reserved for dbdyno."""
    taken = sorted(own.keys() & owned)
    if taken:
        raise UsageError(
            f"{reference}: {', '.join(taken)} cannot be set: dbdyno decides where a server's "
            "files are and how it is reached",
            hint="leave the key out",
        )


class Server(Protocol):
    """A running process of an instance, ready for logins when handed out."""

    @property
    def driver(self) -> str:
        """The engine's driver for it: `MYSQL` or `PGSQL`."""

    @property
    def label(self) -> str:
        """The system's label, for messages."""

    @property
    def pid(self) -> int:
        """The process whose counters are read; 0 if it is not seen. Only `Instance`s end it."""

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def credentials(self) -> Credentials:
        """The load user, who may do everything in the server."""

    @property
    def database(self) -> str:
        """The database of the load's tables."""

    def version(self) -> str:
        """The server's ``SELECT VERSION()`` or its like; ServerError if it is gone."""

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """Run a statement as administrator: rows, every value as text; ServerError if refused."""

    def settings(self) -> dict[str, str]:
        """Every effective global variable, by name; ServerError if it is gone."""

    def status(self) -> dict[str, float]:
        """Every numeric global status counter, by name; ServerError if it is gone."""

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """The end of its error log, for messages; empty if there is none."""

    def stop(self, patience_s: float = STOP_S) -> None:
        """Ask it to end, wait, then kill it; ServerError if it did not exit cleanly."""

    def kill(self) -> None:
        """End it at once, giving its data up."""


@runtime_checkable
class Loading(Protocol):
    """A server with a faster, unsafe mode for loading rows."""

    def loading(self) -> AbstractContextManager[None]:
        """Within the block a crash may lose all rows; after it they are durable.

        A failed block leaves unusable data. ServerError if the server refuses.
        """


@runtime_checkable
class Replicated(Protocol):
    """A server with replicas."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the primary, then of its replicas and the network between them."""

    def replication(self) -> dict[str, float]:
        """Replication status by the names of `measurement.replication`; ServerError if unknown."""

    def catch_up(self, cap_s: float) -> float:
        """Wait until the replicas have applied everything, `cap_s` at most; gives the seconds."""


@runtime_checkable
class ThreadPerSession(Protocol):
    """A server with a thread for each session, if a pool does not share them."""

    @property
    def ready_s(self) -> float | None:
        """Seconds from boot until it could be logged in to, when all its own threads had begun.

        None if it begins threads of its own later.
        """


def pids_of(server: Server) -> tuple[int, ...]:
    """The processes of a server and of its replicas, its own first."""
    return server.pids if isinstance(server, Replicated) else (server.pid,)


class Instance(Protocol):
    """A system's files: programs, data directory, snapshot. No process unless started."""

    @property
    def driver(self) -> str: ...

    @property
    def spec(self) -> ServerSpec: ...

    @property
    def folder(self) -> Path: ...

    def start(self, settings: Mapping[str, SettingValue] | None = None) -> Server:
        """Start it and wait until its settings are proven.

            Args:
        settings: keys of this start alone, laid over the instance's.

            Raises:
        UsageError: a key cannot be applied to an existing data directory.
        ServerError: it did not start, or a setting is not in force.
        """

    def snapshot(self) -> None:
        """Copy the stopped server's data aside; ServerError if it runs or the disk is short."""

    def has_snapshot(self) -> bool:
        """Test for a complete snapshot of this reference and its format-deciding settings."""

    def restore(self) -> None:
        """Put the snapshot's data back; ServerError without a snapshot or while it runs."""

    def data_bytes(self) -> int:
        """Bytes on disk of the snapshot's tables and indexes; ServerError if unknown."""

    def close(self) -> None:
        """Stop the server if it runs and remove the working data; a snapshot stays."""


@runtime_checkable
class Renewing(Protocol):
    """An instance that can leave the log of a load out of its snapshot."""

    def loading_keys(self) -> Mapping[str, SettingValue]:
        """Settings for the start that loads rows, over the instance's own; may be empty.

        The next start, without them, makes a new log; only then a snapshot is taken.
        """


@dataclass(frozen=True)
class Observer:
    """Reader of a server's counters, as a rule on a connection of its own.

    The administrator's connection serves callers in turn: a periodic reading held up by a slow
    server would delay the readings at the window's edges.

    Attributes:
        read: reads the counters, by name; ServerError if the server does not answer.
        close: closes the connection.
    """

    read: Callable[[], dict[str, float]]
    close: Callable[[], None]


@runtime_checkable
class Observable(Protocol):
    """A server that hands out observers with a connection each."""

    def observer(self) -> Observer:
        """A new observer; it logs in when first asked."""


def observe(server: Server) -> Observer:
    """The server's own observer, else a reader of its full status on the shared connection."""
    if isinstance(server, Observable):
        return server.observer()
    return Observer(server.status, lambda: None)


class Answering(Protocol):
    """A source of SQL answers: a server, or a connection of dbdyno's to it."""

    @property
    def label(self) -> str:
        """The system's label, for messages."""

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """Rows of a statement, every value as text; ServerError if refused."""


def rows_of(server: Answering, sql: str, columns: int) -> list[tuple[str, ...]]:
    """Rows of an answer; ServerError if a row has fewer columns."""
    rows = server.ask(sql)
    short = next((row for row in rows if len(row) < columns), None)
    if short is not None:
        raise odd_answer(server.label, sql, f"{columns} columns", f"rows such as {short}")
    return rows


def row_of(server: Answering, sql: str, columns: int = 1) -> tuple[str, ...]:
    """First row of an answer; ServerError if the answer is empty or lacks columns."""
    rows = rows_of(server, sql, columns)
    if not rows:
        raise odd_answer(server.label, sql, "a row", "none")
    return rows[0]


def count_of(server: Answering, sql: str) -> int:
    """The whole number in the answer, 0 for NULL; ServerError if it is no whole number."""
    return counts_of(server, sql, 1)[0]


def counts_of(server: Answering, sql: str, columns: int) -> tuple[int, ...]:
    """The whole numbers in the answer's first row, 0 for NULL; ServerError for any other answer.

    Servers write them in several ways: `7`, `7.0`, `7e0`.
    """
    row = row_of(server, sql, columns)[:columns]
    try:
        return tuple(_whole(text or "0") for text in row)
    except (ArithmeticError, ValueError):
        found = ", ".join(repr(text[:200]) for text in row)
        raise odd_answer(server.label, sql, "whole numbers", found) from None


def _whole(text: str) -> int:
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > DIGITS_MAX or number % 1:
        raise ValueError(text)
    return int(number)


def not_taken(label: str, wrong: Sequence[tuple[str, str, str]]) -> ServerError:
    """The error for settings that are not in force, from triples of name, request and effect."""
    return ServerError(
        f"{label}: the server did not take {', '.join(name for name, _, _ in wrong)} as asked",
        wanted="; ".join(f"{name} = {request}" for name, request, _ in wrong),
        found="; ".join(f"{name} = {effect}" for name, _, effect in wrong),
        hint="ask for a value that the server can have, or for none",
    )


def odd_answer(label: str, sql: str, wanted: str, found: str) -> ServerError:
    """The error for an answer that does not fit the question."""
    return ServerError(
        f"{label}: the server answered {sql!r} with something else",
        wanted=wanted,
        found=found,
        hint="is it the product it should be, and reached without a proxy that changes answers?",
    )
