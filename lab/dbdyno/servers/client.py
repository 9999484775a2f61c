"""dbdyno's own connection to a server: one login, kept open, every answer as text.

Never used for load. One session serves all questions of a trial, so that asking does not add
connections to the counters that are read. The server may be somebody else's, or not one at all:
the engine's session, by which the load logs in too, gives it no more than a server of its kind
needs, and limits the time, the size and the work of each answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from dbdyno._engine import Session, SessionError
from dbdyno.errors import ServerError
from dbdyno.servers.base import PGSQL, Credentials, Endpoint

CONNECT_S_MAX: Final = 10.0
"""For reaching the server and logging in."""
ANSWER_S_MAX: Final = 60.0
LOOK_S: Final = 0.1
ABSENT, LATE, REFUSED = "absent", "late", "refused"
"""Kinds of a `SessionError`, of which there is one more: odd."""


def trust(endpoint: Endpoint) -> str:
    """How far a server is trusted without verification, in the engine's words.

    It may have the password itself if it needs that to check a login: dbdyno's own anywhere,
    another one on this machine alone.
    """
    return "local" if endpoint.is_foreign else "ours"


def transport(endpoint: Endpoint) -> dict[str, Any]:
    """The fields of the engine's specs that say how to reach a server, and how far to trust it."""
    tls = endpoint.encryption
    return {
        **({"tls": {"mode": tls.mode, "ca": str(tls.ca) if tls.ca else None}} if tls else {}),
        "trust": trust(endpoint),
    }


class Client:
    """A session that logs in when first needed; safe to ask from several threads.

    Args:
        driver: which of the engine's drivers speaks to the server.
        database: in which names without another are looked up; empty for none.
        orders: SQL that follows each login.

    Attributes:
        answer_s_max: for a whole answer.
    """

    answer_s_max = ANSWER_S_MAX

    def __init__(
        self,
        label: str,
        driver: str,
        endpoint: Endpoint,
        who: Credentials,
        database: str = "",
        orders: Sequence[str] = (),
    ) -> None:
        self.label = label
        self._driver = driver
        self._endpoint = endpoint
        self._who = who
        self._database = database
        self._orders = orders
        self._session: Session | None = None
        self._is_closing = False
        self._lock = threading.Lock()

    def try_login(self) -> bool:
        """Whether a login works now; ServerError if the server refuses us for good."""
        with self._lock:
            try:
                self._connected()
            except SessionError as error:
                if error.args[2] in {ABSENT, LATE}:
                    return False
                raise self._failed("refused the login", error) from error
        return True

    def ask(self, sql: str, shown_as: str = "") -> list[tuple[str, ...]]:
        """The answer, every value as text and NULL as an empty one.

        After a lost connection it logs in and asks once more.

        Args:
            shown_as: what an error calls the statement, if it holds a secret.

        Raises:
            ServerError: the server does not answer, or refuses.
        """
        with self._lock:
            ends = time.monotonic() + self.answer_s_max
            try:
                return self._ask(sql)
            except SessionError as error:
                is_final = error.args[2] in {REFUSED, LATE} or time.monotonic() >= ends
                if is_final or self._is_closing:
                    raise self._failed(f"did not answer {shown_as or repr(sql)}", error) from error
            try:
                return self._ask(sql)
            except SessionError as error:
                raise self._failed(f"did not answer {shown_as or repr(sql)}", error) from error

    def close(self) -> None:
        """Log out; asking again logs in again. A question that still waits is given up."""
        self._is_closing = True
        while not self._lock.acquire(timeout=LOOK_S):
            if (session := self._session) is not None:
                session.give_up()
        try:
            self._is_closing = False
            self._drop()
        finally:
            self._lock.release()

    def _ask(self, sql: str) -> list[tuple[str, ...]]:
        try:
            rows = self._connected().ask(sql, self.answer_s_max)
        except BaseException as error:
            # A late answer would be taken for that of the next question.
            if not (isinstance(error, SessionError) and error.args[2] == REFUSED):
                self._drop()
            raise
        return [tuple(value or "" for value in row) for row in rows]

    def _connected(self) -> Session:
        if self._session is None:
            self._session = session = Session(self._spec())  # which `close` may give up
            try:
                session.log_in()
                for order in self._orders:
                    session.ask(order, self.answer_s_max)
            except BaseException:
                self._drop()
                raise
        return self._session

    def _spec(self) -> dict[str, Any]:
        place = self._endpoint
        is_near = place.socket is not None
        return {
            **transport(place),
            **({"driver": PGSQL} if self._driver == PGSQL else {}),
            "endpoint": (
                {"socket": str(place.socket)}
                if is_near
                else {"host": place.host, "port": place.port}
            ),
            "user": self._who.user,
            "password": self._who.password,
            "database": self._database,
            "login_s": CONNECT_S_MAX,
        }

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _failed(self, what: str, error: SessionError) -> ServerError:
        found, advice, _ = error.args
        return ServerError(
            f"{self.label}: the server {what} (user {self._who.user})",
            found=" ".join(found.split()),
            hint=f"try {advice}" if advice else None,
        )
