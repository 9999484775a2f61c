"""A PostgreSQL's configuration, and the proof that it is in force.

As for MySQL, the common settings make servers comparable (same memory, same room for the write-
ahead log, same durability, checksums on every page as InnoDB has them) and leave a version's
choices for its own engine alone: autovacuum, the background writer, the I/O method. They are
written to ``postgresql.auto.conf``, which a server reads last, so nothing overrules them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from dbdyno.errors import UsageError
from dbdyno.plan.settings import SettingValue, each_value, on_or_off
from dbdyno.servers.base import not_taken, refuse_owned, unique_settings
from dbdyno.servers.process import LOOPBACK
from dbdyno.servers.programs.catalog import CatalogEntry

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
INITDB: Final = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C")
"""Given to initdb for every system."""
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


def effective(entry: CatalogEntry, requested: Mapping[str, SettingValue]) -> dict[str, str]:
    """All settings given to the server, by parameter name: the common ones, then the user's.

    Raises:
        UsageError: a key belongs to the lab, is malformed or given twice, a value cannot stand in
            a configuration file, or initdb would not take it.
    """
    own = normalise(requested)
    refuse_owned(entry.reference, own, OWNED)
    whole = {**COMMON, **own}
    initdb_options(entry, whole)  # reports an error in these before anything is made
    return whole


def normalise(requested: Mapping[str, SettingValue]) -> dict[str, str]:
    """Keys as parameter names, values as text: ``Shared-Buffers`` becomes ``shared_buffers``."""
    return unique_settings((key, *_normal(key, value)) for key, value in requested.items())


def _normal(key: str, value: SettingValue) -> tuple[str, str]:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$-]*(\.[A-Za-z_][A-Za-z0-9_$-]*)*", key):
        raise UsageError(f"{key!r} is not the name of a setting")
    text = ",".join(str(on_or_off(part)) for part in each_value(value))
    if not text.isprintable():
        raise UsageError(f"{key}: {text!r} cannot stand in a configuration file")
    return key.lower().replace("-", "_"), text


def fixed(entry: CatalogEntry, settings: Mapping[str, str]) -> str:
    """The settings that are fixed once a data directory exists; for messages."""
    return " ".join(initdb_options(entry, settings)) or "initdb's own"


def initdb_options(entry: CatalogEntry, settings: Mapping[str, str]) -> list[str]:
    """Options of initdb for these settings.

    Raises:
        UsageError: checksums that are neither on nor off, or an impossible segment size.
    """
    options: list[str] = []
    if _checksums_on(settings):
        options.append("--data-checksums")
    elif entry.version_numbers >= CHECKSUMS_BY_DEFAULT:
        options.append("--no-data-checksums")  # an unknown option before
    if "wal_segment_size" in settings:
        options.append(f"--wal-segsize={_segment_megabytes(settings['wal_segment_size'])}")
    return options


data_format = initdb_options  # it also decides the bytes of the data directory


def _checksums_on(settings: Mapping[str, str]) -> bool:
    text = settings.get("data_checksums", "on").lower()
    if text not in SWITCHED_ON | SWITCHED_OFF:
        raise UsageError("data_checksums takes no value but on or off", found=repr(text))
    return text in SWITCHED_ON


def segment_bytes(settings: Mapping[str, str]) -> int:
    """Size of a segment of the write-ahead log; UsageError for an impossible size."""
    return _segment_megabytes(settings.get("wal_segment_size", "16MB")) * 1024**2


def _segment_megabytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*(MB|GB)", text.strip())
    megabytes = int(match[1]) * (1024 if match[2] == "GB" else 1) if match else 0
    if megabytes not in WAL_SEGMENT_MEGABYTES:
        raise UsageError(
            f"wal_segment_size: {text!r} is not a size of a log segment",
            wanted="a power of two from 1MB to 1GB",
        )
    return megabytes


def places_of(
    work: Path, socket_folder: Path, port: int, address: str = LOOPBACK
) -> dict[str, str]:
    """Settings for the places of an instance's files; they belong to the lab."""
    return {
        "listen_addresses": address,
        "port": str(port),
        "unix_socket_directories": '"{}"'.format(str(socket_folder).replace('"', '""')),
        "unix_socket_permissions": "0700",
        "hba_file": str(work / "pg_hba.conf"),
        "ident_file": str(work / "pg_ident.conf"),
        "password_encryption": "scram-sha-256",
        "log_destination": "stderr",
        "logging_collector": "off",
    }


def render(settings: Mapping[str, str]) -> str:
    """Text of a ``postgresql.auto.conf``, without the options of initdb."""
    given = {name: text for name, text in settings.items() if name not in AT_INITIALISATION}
    return "".join(f"{name} = {_quoted(text)}\n" for name, text in given.items())


