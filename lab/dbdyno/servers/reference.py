"""Grammar of a plan's server references: a version, a folder, an archive, an image, an endpoint.

    mysql:8.0.15                                       a version of the catalog, fetched by name
    path:/opt/mysql                                    a folder with programs
    https://example.com/server.tar.xz#sha256=…         a vendor's archive
    container:IMAGE@sha256:…                           an image of docker or podman
    mysql://USER@HOST:PORT/DATABASE[?ssl-mode=MODE]    servers run by somebody else
    postgresql://USER@HOST:PORT/DATABASE[?sslmode=…]   the same for PostgreSQL

Each names exactly one server: "the newest 8.0", an address alone or an image's tag would be another
server next month, and a stored result could not be traced to its server. So dbdyno adds the digest
of the bytes to an archive's address before a run begins (`open.pinned`). A reference is stored with
its run and shown in reports, so it never holds a password: a reference with a password is refused,
and the message does not repeat it.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from dbdyno import _engine
from dbdyno.errors import UnknownSystemError, UsageError, most_alike
from dbdyno.plan.systems import ARCHIVE_SCHEMES, ENDPOINT_SCHEMES
from dbdyno.servers.base import MYSQL, OFF, PGSQL, PLAIN, Credentials, Encryption, Endpoint
from dbdyno.servers.programs.catalog import CATALOG, CatalogEntry
from dbdyno.servers.programs.given import TarballSource

FOLDER_SCHEME: Final = "path:"
OLD_ARCHIVE_SCHEME: Final = "tarball:"
ARCHIVE_FORM: Final = "https://example.com/server.tar.xz#sha256=<64 hexadecimal digits>"
IMAGE_SCHEME: Final = "container:"
OTHER_PROTOCOLS: Final = ("mariadb://", "tidb://")

_IMAGE = re.compile(r"([a-z0-9][a-z0-9._/:-]*)@(sha256:[0-9a-f]{64})")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_USER = re.compile(r"[A-Za-z0-9._%-]{1,80}")
_DATABASE = re.compile(r"[A-Za-z0-9_$-]{1,64}")
_SECRET = re.compile(
    r"(?:token|secret|passw|signature|credential|key)[^=&]*=|\bsig=", re.IGNORECASE
)
"""Parameter of an address with which others could log in."""
_OPTION = re.compile(
    r"(?P<name>user|password)\s*=\s*"
    r"(?:(?P<mark>[\"'])(?P<quoted>.*?)(?P=mark)|(?P<plain>[^#]*?))\s*(?:#.*)?"
)
_ESCAPED = re.compile(r"\\([btnrs\\])")
ESCAPES: Final = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " ", "\\": "\\"}
"""Backslash escapes in the values of an option file."""


@dataclass(frozen=True)
class VersionReference:
    """A row of the catalog."""

    entry: CatalogEntry


@dataclass(frozen=True)
class FolderReference:
    """A folder on this machine with a server's programs, which identify the server when run."""

    text: str
    folder: Path


@dataclass(frozen=True)
class ArchiveReference:
    """A vendor's archive by address and digest, if known; its programs identify the server."""

    text: str
    source: TarballSource


@dataclass(frozen=True)
class ImageReference:
    """An image of docker or podman; `name` is ``IMAGE@sha256:HEX``."""

    text: str
    name: str


@dataclass(frozen=True)
class EndpointProtocol:
    """Notation of a product's endpoints, following its own clients.

    Attributes:
        form: the reference's syntax.
        password_variable: environment variable from which the product's clients take the password.
        encryption, authorities: names of its options for TLS and for the authorities' file.
        usual_authorities: variable and path of the file that its clients take without the option.
        modes: mode of `Encryption` by value of the TLS option, the default first.
        of_key: names of its options for the server's key.
    """

    form: str
    port: int
    password_variable: str
    encryption: str
    authorities: str
    modes: Mapping[str, str]
    of_key: tuple[str, ...] = ()
    usual_authorities: tuple[str, str] | None = None


