"""Differences between versions of MySQL and MariaDB: one row for each change.

A row holds from its version on, until the next row of its product. It has only the facts needed to
make, start and question a server. `identify.files_of` finds a server's files; `servers.axes` has
the meaning of a plan's axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dbdyno.errors import UnknownSystemError
from dbdyno.servers.axes import FOLLOWS

REDO_PAIR: Final = {"innodb_log_file_size": "256M", "innodb_log_files_in_group": "2"}
REDO_FILE: Final = {"innodb_log_file_size": "512M"}
REDO_CAPACITY: Final = {"innodb_redo_log_capacity": "512M"}
QUERY_CACHE: Final = {"query_cache_type": "OFF", "query_cache_size": "0"}
NO_GTIDS: Final = {"gtid_mode": "OFF"}  # on by default in 9.7, off in all before
TLS_VERSIONS: Final = ("tls_version=", "tls_version=TLSv1.2,TLSv1.3")  # there is no switch
SNAPSHOT: Final = {"innodb_snapshot_isolation": "OFF"}  # on from 11.6; MySQL has no such errors


@dataclass(frozen=True)
class Family:
    """Properties of a product from a version on.

    Attributes:
        redo: the common redo space under the names of this version.
        common: further settings of a fair comparison for this family only.
        tls_off, tls_on: lines of a configuration file without and with TLS.
        from_sql: the product's SQL, fed to ``--bootstrap``, makes its system tables, and ``GRANT …
            IDENTIFIED BY`` sets passwords; others have ``--initialize-insecure`` and ``ALTER USER …
            IDENTIFIED WITH``, which older versions lack or name other plugins for.
        x_protocol: it listens for a second protocol unless told otherwise.
        redo_switch: a statement switches its redo log off.
    """

    product: str
    since: tuple[int, ...]
    redo: Mapping[str, str]
    common: Mapping[str, str] = field(default_factory=dict)
    tls_off: str = "skip_ssl"
    tls_on: str = "ssl"
    from_sql: bool = False
    x_protocol: bool = False
    redo_switch: bool = False


FAMILIES: Final = (
    Family("mysql", (5, 6), REDO_PAIR, QUERY_CACHE, from_sql=True),
    Family("mysql", (5, 7), REDO_PAIR, QUERY_CACHE),
    Family("mysql", (8, 0), REDO_PAIR, x_protocol=True),
    Family("mysql", (8, 0, 21), REDO_PAIR, x_protocol=True, redo_switch=True),
    Family("mysql", (8, 0, 30), REDO_CAPACITY, x_protocol=True, redo_switch=True),
    Family(
        "mysql", (8, 4), REDO_CAPACITY, NO_GTIDS, *TLS_VERSIONS, x_protocol=True, redo_switch=True
    ),
    Family("mariadb", (10, 1), REDO_PAIR, QUERY_CACHE, from_sql=True),
    Family("mariadb", (10, 5), REDO_FILE, QUERY_CACHE, from_sql=True),
    Family("mariadb", (11, 4, 2), REDO_FILE, QUERY_CACHE | SNAPSHOT, from_sql=True),
)


def family_of(product: str, version: tuple[int, ...]) -> Family:
    """The row for a product's version.

    Raises:
        UnknownSystemError: dbdyno cannot run this product or version.
    """
    named = FOLLOWS.get(product, product)
    rows = [family for family in FAMILIES if family.product == named]
    fitting = [family for family in rows if family.since <= version]
    if not fitting:
        said = f"{product} {'.'.join(map(str, version))}"
        oldest = {family.product: family.since for family in reversed(FAMILIES)}
        wanted = [f"{name} from {major}.{minor} on" for name, (major, minor, *_) in oldest.items()]
        raise UnknownSystemError(
            f"dbdyno cannot run {said}", wanted=" or ".join(reversed(wanted)), found=said
        )
    return fitting[-1]