def _quoted(text: str) -> str:
    """A quoted value, with doubled quotes and escaped backslashes."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"


# Settings are read back. The server shows a parameter as a number of its own unit (shared_buffers
# as pages of 8 kB) and rounds a value between units: both sides are converted to one unit, exactly,
# and a rounded value is an error with both values.


AS_THE_SERVER_HAS_IT: Final = "SET LOCAL statement_timeout TO DEFAULT; "
"""Prefix of a question about settings, since the answer would show the session's own limit."""
SETTINGS: Final = AS_THE_SERVER_HAS_IT + "SHOW ALL"
QUESTION: Final = (
    AS_THE_SERVER_HAS_IT + "SELECT name, setting, coalesce(unit, ''), vartype FROM pg_settings"
)
BYTES_OF: Final[Mapping[str, int]] = {
    unit: 1024**power for power, unit in enumerate(("B", "kB", "MB", "GB", "TB"))
}
MICROSECONDS_OF: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
NUMBER: Final = r"[+-]?(?:0x[0-9a-fA-F]{1,16}|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)"
CHOSEN_BY_THE_SERVER: Final[Mapping[str, str]] = {  # asked for with this, shown as what it chose
    "wal_buffers": "-1",
    "commit_timestamp_buffers": "0",
    "subtransaction_buffers": "0",
    "transaction_buffers": "0",
}

SHOWN_AS: Final[Mapping[str, Mapping[str, str]]] = {  # words that the server shows as others
    "wal_compression": dict.fromkeys(SWITCHED_ON, "pglz"),
    "wal_level": dict.fromkeys(("archive", "hot_standby"), "replica"),
}


class Parameter(NamedTuple):
    """A row of ``pg_settings``.

    Attributes:
        unit: unit of the number, such as ``8kB`` or ``ms``; empty for a plain number.
        kind: bool, integer, real, enum or string.
    """

    name: str
    shown: str
    unit: str
    kind: str

    @property
    def text(self) -> str:
        """The value with its unit, as 32768 x 8kB."""
        if not self.unit:
            return self.shown
        between = " x " if self.unit[0].isdigit() else " "
        return f"{self.shown}{between}{self.unit}"


def check(label: str, requested: Mapping[str, str], answered: Iterable[tuple[str, ...]]) -> None:
    """Raise ServerError, with every deviating setting and both values, unless all are in force.

    Args:
        answered: the rows of the answer to `QUESTION`.
    """
    shown = {row[0].lower(): Parameter(*row) for row in answered}
    wrong = [
        (name, text, repr(shown[name].text) if name in shown else "no such parameter")
        for name, text in requested.items()
        if not _in_force(text, shown.get(name))
    ]
    if wrong:
        raise not_taken(label, wrong)


def _in_force(requested: str, parameter: Parameter | None) -> bool:
    if parameter is None:
        return False
    if CHOSEN_BY_THE_SERVER.get(parameter.name) == requested:
        return True
    return same_value(requested, parameter)


def same_value(requested: str, parameter: Parameter) -> bool:
    """Test for the same value: 256MB and 32768 of 8kB, yes and on."""
    requested = requested.strip()
    if requested.casefold() == parameter.shown.casefold():
        return True
    if SHOWN_AS.get(parameter.name, {}).get(requested.casefold()) == parameter.shown:
        return True
    if parameter.kind in {"bool", "enum"}:
        wanted = _switched(requested, short=parameter.kind == "bool")
        return wanted is not None and wanted == _switched(parameter.shown, short=False)
    if parameter.kind in {"integer", "real"}:
        wanted_amount, amount = _amount(requested, parameter.unit), _amount(parameter.shown, "")
        return wanted_amount is not None and wanted_amount == amount
    return _words(requested) == _words(parameter.shown)


def _switched(text: str, *, short: bool) -> bool | None:
    """Meaning of a switch word; a boolean may be cut short, as `t` or `of`."""
    word = text.casefold()
    if word in SWITCHED_ON | SWITCHED_OFF:
        return word in SWITCHED_ON
    if short and word and word != "o":
        for words, meaning in ((SWITCHED_ON, True), (SWITCHED_OFF, False)):
            if any(whole.startswith(word) for whole in words):
                return meaning
    return None


def _amount(text: str, unit: str) -> Fraction | None:
    """A number, perhaps with a unit of its own, counted in `unit`; None for other text."""
    match = re.fullmatch(rf"({NUMBER})\s*([a-zA-Z]*)", text)
    if match is None:
        return None
    number = _number(match[1])
    if number is None or not match[2]:
        return number
    factor, own = _factor(unit), _factor(match[2])
    if factor is None or own is None or factor[0] != own[0]:
        return None
    return number * own[1] / factor[1]


def _number(text: str) -> Fraction | None:
    """A decimal, hexadecimal or octal number, as C writes them."""
    try:
        if re.fullmatch(r"[+-]?0x[0-9a-fA-F]+", text):
            return Fraction(int(text, 16))
        if re.fullmatch(r"[+-]?0[0-7]+", text):
            return Fraction(int(text, 8))
        return Fraction(Decimal(text))
    except (InvalidOperation, ValueError, OverflowError):
        return None


def _factor(unit: str) -> tuple[str, int] | None:
    """Dimension of a unit and its size in base units: ``8kB`` is 8192 bytes."""
    match = re.fullmatch(r"(\d*)([a-zA-Z]+)", unit)
    if match is None:
        return None
    many = int(match[1] or 1)
    if match[2] in BYTES_OF:
        return "bytes", many * BYTES_OF[match[2]]
    if match[2] in MICROSECONDS_OF:
        return "time", many * MICROSECONDS_OF[match[2]]
    return None


def _words(text: str) -> list[str]:
    """Items of a list, lower case, without blanks around them."""
    return [word.strip().casefold() for word in text.split(",")]