KEY_FILE: Final = "server-public-key-path"
ANY_KEY: Final = "get-server-public-key"
PROTOCOLS: Final[Mapping[str, EndpointProtocol]] = {
    MYSQL: EndpointProtocol(
        form="mysql://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE[?ssl-mode=MODE]",
        port=3306,
        password_variable="MYSQL_PWD",  # noqa: S106 - a variable's name
        encryption="ssl-mode",
        authorities="ssl-ca",
        modes={mode.upper(): mode for mode in (OFF, "required", "verify_ca", "verify_identity")},
        of_key=(KEY_FILE, ANY_KEY),
    ),
    PGSQL: EndpointProtocol(
        form="postgresql://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE[?sslmode=MODE]",
        port=5432,
        password_variable="PGPASSWORD",  # noqa: S106 - a variable's name
        encryption="sslmode",
        authorities="sslrootcert",
        modes={
            "disable": OFF,
            "require": "required",
            "verify-ca": "verify_ca",
            "verify-full": "verify_identity",
        },
        usual_authorities=("PGSSLROOTCERT", "~/.postgresql/root.crt"),
    ),
}
"""By the engine's driver."""


@dataclass(frozen=True)
class EndpointReference:
    """Addresses of foreign servers, the user, and the database of the load's tables."""

    user: str
    addresses: tuple[tuple[str, int], ...]
    database: str
    encryption: Encryption = PLAIN
    driver: str = MYSQL

    @property
    def endpoint(self) -> Endpoint:
        """The first address, followed by the others."""
        first, *others = (
            Endpoint(host, port, None, encryption=self.encryption, is_foreign=True)
            for host, port in self.addresses
        )
        return replace(first, others=tuple(others))


Programs = VersionReference | FolderReference | ArchiveReference
"""Servers whose programs dbdyno runs itself, as processes of this machine."""
Reference = Programs | ImageReference | EndpointReference


def parse(text: str) -> Reference:
    """Parse a reference; no I/O.

    Raises:
        UnknownSystemError: not in the catalog (lists the known versions), malformed, or with a
            password.
    """
    if is_endpoint(text):
        return _endpoint(text.strip())
    if text.startswith(FOLDER_SCHEME):
        return _folder(text)
    if text.strip().lower().startswith(ARCHIVE_SCHEMES):
        return _archive(text)
    if text.startswith(IMAGE_SCHEME):
        return _image(text)
    return VersionReference(find(text))


def is_endpoint(text: str) -> bool:
    """True for references to foreign servers, well formed or not."""
    return text.strip().lower().startswith((*ENDPOINT_SCHEMES, *OTHER_PROTOCOLS))


def find(reference: str) -> CatalogEntry:
    """The catalog's row for a reference.

    Raises:
        UnknownSystemError: no such form, product or version; lists the known versions and the
            nearest, or the way to write a server that no registry has.
    """
    typed = reference.strip().lower()
    for entry in CATALOG:
        if entry.reference == typed:
            return entry
    product, _, version = typed.partition(":")
    siblings = [entry for entry in CATALOG if entry.product == product]
    recipe = recipe_for(product)
    if recipe is not None and not siblings:
        raise UnknownSystemError(
            f"dbdyno cannot fetch {product} by name: {recipe.why}",
            found=repr(reference),
            hint=recipe.written_for(version),
        )
    nearest = _nearest(typed)
    hint = f"did you mean {nearest}?" if nearest else "see: dbdyno servers list"
    if recipe is not None and recipe.is_whole(version):
        ways = recipe.written_for(version)
        hint = f"{ways}; the nearest that dbdyno fetches by name is {nearest}"
    raise UnknownSystemError(
        _mismatch(typed, reference),
        wanted=f"one of {', '.join(entry.reference for entry in siblings or CATALOG)}",
        found=repr(reference),
        hint=hint,
    )


def credentials(reference: EndpointReference, password_env: str) -> Credentials:
    """The user with a password from the environment, else from the client's password file.

    Args:
        password_env: the variable to read; empty for the product's own: MYSQL_PWD or PGPASSWORD,
            else ~/.my.cnf or ~/.pgpass, else no password.

    Raises:
        UsageError: the named variable is not set, or others may read the file.
    """
    named = password_env or PROTOCOLS[reference.driver].password_variable
    secret = _lent.get(named, os.environ.get(named))
    if password_env and secret is None:
        raise UsageError(
            f"the password of {reference.user} is not there",
            wanted=f"the environment variable {password_env}, as password_env says",
            found="it is not set",
            hint=f"export {password_env} before the run, empty for a user without a password",
        )
    return Credentials(reference.user, _from_file(reference) if secret is None else secret)


