"""Protocols of servers and of their files, whatever the product: what a run needs of them.

An `Instance` is files (programs, data directory, snapshot) and may outlive many starts; a `Server`
is one running process of it. The two are kept apart so that "restore the data" cannot be asked of
a process that has the files open.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
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
"""How long a server whose data is not needed any more may take to end."""


@dataclass(frozen=True)
class Encryption:
    """TLS to somebody else's server, in the words of MySQL's own clients.

    Attributes:
        mode: ``required`` (any certificate will do), ``verify_ca`` (signed by an authority of
            `ca`), ``verify_identity`` (and made for that host).
        ca: file of the authorities' certificates (PEM).
    """

    mode: str
    ca: Path | None = None


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens: on loopback, unless others run it.

    Attributes:
        socket: the unix socket, where there is one.
        others: further servers that take connections in turn with this one.
        encryption: TLS, which only others' servers have; None for none.
        is_foreign: it is somebody else's, and gets the password itself only if it is verified or
            on this machine.
    """

    host: str
    port: int
    socket: Path | None
    others: tuple[Endpoint, ...] = ()
    encryption: Encryption | None = None
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
    """What to run: a label for messages, a reference such as ``mysql:8.0.15``, the user's settings.

    Attributes:
        settings: verbatim configuration keys, laid over the common settings of a fair comparison.
        topology: replicas behind it, and what a commit waits for.
        password_env: environment variable that holds the password of an endpoint's user.
        dataset: names the rows that are loaded, so that tables on an endpoint are known again.
        replica_ms: what is added to a round trip between any two of its servers.
        after_start: SQL that follows each start of a run.
        has_scripts: whether the load makes tables of names that only its scripts know.
        address: on which a server that is started listens; loopback unless the load comes from
            other machines.
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
    """Settings by name, from key as it was given, name and text.

    Raises:
        UsageError: two keys are spellings of one name.
    """
    found: dict[str, str] = {}
    for key, name, text in pairs:
        if name in found:
            raise UsageError(f"the setting {name} is given twice, the second time as {key}")
        found[name] = text
    return found


def refuse_owned(reference: str, own: Mapping[str, str], owned: Collection[str]) -> None:
    """UsageError if a user's setting is one that dbdyno decides itself."""
    taken = sorted(own.keys() & owned)
    if taken:
        raise UsageError(
            f"{reference}: {', '.join(taken)} cannot be set: dbdyno decides where a server's "
            "files are and how it is reached",
            hint="leave the key out",
        )


class Server(Protocol):
    """One running process of an instance, ready for logins when it is handed out."""

    @property
    def driver(self) -> str:
        """Which of the engine's drivers speaks to it: `MYSQL` or `PGSQL`."""

    @property
    def label(self) -> str:
        """The system's label, for messages."""

    @property
    def pid(self) -> int:
        """The process that was started, whose counters are read; 0 where the lab started none."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""

    @property
    def credentials(self) -> Credentials:
        """The load user, who may do everything in the server."""

    @property
    def database(self) -> str:
        """The database in which the load's tables live."""

    def version(self) -> str:
        """What the server says of itself, as by ``SELECT VERSION()``; ServerError if it is gone."""

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The administrator's question or order, every value as text; ServerError if refused."""

    def settings(self) -> dict[str, str]:
        """Every effective global variable, by name; ServerError if it is gone."""

    def status(self) -> dict[str, float]:
        """Every numeric global status counter, by name; ServerError if it is gone."""

    def alive(self) -> bool:
        """Whether the started process still runs."""

    def last_words(self) -> str:
        """The end of its error log, for messages; empty if there is none."""

    def stop(self, patience_s: float = STOP_S) -> None:
        """Ask it to end, wait, kill it at last; ServerError when it did not exit cleanly."""

    def kill(self) -> None:
        """End it at once; for a server whose data will not be used again."""


@runtime_checkable
class Loading(Protocol):
    """What a server has besides that can take rows more cheaply while it may lose them."""

    def loading(self) -> AbstractContextManager[None]:
        """A crash within the block may lose all rows; after it they are safe as ever.

        A block that fails leaves data that must not be used. ServerError if the server refuses.
        """


