"""dbdyno's own connection to a PostgreSQL: one login, kept open, every answer as text.

Never used for load. What a question costs a server is part of what is measured, so one session
serves all questions. Each has a time limit, which is the server's own; one that has stopped is
given up a little later, and so is one whose answer has no end. A server gets no password but as
SCRAM's proof, whatever it asks for.
"""

from __future__ import annotations

import fcntl
import json
import math
import sys
import termios
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Final, TypeVar

import psycopg
from psycopg import waiting
from psycopg.waiting import Ready, Wait

from dbdyno.errors import ServerError
from dbdyno.servers.base import (
    ANSWER_BYTES_MAX,
    Answering,
    Credentials,
    Endpoint,
    odd_answer,
    rows_of,
)

CONNECT_S_MAX: Final = 10
ANSWER_S_MAX: Final = 60.0
COMING_OR_GOING: Final = "the database system is"  # starting up, shutting down, in recovery mode
REFUSED: Final = ("FATAL", "SSL", "authentication method requirement", "no password supplied")
"""By which of libpq's words it is known that there is a server, and no login."""
LIBPQ_MODES: Final = {
    "required": "require",
    "verify_ca": "verify-ca",
    "verify_identity": "verify-full",
}
LOOK_S: Final = 0.1
BEYOND_S: Final = 5.0
"""A server that does not keep the limit itself gets so much more."""
Answer = TypeVar("Answer")
LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)


class _GivenUpError(psycopg.OperationalError):
    """No answer in time, or one without an end."""


class _Session(psycopg.Connection):
    """A connection that is given up when an answer does not come, for which libpq waits for ever.

    Ctrl-C ends it at once: asking the server to stop its work may take as long as the work.
    """

    answer_s_max = ANSWER_S_MAX
    is_given_up = False
    """Set by whoever does not want the answer any more."""

    def wait(
        self,
        gen: Generator[Wait, Ready | int, Answer],
        interval: float = LOOK_S,
        timeout: float | None = None,
    ) -> Answer:
        """As psycopg's; OperationalError when the time is over."""
        seconds = self.answer_s_max + BEYOND_S if timeout is None else timeout
        try:
            line = self.pgconn.socket
            limited = _limited(gen, line, seconds, lambda: self.is_given_up)
            return waiting.wait(limited, line, interval=interval)
        except KeyboardInterrupt:
            self.pgconn.finish()
            raise


def _limited(
    work: Generator[Wait, Ready | int, Answer],
    line: int,
    seconds: float,
    is_given_up: Callable[[], bool],
) -> Generator[Wait, Ready | int, Answer]:
    """The same work, until it takes too long or too much comes.

    libpq has no limit of its own. What lies at the socket before each of its reads is added up.
    """
    ends, came = time.monotonic() + seconds, 0
    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            if time.monotonic() > ends or is_given_up():
                raise _GivenUpError(f"no answer within {seconds:.0f} s")
            lying = fcntl.ioctl(line, termios.FIONREAD, bytes(4))
            came += int.from_bytes(lying, sys.byteorder)
            if came > ANSWER_BYTES_MAX:
                raise _GivenUpError(f"its answer is longer than {ANSWER_BYTES_MAX} bytes")
            wanted = work.send(ready)
    except StopIteration as done:
        answer: Answer = done.value
        return answer


def limited_to(seconds: float) -> str:
    """The order by which a session has its server give up a question after so long.

    No option of the login: that would count as the server's own setting, whoever asks in it.
    """
    return f"SET statement_timeout = {round(seconds * 1000)}"