_lent: Final[dict[str, str]] = {}


def lend_password(variable: str, password: str) -> None:
    """Have `credentials` find a password under the name of a variable, which stays unset.

    Child processes inherit variables, and would get the password with them.
    """
    _lent[variable] = password


def _from_file(reference: EndpointReference) -> str:
    """The password in the client's password file; empty if it has none."""
    if reference.driver == PGSQL:
        path, read = Path(os.environ.get("PGPASSFILE") or "~/.pgpass"), _of_pgpass
    else:
        path, read = Path("~/.my.cnf"), _of_my_cnf
    try:
        path = path.expanduser()
        secret = read(path.read_text(errors="replace"), reference)
        is_open = bool(path.stat().st_mode & 0o077)
    except (OSError, RuntimeError):  # no such file, or no home folder
        return ""
    if secret and is_open:
        raise UsageError(
            f"others may read the password of {reference.user} in {path}",
            wanted="a file that only its owner reads",
            hint=f"chmod 600 {path}",
        )
    return secret


def _of_pgpass(text: str, reference: EndpointReference) -> str:
    host, port = reference.addresses[0]
    return _engine.password_in_file(text, host, port, reference.database, reference.user)


def _of_my_cnf(text: str, reference: EndpointReference) -> str:
    """From the group [client], unless it names another user."""
    group = ""
    options: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group == "client" and (option := _OPTION.fullmatch(line)):
            value = option["quoted"] or option["plain"] or ""
            options[option["name"]] = _ESCAPED.sub(lambda match: ESCAPES[match[1]], value)
    return options.get("password", "") if options.get("user") in (None, reference.user) else ""


def _folder(reference: str) -> FolderReference:
    folder = Path(reference.removeprefix(FOLDER_SCHEME)).expanduser()
    if not folder.is_absolute():
        raise UnknownSystemError(
            f"{reference!r} does not name a folder from the root on",
            wanted="path:/folder, the folder that holds bin or sbin",
            hint=f"did you mean path:{folder.absolute()}?" if folder.name else None,
        )
    return FolderReference(reference, folder)


def _archive(reference: str) -> ArchiveReference:
    text = reference.strip()
    address, hash_sign, fragment = text.removeprefix(OLD_ARCHIVE_SCHEME).partition("#")
    is_file = address.lower().startswith("file:")
    place = text.partition("//")[2].partition("/")[0] if is_file else text
    if "@" in place or _SECRET.search(text.partition("?")[2]):
        raise UnknownSystemError(
            "an address with a user, a password or a token would be stored and shown",
            wanted=ARCHIVE_FORM,
            hint="download the archive by hand and name it as file:///folder/server.tar.xz",
        )
    try:
        parts = urllib.parse.urlsplit(address)
        host, _ = parts.hostname or "", parts.port  # the port is read to be checked
    except ValueError:  # its text may quote a password
        raise UnknownSystemError(
            "the address of an archive cannot be read", wanted=ARCHIVE_FORM
        ) from None
    if parts.scheme not in ("https", "http", "file") or not parts.path or not (host or is_file):
        raise UnknownSystemError(f"{text!r} has no address", wanted=ARCHIVE_FORM)
    digest = re.fullmatch(r"sha256=([0-9a-fA-F]{64})", fragment)
    if hash_sign and digest is None:
        raise UnknownSystemError(
            f"{fragment!r} is no digest",
            wanted=ARCHIVE_FORM,
            hint="the vendor publishes it; without one, dbdyno downloads the archive and shows it",
        )
    if digest is None and parts.scheme == "http" and not _is_loopback(host):
        raise UnknownSystemError(
            f"{text!r} has no digest, and on the way over http others can change the archive",
            wanted=ARCHIVE_FORM,
            hint="write https://, or the vendor's digest behind the address, as #sha256=…",
        )
    return ArchiveReference(text, TarballSource(address, digest[1].lower() if digest else ""))


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _image(reference: str) -> ImageReference:
    match = _IMAGE.fullmatch(reference.removeprefix(IMAGE_SCHEME))
    if match is None:
        raise UnknownSystemError(
            "an image is named with its digest, since a tag is another image next month",
            wanted="container:IMAGE@sha256: and 64 digits, as in container:docker.io/library/mysql",
            found=repr(reference),
            hint="docker pull IMAGE:TAG prints the digest",
        )
    return ImageReference(reference, f"{match[1]}@{match[2]}")