@runtime_checkable
class Replicated(Protocol):
    """What a server with replicas has besides."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the primary and of its replicas."""

    def replication(self) -> dict[str, float]:
        """Replication status by the names of `measurement.replication`; ServerError if unknown."""

    def catch_up(self, cap_s: float) -> float:
        """Wait until its replicas have applied all; gives the seconds, `cap_s` at most."""


class Instance(Protocol):
    """A system's files: programs, data directory, snapshot. No process unless started."""

    @property
    def driver(self) -> str:
        """As its servers'."""

    @property
    def spec(self) -> ServerSpec:
        """What this instance was made for."""

    @property
    def folder(self) -> Path:
        """Where its files are."""

    def start(self, settings: Mapping[str, SettingValue] | None = None) -> Server:
        """Start it and wait until its settings are proven.

        Args:
            settings: keys of this start alone, laid over the instance's.

        Raises:
            UsageError: a key cannot be given to a data directory that exists.
            ServerError: it did not start, or a setting is not in force.
        """

    def snapshot(self) -> None:
        """Copy the stopped server's data aside; ServerError if it runs or the disk is short."""

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot exists of this reference and format-deciding settings."""

    def restore(self) -> None:
        """Make the data directory the snapshot again; ServerError if there is none or it runs."""

    def data_bytes(self) -> int:
        """Bytes on disk of the snapshot's tables and indexes; ServerError if nobody can say."""

    def close(self) -> None:
        """Stop the server if it runs and remove the working data; a snapshot stays."""


@dataclass(frozen=True)
class Observer:
    """Reads a server's counters again and again, as a rule on a connection of its own.

    The administrator's connection answers whoever asks first: a reading that a slow server keeps
    waiting would make the readings at the window's edges wait too.

    Attributes:
        read: the counters now, by name; ServerError if the server does not answer.
        close: closes the connection.
    """

    read: Callable[[], dict[str, float]]
    close: Callable[[], None]


@runtime_checkable
class Observable(Protocol):
    """A server that hands out observers with a connection each."""

    def observer(self) -> Observer:
        """A new one; it logs in when it is first asked."""


def observe(server: Server) -> Observer:
    """The server's own observer, or one that asks for its whole status on its one connection."""
    if isinstance(server, Observable):
        return server.observer()
    return Observer(server.status, lambda: None)


class Answering(Protocol):
    """What answers SQL: a server, or one of dbdyno's own connections to it."""

    @property
    def label(self) -> str:
        """The system's label, for messages."""

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The answer, every value as text; ServerError if refused."""


def rows_of(server: Answering, sql: str, columns: int) -> list[tuple[str, ...]]:
    """An answer whose rows have at least so many columns; ServerError if one has fewer."""
    found = server.ask(sql)
    short = next((row for row in found if len(row) < columns), None)
    if short is not None:
        raise odd_answer(server.label, sql, f"{columns} columns", f"rows such as {short}")
    return found


def row_of(server: Answering, sql: str, columns: int = 1) -> tuple[str, ...]:
    """The first row of an answer; ServerError if there is none with so many columns."""
    found = rows_of(server, sql, columns)
    if not found:
        raise odd_answer(server.label, sql, "a row", "none")
    return found[0]


def count_of(server: Answering, sql: str) -> int:
    """The whole number that is the answer, 0 for NULL; ServerError if it is none."""
    text = row_of(server, sql)[0] or "0"
    try:
        return int(float(text)) if "." in text else int(text)
    except (ValueError, OverflowError):
        raise odd_answer(server.label, sql, "a number", repr(text[:200])) from None


def odd_answer(label: str, sql: str, wanted: str, found: str) -> ServerError:
    """The error for an answer that does not fit the question."""
    return ServerError(
        f"{label}: the server answered {sql!r} with something else",
        wanted=wanted,
        found=found,
        hint="is it the product it should be, and reached without a proxy that changes answers?",
    )