class PostgresClient:
    """Logs in when first needed; safe to ask from several threads.

    Args:
        database: the session's own, in which names without a schema are looked up.
        answer_s_max: how long the server works on one question before it gives up.
        proofs: how a login may be proven, as libpq's require_auth has it; never by the password
            itself. Empty for what a server of the lab's own wants.
    """

    def __init__(
        self,
        label: str,
        endpoint: Endpoint,
        who: Credentials,
        database: str,
        answer_s_max: float = ANSWER_S_MAX,
        proofs: str = "",
    ) -> None:
        self.label = label
        self._proofs = proofs
        self._endpoint = endpoint
        self._who = who
        self._database = database
        self._answer_s_max = answer_s_max
        self._connection: _Session | None = None
        self._lock = threading.Lock()

    def try_login(self) -> bool:
        """Whether a login works now; ServerError if the server refuses us for good."""
        with self._lock:
            try:
                self._connected()
            except psycopg.OperationalError as error:
                said = str(error)
                is_refused = any(word in said for word in REFUSED)
                if not is_refused or COMING_OR_GOING in said:
                    return False
                raise self._failed("refused the login", error) from error
            except psycopg.Error as error:
                raise self._failed("refused the session's limit", error) from error
        return True

    def ask(self, sql: str, shown_as: str = "") -> list[tuple[str, ...]]:
        """The answer to the last statement of `sql`, every value as the server writes it.

        NULL is an empty text. After a lost connection it reconnects and asks once more.

        Args:
            shown_as: what an error calls the statement, if it holds a secret.

        Raises:
            ServerError: the server does not answer, or refuses.
        """
        unanswered = f"did not answer {shown_as or repr(sql)}"
        with self._lock:
            try:
                return self._ask(sql)
            except psycopg.Error as error:
                is_given_up = isinstance(error, _GivenUpError)
                is_lost = isinstance(error, LOST) and not self._still_connected()
                if is_given_up or is_lost:
                    self._drop()
                if is_given_up or not is_lost:
                    raise self._failed(unanswered, error) from error
            try:
                return self._ask(sql)
            except psycopg.Error as error:
                self._drop()
                raise self._failed(unanswered, error) from error

    def sealed(self, who: Credentials) -> str:
        """The user's password as the server keeps it (SCRAM), so that it is never sent or logged.

        Raises:
            ServerError: there is no connection, or the server wants another kind of password.
        """
        with self._lock:
            try:
                connection = self._connected().pgconn
                kept = connection.encrypt_password(who.password.encode(), who.user.encode())
            except psycopg.Error as error:
                raise self._failed("did not take a password", error) from error
        return kept.decode()

    def close(self) -> None:
        """Log out; asking again logs in again. A question that still waits is given up."""
        while not self._lock.acquire(timeout=LOOK_S):
            if (session := self._connection) is not None:
                session.is_given_up = True
        try:
            self._drop()
        finally:
            self._lock.release()

    def _ask(self, sql: str) -> list[tuple[str, ...]]:
        with self._connected().cursor() as cursor:
            cursor.execute(sql.encode())
            while cursor.nextset():
                continue
            answer = cursor.pgresult
            if answer is None:
                return []
            columns = range(answer.nfields)
            return [
                tuple(_text(answer.get_value(row, column)) for column in columns)
                for row in range(answer.ntuples)
            ]

    def _connected(self) -> _Session:
        if self._connection is None:
            socket, tls = self._endpoint.socket, self._endpoint.encryption
            session = _Session.connect(
                host=self._endpoint.host if socket is None else str(socket.parent),
                port=self._endpoint.port,
                user=self._who.user,
                password=self._who.password or None,
                dbname=self._database,
                autocommit=True,
                client_encoding="utf8",
                connect_timeout=CONNECT_S_MAX,
                gssencmode="disable",
                require_auth=self._proofs or ("scram-sha-256" if self._who.password else "none"),
                sslmode=LIBPQ_MODES[tls.mode] if tls else "disable",
                sslrootcert=str(tls.ca) if tls and tls.ca else None,
                application_name="dbdyno",
            )
            session.answer_s_max = self._answer_s_max
            self._connection = session
            try:
                session.execute(limited_to(self._answer_s_max).encode())
            except psycopg.Error:
                self._drop()
                raise
        return self._connection

    def _still_connected(self) -> bool:
        return self._connection is not None and not self._connection.broken

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _failed(self, what: str, error: psycopg.Error) -> ServerError:
        return ServerError(
            f"{self.label}: the server {what}", found=" ".join(str(error).split()) or repr(error)
        )


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")


# Statistics views as one flat list of numbers, as MySQL's status is. The views change with each
# version, so no column is named here: each row comes as JSON, and every number in it is kept under
# the view's short name and its column's, as ``database.xact_commit`` or ``io.client
# backend.relation.normal.reads``. A session reports what it did at most once a second, so the last
# second of a busy one may be missing.


NAMES_OF_ROWS: Final = ("backend_type", "object", "context")
VIEWS: Final[Mapping[str, str]] = {
    "pg_stat_database": "database",
    "pg_stat_wal": "wal",
    "pg_stat_bgwriter": "bgwriter",
    "pg_stat_checkpointer": "checkpointer",
    "pg_stat_io": "io",
}
WHICH_VIEWS: Final = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relname IN ("
    + ", ".join(f"'{view}'" for view in VIEWS)
    + ")"
)
SINCE_ITS_START: Final = (
    "SELECT 'Uptime', to_jsonb(u) FROM (SELECT "
    "extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS s) u"
)
NOT_COUNTED: Final = frozenset({"datid"})  # an identity, though a number


def question(views: Collection[str], database: str) -> str:
    """The SQL that asks for all of these views' rows at once, and for how long it has run.

    Args:
        views: those that this server has, as `WHICH_VIEWS` answers.
        database: the one whose row of ``pg_stat_database`` is wanted; a plain identifier.
    """
    parts = [SINCE_ITS_START]
    for view, short in VIEWS.items():
        if view in views:
            only = f" WHERE v.datname = '{database}'" if view == "pg_stat_database" else ""
            parts.append(f"SELECT '{short}', to_jsonb(v) FROM pg_catalog.{view} v{only}")
    return " UNION ALL ".join(parts)


def answered(session: Answering, sql: str) -> dict[str, float]:
    """The numbers in the answer to a `question`; ServerError if it is none."""
    rows = rows_of(session, sql, 2)
    try:
        return flattened(rows)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        wanted = "the name of a view and its numbers as JSON"
        raise odd_answer(session.label, sql, wanted, f"{rows!r:.200}") from None


def flattened(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Every number of the answer, by name; what is text, time or missing is left out.

    Args:
        rows: short name of a view, and one of its rows as JSON.

    Raises:
        ValueError, or another of Python's own: they are not so.
    """
    found: dict[str, float] = {}
    for short, text in rows:
        row = json.loads(text)
        if short == "Uptime":
            found["Uptime"] = float(row["s"])
            continue
        place = ".".join([short, *(str(row[name]) for name in NAMES_OF_ROWS if name in row)])
        for column, value in row.items():
            if _is_number(value) and column not in NOT_COUNTED:
                found[f"{place}.{column}"] = float(value)
    return {name: number for name, number in found.items() if math.isfinite(number)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def without_idle_io(numbers: Mapping[str, float]) -> dict[str, float]:
    """Leaves out the zeros of ``pg_stat_io``, which are most of its thousand numbers."""
    return {name: n for name, n in numbers.items() if n or not name.startswith("io.")}