def _endpoint(text: str) -> EndpointReference:
    scheme, _, rest = text.partition("://")
    if f"{scheme.lower()}://" not in ENDPOINT_SCHEMES:
        raise _no_endpoint(
            f"{scheme}:// is no endpoint that dbdyno can load",
            "MariaDB and TiDB speak MySQL's protocol: write mysql://",
        )
    driver = MYSQL if scheme.lower() == "mysql" else PGSQL
    protocol = PROTOCOLS[driver]
    login, _, place = rest.rpartition("@")
    hosts, _, rest = place.partition("/")
    database, _, query = rest.partition("?")
    user, colon, _ = login.partition(":")
    if colon:
        raise _no_endpoint(
            "an endpoint's reference holds a password",
            f"leave it out: it is taken from password_env or {protocol.password_variable}",
            protocol,
        )
    if not _USER.fullmatch(user):
        lacks = "an endpoint's reference lacks a user, or has an odd one before the @"
        raise _no_endpoint(lacks, None, protocol)
    if not _DATABASE.fullmatch(database):
        lacks = f"an endpoint's reference lacks a database, or has an odd one: {database!r}"
        raise _no_endpoint(lacks, None, protocol)
    addresses = tuple(_address(part, protocol) for part in hosts.split(","))
    return EndpointReference(user, addresses, database, _encryption(query, protocol), driver)


def _encryption(query: str, protocol: EndpointProtocol) -> Encryption:
    """Parse ``ssl-mode=VERIFY_CA&ssl-ca=/ca.pem``, or the product's own names for it."""
    options = dict(part.partition("=")[::2] for part in query.split("&") if part)
    typed = options.get(protocol.encryption, next(iter(protocol.modes)))
    mode = {name.lower(): mode for name, mode in protocol.modes.items()}.get(typed.lower())
    any_key = options.get(ANY_KEY, "false").lower()
    named = {protocol.encryption, protocol.authorities, *protocol.of_key}
    if options.keys() - named or mode is None or any_key not in ("true", "false"):
        hint = f"{protocol.encryption} takes {', '.join(protocol.modes)}; {protocol.authorities}"
        hint += f" and {KEY_FILE} a file; {ANY_KEY} true" if protocol.of_key else " a file"
        raise _no_endpoint(f"{query!r} is not what an endpoint takes", hint, protocol)
    ca, key = (
        _file(name, options.get(name, ""), protocol) for name in (protocol.authorities, KEY_FILE)
    )
    if ca and not mode.startswith("verify"):
        *_, weaker, stronger = protocol.modes
        hint = f"write {protocol.encryption}={weaker} or {protocol.encryption}={stronger}"
        raise _no_endpoint(f"{typed} takes no {protocol.authorities}", hint, protocol)
    if mode != OFF and not ca and protocol.usual_authorities:
        variable, usual = protocol.usual_authorities
        ca = Path(os.environ.get(variable) or os.path.expanduser(usual))  # noqa: PTH111 - no home
    if mode.startswith("verify") and not ca:
        lacks = f"{typed} lacks {protocol.authorities}, the file of authorities to trust"
        raise _no_endpoint(lacks, None, protocol)
    chosen = Encryption(mode, ca, key, any_key == "true")
    if [mode != OFF, key is not None, chosen.takes_any_key].count(True) > 1:
        twice = f"{query!r} says more than once how the password is encrypted"
        raise _no_endpoint(twice, f"{KEY_FILE} and {ANY_KEY} are for logins without TLS", protocol)
    return chosen


def _file(name: str, typed: str, protocol: EndpointProtocol) -> Path | None:
    if typed and not Path(typed).is_absolute():
        wrong = f"{name}={typed} is not a file's path from the root on"
        raise _no_endpoint(wrong, None, protocol)
    return Path(typed) if typed else None


def _address(text: str, protocol: EndpointProtocol) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text.strip())
    port = int(match[2] or protocol.port) if match else 0
    if match is None or not 0 < port < 65536:
        wrong = f"{text!r} is no address of an endpoint"
        raise _no_endpoint(wrong, "write HOST or HOST:PORT", protocol)
    return match[1].strip("[]"), port


