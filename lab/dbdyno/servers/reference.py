"""Reads a reference such as ``mysql:8.0.15`` and finds its row in the catalog.

Only exact versions are taken: "the newest 8.0" would name another server next month, and a stored
result could no longer say what it measured.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import UnknownSystemError, UsageError
from dbdyno.plan.plan import ENDPOINT_SCHEME
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.programs.catalog import CATALOG, CatalogEntry


def find(reference: str, catalog: Sequence[CatalogEntry] = CATALOG) -> CatalogEntry:
    """The catalog's row for a reference.

    Raises:
        UnknownSystemError: no such form, product or version; lists those known and the nearest,
            or says what to write for a server that no registry has.
    """
    asked = reference.strip().lower()
    for entry in catalog:
        if entry.reference == asked:
            return entry
    product, _, version = asked.partition(":")
    recipe = recipe_for(product)
    if recipe is not None:
        raise UnknownSystemError(
            f"dbdyno cannot fetch {product} by name: {recipe.why}",
            found=repr(reference),
            hint=recipe.written_for(version),
        )
    known = [entry.reference for entry in catalog]
    nearest = _nearest(asked, catalog)
    raise UnknownSystemError(
        _what_is_wrong(asked, reference, catalog),
        wanted=f"one of {', '.join(known)}",
        found=repr(reference),
        hint=f"did you mean {nearest}?" if nearest else "see: dbdyno servers list",
    )


def _what_is_wrong(asked: str, reference: str, catalog: Sequence[CatalogEntry]) -> str:
    product, colon, version = asked.partition(":")
    if not colon or not product or not version:
        return f"{reference!r} does not name a product and a version, as in mysql:8.0.15"
    if product not in {entry.product for entry in catalog}:
        return f"dbdyno knows no product {product!r}"
    return f"dbdyno knows no version {version!r} of {product}"


def _nearest(asked: str, catalog: Sequence[CatalogEntry]) -> str | None:
    """What may have been meant: the newest that continues what was typed, else the version with
    the closest numbers, else the reference most alike, else None.
    """
    known = [entry.reference for entry in catalog]
    continued = [reference for reference in known if asked and reference.startswith(asked)]
    if continued:
        return continued[-1]
    product, _, version = asked.partition(":")
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    siblings = [entry for entry in catalog if entry.product == product]
    if numbers and siblings:
        return min(siblings, key=lambda entry: _distance(entry.version_numbers, numbers)).reference
    alike = difflib.get_close_matches(asked, known, n=1, cutoff=0.5)
    return alike[0] if alike else None


def _distance(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(abs(a - b) for a, b in zip(left, right, strict=False))


# Reads the reference of servers that dbdyno does not control:
# ``mysql://user@host:port/database``.
#
# A reference is stored with its run and shown in reports, so it never holds a password: one that
# does is refused, and the message does not repeat it. Passwords come from the environment.


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


# Servers that no package registry has, and what to write in a plan instead of their name.
#
# The addresses are the vendors' to change, so a recipe names the file to look for and the form of
# the reference, and leaves address and digest to the user. docs/reference/servers.md has more.


VERSION: Final = "VERSION"  # stands for the version that was asked for


@dataclass(frozen=True)
class Recipe:
    """How to have a server that dbdyno cannot fetch by name.

    Attributes:
        product: as one would write it in a reference.
        example: a version there has been.
        why: why the catalog does not have it, in a few words.
        ways: references to write, best first, each with what it wants from the user.
    """

    product: str
    example: str
    why: str
    ways: tuple[str, ...]

    def written_for(self, version: str) -> str:
        """What to write, for a version (the example's if none was asked for)."""
        named = (way.replace(VERSION, version or self.example) for way in self.ways)
        return ", or ".join(named) + "; see docs/reference/servers.md"


RECIPES: Final = (
    Recipe(
        "greatsql",
        "8.0.32-26",
        "its vendor publishes archives and images, and no package registry has them",
        (
            "write tarball:URL#sha256=HEX with the address and digest of "
            "GreatSQL-VERSION-Linux-glibc2.28-x86_64.tar.xz from its releases page",
            "container:greatsql/greatsql@sha256:HEX with the digest of the image's tag VERSION",
        ),
    ),
    Recipe(
        "percona",
        "8.0.36-28",
        "its vendor publishes archives and images, and no package registry has them",
        (
            "write tarball:URL#sha256=HEX with the address and digest of "
            "Percona-Server-VERSION-Linux.x86_64.glibc2.28-minimal.tar.gz from its downloads page",
            "container:percona/percona-server@sha256:HEX with the digest of the image's tag",
        ),
    ),
    Recipe(
        "tidb",
        "v7.5.1",
        "it is several programs that its own tool starts",
        (
            "start it by 'tiup playground VERSION --db 3 --kv 3 --pd 1' and write "
            "mysql://root@127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/test with the ports it says",
            "write mysql://USER@HOST:4000,HOST:4000,HOST:4000/DATABASE for a cluster of yours",
        ),
    ),
    Recipe(
        "tdsql",
        "8.0",
        "it runs only at its vendor's or where its vendor installed it",
        ("write mysql://USER@HOST:PORT/DATABASE with the address of the instance",),
    ),
)
ALSO_CALLED: Final = {"percona-server": "percona", "ps": "percona", "tdsql-c": "tdsql"}


def recipe_for(product: str, recipes: Sequence[Recipe] = RECIPES) -> Recipe | None:
    """The recipe of a product, by any name it goes by; None if there is none."""
    named = ALSO_CALLED.get(product, product)
    return next((recipe for recipe in recipes if recipe.product == named), None)
