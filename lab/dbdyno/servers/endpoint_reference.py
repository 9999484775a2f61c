"""Reads the reference of servers that dbdyno does not control: ``mysql://user@host:port/database``.

A reference is stored with its run and shown in reports, so it never holds a password: one that does
is refused, and the message does not repeat it. Passwords come from the environment.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import UnknownSystemError, UsageError
from dbdyno.plan.plan_systems import ENDPOINT_SCHEME
from dbdyno.servers.base import Credentials, Endpoint

PORT: Final = 3306
FORM: Final = "mysql://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE"
PASSWORD_VARIABLE: Final = "MYSQL_PWD"  # noqa: S105 - a variable's name
OTHER_SCHEMES: Final = ("postgres://", "postgresql://", "mariadb://", "tidb://")

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_USER = re.compile(r"[A-Za-z0-9._%-]{1,80}")
_DATABASE = re.compile(r"[A-Za-z0-9_$-]{1,64}")


@dataclass(frozen=True)
class EndpointReference:
    """Where such servers listen, who logs in, and which database holds the load's tables."""

    user: str
    addresses: tuple[tuple[str, int], ...]
    database: str

    @property
    def endpoint(self) -> Endpoint:
        """The first address, the others behind it."""
        first, *others = (Endpoint(host, port, None) for host, port in self.addresses)
        return Endpoint(first.host, first.port, None, others=tuple(others))


def is_endpoint(reference: str) -> bool:
    """Whether a reference is of this form, well written or not."""
    return reference.strip().lower().startswith((ENDPOINT_SCHEME, *OTHER_SCHEMES))


def read(reference: str) -> EndpointReference:
    """What a reference says.

    Raises:
        UnknownSystemError: it is not well formed, speaks another protocol, or holds a password.
    """
    text = reference.strip()
    if not text.lower().startswith(ENDPOINT_SCHEME):
        raise _wrong(
            f"{text.partition('://')[0]}:// is no endpoint that dbdyno can load",
            "MariaDB and TiDB speak MySQL's protocol: write mysql://",
        )
    login, _, place = text[len(ENDPOINT_SCHEME) :].rpartition("@")
    hosts, _, database = place.partition("/")
    user, colon, _ = login.partition(":")
    if colon:
        raise _wrong(
            "an endpoint's reference holds a password",
            f"leave it out: it is taken from password_env or {PASSWORD_VARIABLE}",
        )
    if not _USER.fullmatch(user):
        raise _wrong("an endpoint's reference lacks a user, or has an odd one before the @")
    if not _DATABASE.fullmatch(database):
        raise _wrong(f"an endpoint's reference lacks a database, or has an odd one: {database!r}")
    return EndpointReference(user, tuple(_address(part) for part in hosts.split(",")), database)


def credentials(reference: EndpointReference, password_env: str) -> Credentials:
    """The user with the password from the environment; none where no variable has one.

    Args:
        password_env: the variable to read; empty for MYSQL_PWD, if there is such a one.

    Raises:
        UsageError: the named variable is not set.
    """
    if password_env and password_env not in os.environ:
        raise UsageError(
            f"the password of {reference.user} is not there",
            wanted=f"the environment variable {password_env}, as password_env says",
            found="it is not set",
            hint=f"export {password_env} before the run",
        )
    return Credentials(reference.user, os.environ.get(password_env or PASSWORD_VARIABLE, ""))


def _address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text.strip())
    port = int(match[2] or PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise _wrong(f"{text!r} is no address of an endpoint", "write HOST or HOST:PORT")
    return match[1].strip("[]"), port


def _wrong(message: str, hint: str | None = None) -> UnknownSystemError:
    return UnknownSystemError(message, wanted=FORM, hint=hint)