def _no_endpoint(
    message: str, hint: str | None = None, protocol: EndpointProtocol = PROTOCOLS[MYSQL]
) -> UnknownSystemError:
    return UnknownSystemError(message, wanted=protocol.form, hint=hint)


def _mismatch(typed: str, reference: str) -> str:
    product, colon, version = typed.partition(":")
    if not colon or not product or not version:
        return f"{reference!r} does not name a product and a version, as in mysql:8.0.15"
    if product not in {entry.product for entry in CATALOG}:
        return f"dbdyno knows no product {product!r}"
    return f"dbdyno knows no version {version!r} of {product}"


def _nearest(typed: str) -> str | None:
    """Suggestion for a mistyped reference.

    The newest version that continues the typed text, else the product's next older version or its
    oldest, else the most similar reference, else None.
    """
    known = [entry.reference for entry in CATALOG]
    continuing = [reference for reference in known if typed and reference.startswith(typed)]
    if continuing:
        return continuing[-1]
    product, _, version = typed.partition(":")
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    siblings = [entry for entry in CATALOG if entry.product == product]
    if numbers and siblings:
        newer = bisect_left([entry.version_numbers for entry in siblings], numbers)
        return siblings[max(0, newer - 1)].reference
    return most_alike(typed, known) or None


# Servers that no package registry has. Vendors change their addresses, so a recipe names the file
# to look for and leaves address and digest to the user.


@dataclass(frozen=True)
class Recipe:
    """Instructions for a server that dbdyno cannot fetch by name.

    Attributes:
        product: its name in a reference.
        example: a published version.
        why: reason for its absence from the catalog, in a few words.
        ways: references to write, best first, each with the parts that the user must supply, and
            VERSION for the version.
    """

    product: str
    example: str
    why: str
    ways: tuple[str, ...]

    def written_for(self, version: str) -> str:
        """The instructions for a version (the example's if empty)."""
        named = (way.replace("VERSION", version or self.example) for way in self.ways)
        return ", or ".join(named) + "; see docs/reference/servers.md"

    def is_whole(self, version: str) -> bool:
        """True if a version has as many numbers as the example."""
        form = re.sub(r"\d+", r"\\d+", re.escape(self.example))
        return re.fullmatch(form, version) is not None


RECIPES: Final = (
    Recipe(
        "greatsql",
        "8.0.32-26",
        "its vendor publishes archives and images, and no package registry has them",
        (
            "write URL#sha256=HEX with the address and digest of "
            "GreatSQL-VERSION-Linux-glibc2.28-x86_64.tar.xz from its releases page",
            "container:greatsql/greatsql@sha256:HEX with the digest of the image's tag VERSION",
        ),
    ),
    Recipe(
        "percona",
        "8.0.36-28",
        "its vendor publishes archives and images, and no package registry has them",
        (
            "write URL#sha256=HEX with the address and digest of "
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
    Recipe(
        "mysql",
        "8.4.3",
        "no package registry has every version",
        (
            "write URL#sha256=HEX with the address and digest of its "
            "mysql-VERSION-linux-glibc…-x86_64.tar.xz from the vendor's archives",
            "container:mysql@sha256:HEX with the digest of the image's tag VERSION",
        ),
    ),
    Recipe(
        "mariadb",
        "10.5.9",
        "no package registry has every version",
        (
            "write URL#sha256=HEX with the address and digest of its "
            "mariadb-VERSION-linux-systemd-x86_64.tar.gz from the vendor's archives",
            "container:mariadb@sha256:HEX with the digest of the image's tag VERSION",
        ),
    ),
    Recipe(
        "postgres",
        "16.3",
        "no package registry has every version",
        ("write container:postgres@sha256:HEX with the digest of the image's tag VERSION",),
    ),
)
"""Instructions for servers, and for versions of the catalog's products, that are not in it."""
ALSO_CALLED: Final = {"percona-server": "percona", "ps": "percona", "tdsql-c": "tdsql"}


def recipe_for(product: str) -> Recipe | None:
    """Recipe of a product under any of its names, else None."""
    named = ALSO_CALLED.get(product, product)
    return next((recipe for recipe in RECIPES if recipe.product == named), None)
