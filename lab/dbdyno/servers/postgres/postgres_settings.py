"""The configuration a PostgreSQL gets: dbdyno's common settings with the user's laid over them.

As for the other families, the common settings make servers comparable (same memory, same room for
the write-ahead log, same durability, checksums on every page as InnoDB has them) and leave alone
what a version chooses for its own engine: autovacuum, the background writer, the I/O method. They
are written to ``postgresql.auto.conf``, which a server reads last, so nothing overrules them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.plan.settings import OptionValue
from dbdyno.servers.programs.catalog_entry import CatalogEntry

COMMON: Final[Mapping[str, str]] = {
    "shared_buffers": "256MB",
    "huge_pages": "off",  # with "try", each start would take what the machine has just then
    "max_wal_size": "512MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "data_checksums": "on",  # off by default before 18, on from there
    "max_connections": "1024",
    "ssl": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",  # else both are the machine's
    "lc_messages": "C",  # the lab reads the log
}
AT_INITIALISATION: Final = ("data_checksums", "wal_segment_size")
"""Given to initdb: cannot be changed once the data directory exists."""
CHECKSUMS_BY_DEFAULT: Final = (18,)
WAL_SEGMENT_MEGABYTES: Final = tuple(2**power for power in range(11))
OWNED: Final = frozenset(  # where an instance's files are, and what the lab reads, is its business
    {
        *("data_directory", "config_file", "hba_file", "ident_file", "external_pid_file"),
        *("listen_addresses", "unix_socket_directories", "unix_socket_group"),
        *("unix_socket_permissions", "password_encryption"),
        *("log_destination", "logging_collector", "log_directory", "log_filename"),
        *("include", "include_dir", "include_if_exists"),
    }
)
SWITCHED_ON: Final = frozenset({"on", "true", "yes", "1"})
SWITCHED_OFF: Final = frozenset({"off", "false", "no", "0"})


def effective(entry: CatalogEntry, asked: Mapping[str, OptionValue]) -> dict[str, str]:
    """Every setting the server is given, by parameter name: the common ones, then the user's.

    Raises:
        UsageError: a key belongs to the lab, is malformed or given twice, a value cannot stand in
            a configuration file, or initdb would not take it.
    """
    own = normalise(asked)
    taken = sorted(OWNED & own.keys())
    if taken:
        raise UsageError(
            f"{entry.reference}: {', '.join(taken)} cannot be set: dbdyno decides where a "
            "server's files are and how it is reached",
            hint="leave the key out",
        )
    whole = {**COMMON, **own}
    initdb_options(entry, whole)  # a value it would not take is told before anything is made
    return whole


def normalise(asked: Mapping[str, OptionValue]) -> dict[str, str]:
    """Keys as parameter names, values as text: ``Shared-Buffers`` becomes ``shared_buffers``.

    Raises:
        UsageError: a malformed key, one key in two spellings, or a value with control characters.
    """
    found: dict[str, str] = {}
    for key, value in asked.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$-]*(\.[A-Za-z_][A-Za-z0-9_$-]*)*", key):
            raise UsageError(f"{key!r} is not the name of a setting")
        text = ("on" if value else "off") if isinstance(value, bool) else str(value)
        if not text.isprintable():
            raise UsageError(f"{key}: {text!r} cannot stand in a configuration file")
        name = key.lower().replace("-", "_")
        if name in found:
            raise UsageError(f"the setting {name} is given twice, the second time as {key}")
        found[name] = text
    return found


def at_initialisation(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of the settings that initdb is told; they also decide the bytes of the data."""
    return {name: settings[name] for name in AT_INITIALISATION if name in settings}


def initdb_options(entry: CatalogEntry, settings: Mapping[str, str]) -> list[str]:
    """What initdb is called with for these settings.

    Raises:
        UsageError: checksums that are neither on nor off, a segment size that cannot be.
    """
    options: list[str] = []
    if _checksums_on(settings):
        options.append("--data-checksums")
    elif entry.version_numbers >= CHECKSUMS_BY_DEFAULT:
        options.append("--no-data-checksums")  # an unknown option before
    if "wal_segment_size" in settings:
        options.append(f"--wal-segsize={_segment_megabytes(settings['wal_segment_size'])}")
    return options


def _checksums_on(settings: Mapping[str, str]) -> bool:
    text = settings.get("data_checksums", "on").lower()
    if text not in SWITCHED_ON | SWITCHED_OFF:
        raise UsageError("data_checksums takes no value but on or off", found=repr(text))
    return text in SWITCHED_ON


def _segment_megabytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*(MB|GB)", text.strip())
    megabytes = int(found[1]) * (1024 if found[2] == "GB" else 1) if found else 0
    if megabytes not in WAL_SEGMENT_MEGABYTES:
        raise UsageError(
            f"wal_segment_size: {text!r} is not a size of a log segment",
            wanted="a power of two from 1MB to 1GB",
        )
    return megabytes


def places_of(work: Path, socket_folder: Path, port: int) -> dict[str, str]:
    """The settings that say where an instance's files are; they belong to the lab."""
    return {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": _quoted_item(str(socket_folder)),
        "unix_socket_permissions": "0700",
        "hba_file": str(work / "pg_hba.conf"),
        "ident_file": str(work / "pg_ident.conf"),
        "password_encryption": "scram-sha-256",
        "log_destination": "stderr",
        "logging_collector": "off",
    }


def render(settings: Mapping[str, str]) -> str:
    """The text of a ``postgresql.auto.conf``, without what initdb was told."""
    given = {name: text for name, text in settings.items() if name not in AT_INITIALISATION}
    return "".join(f"{name} = {_quoted(text)}\n" for name, text in given.items())


def _quoted(text: str) -> str:
    """A value between quotes, in which a quote is doubled and a backslash begins an escape."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"


def _quoted_item(text: str) -> str:
    """One item of a list of names: commas and blanks in it are its own."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
