"""What MySQL and MariaDB do differently from version to version: one row for each change.

A row holds from its version on, until the next row of that product. Only what the lab must know to
make, start and ask a server stands here. Where its files lie is found by `identify.files_of`;
what an axis of a plan means to it is in `servers.axes`.
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
    """The ways of one product from one version on.

    Attributes:
        product: ``mysql`` or ``mariadb``.
        since: the first version of which the row is true.
        redo: the common redo space under the names of this version.
        common: further settings of a fair comparison that only this family needs.
        tls_off, tls_on: what a configuration file says to have no TLS, and to have it.
        from_sql: whether SQL of the product's, fed to ``--bootstrap``, makes its system tables, and
            ``GRANT … IDENTIFIED BY`` sets passwords; others have ``--initialize-insecure`` and
            ``ALTER USER … IDENTIFIED WITH``, which older ones lack or name other plugins for.
        x_protocol: whether it listens for a second protocol unless that is switched off.
        redo_switch: whether a statement switches its redo log off.
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
        UnknownSystemError: a product or a version that dbdyno cannot run.
    """
    named = FOLLOWS.get(product, product)
    rows = [family for family in FAMILIES if family.product == named]
    fitting = [family for family in rows if family.since <= version]
    if not fitting:
        raise UnknownSystemError(
            f"dbdyno cannot run {product} {_written(version)}",
            wanted=" or ".join(f"{f.product} from {_written(f.since)} on" for f in _oldest()),
            found=f"{product} {_written(version)}",
        )
    return fitting[-1]


def _oldest() -> list[Family]:
    """The first row of each product."""
    return list({family.product: family for family in reversed(FAMILIES)}.values())[::-1]


def _written(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
