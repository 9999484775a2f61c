"""dbdyno's own connection to a server: one login, kept open, every answer as text.

Never used for load. One session serves all questions of a trial, so that reading counters does not
raise the connection counters. The server may be foreign, or no database at all: the engine's
session, by which the load logs in too, discloses no more than a server of its kind needs, and
limits the time, size and work of each answer.
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
"""Limit for connecting and logging in."""
ANSWER_S_MAX: Final = 60.0
LOOK_S: Final = 0.1
ABSENT, LATE, REFUSED = "absent", "late", "refused"
"""Kinds of a `SessionError`; the engine has a fourth, "odd"."""


def transport(endpoint: Endpoint) -> dict[str, Any]:
    """Fields of the engine's specs for encryption.

    Some logins hand the server the password itself: inside TLS, or encrypted with the server's key.
    dbdyno's own servers may send any key.
    """
    chosen = endpoint.encryption
    mode, ca = chosen.mode, chosen.ca
    if mode == "required" and ca and ca.exists():
        mode = "verify_ca"
    return {
        "tls": {"mode": mode, "ca": str(ca) if ca else None},
        "server_key": str(chosen.key) if chosen.key else None,
        "takes_any_key": chosen.takes_any_key or not endpoint.is_foreign,
    }


class Client:
    """A session that logs in when first needed; safe to ask from several threads.

    Args:
        driver: the engine's driver, `MYSQL` or `PGSQL`.
        database: default database; empty for no default.
        orders: SQL that follows each login.
        entry: SQL after them that enters a database; refused while it does not exist yet.

    Attributes:
        answer_s_max: limit for a whole answer.
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
        entry: str = "",
    ) -> None:
        self.label = label
        self._driver = driver
        self._endpoint = endpoint
        self._who = who
        self._database = database
        self._orders = orders
        self._entry = entry
        self._session: Session | None = None
        self._is_closing = False
        self._lock = threading.Lock()

    def try_login(self) -> bool:
        """Test whether a login works now; ServerError if the server refuses us for good."""
        with self._lock:
            return self._trouble() is None

    def login(self) -> None:
        """Log in if needed; ServerError if no session opens."""
        with self._lock:
            if (error := self._trouble()) is not None:
                raise self._failed("opened no session", error) from error

    def ask(self, sql: str, shown_as: str = "") -> list[tuple[str, ...]]:
        """Run a statement: rows with every value as text, NULL as an empty text.

        After a lost connection it logs in and asks once more.

        Args:
            shown_as: replaces the statement in errors, if it holds a secret.

        Raises:
            ServerError: the server does not answer, or refuses.
        """
        with self._lock:
            try:
                return self._ask_twice(sql)
            except SessionError as error:
                raise self._failed(f"did not answer {shown_as or repr(sql)}", error) from error

    def is_answered(self) -> bool:
        """Test whether the server answers, if only with an error of its own."""
        with self._lock:
            try:
                self._ask_twice("SELECT 1")
            except SessionError as error:
                return bool(error.args[2] == REFUSED)
        return True

    def close(self) -> None:
        """Log out and give up a question in flight; the next question logs in again."""
        self._is_closing = True
        while not self._lock.acquire(timeout=LOOK_S):
            if (session := self._session) is not None:
                session.give_up()
        try:
            self._is_closing = False
            self._drop()
        finally:
            self._lock.release()

    def _trouble(self) -> SessionError | None:
        """Log in if needed: the error if another try may succeed, ServerError for any other."""
        try:
            self._connected()
        except SessionError as error:
            if error.args[2] in {ABSENT, LATE}:
                return error
            raise self._failed("refused the login", error) from error
        return None

    def _ask_twice(self, sql: str) -> list[tuple[str, ...]]:
        """Rows of a statement, which is sent once more if the connection was lost."""
        ends = time.monotonic() + self.answer_s_max
        try:
            return self._ask(sql)
        except SessionError as error:
            is_final = error.args[2] in {REFUSED, LATE} or time.monotonic() >= ends
            if is_final or self._is_closing:
                raise
        return self._ask(sql)

    def _ask(self, sql: str) -> list[tuple[str, ...]]:
        try:
            rows = self._connected().ask(sql, self.answer_s_max)
        except BaseException as error:
            # A late answer would be taken for the next question's.
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
                if self._entry:
                    self._enter(session)
            except BaseException:
                self._drop()
                raise
        return self._session

    def _enter(self, session: Session) -> None:
        try:
            session.ask(self._entry, self.answer_s_max)
        except SessionError as error:
            if error.args[2] != REFUSED:
                raise

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

    def _failed(self, failure: str, error: SessionError) -> ServerError:
        reason, advice, _ = error.args
        return ServerError(
            f"{self.label}: the server {failure} (user {self._who.user})",
            found=" ".join(reason.split()),
            hint=f"try {advice}" if advice else None,
        )
