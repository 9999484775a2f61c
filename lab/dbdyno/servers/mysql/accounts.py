"""The SQL that gives a server its two accounts anew at each start, in each family's words.

It is run by the server itself before anybody can log in, from a file that goes at once. One
statement a line: that is all the oldest servers read there.
"""

from __future__ import annotations

from typing import Final

from dbdyno.servers.base import Credentials
from dbdyno.servers.mysql.versions import family_of
from dbdyno.servers.programs.catalog_entry import CatalogEntry

DATABASE: Final = "sbtest"


def accounts_sql(entry: CatalogEntry, root: Credentials, load: Credentials) -> str:
    """Fresh passwords for root and the load user, and the load's database; one statement a line."""
    family = family_of(entry.product, entry.version_numbers)
    ways = {"alter": _altered, "grant": _granted}
    return "\n".join(
        [
            "SET SESSION sql_log_bin = 0;",
            *ways[family.accounts](entry, root, load),
            f"CREATE DATABASE IF NOT EXISTS {DATABASE};",
            "",
        ]
    )


def _altered(entry: CatalogEntry, root: Credentials, load: Credentials) -> list[str]:
    user = f"'{load.user}'@'%'"
    return [
        f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{root.password}';",
        f"CREATE USER IF NOT EXISTS {user};",
        f"ALTER USER {user} IDENTIFIED WITH {entry.authentication} BY '{load.password}';",
        f"GRANT ALL ON *.* TO {user};",
    ]


def _granted(_: CatalogEntry, root: Credentials, load: Credentials) -> list[str]:
    """MySQL 5.6 cannot alter a user's password, MariaDB 10.1 no user; a grant makes both."""
    return [
        "GRANT ALL ON *.* TO 'root'@'localhost' "
        f"IDENTIFIED BY '{root.password}' WITH GRANT OPTION;",
        f"GRANT ALL ON *.* TO '{load.user}'@'%' IDENTIFIED BY '{load.password}';",
    ]
