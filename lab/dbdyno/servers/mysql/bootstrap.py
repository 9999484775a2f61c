"""The system tables of a server that cannot initialise itself: MySQL 5.6 and every MariaDB.

Their makers ship a script that feeds SQL to the server's ``--bootstrap``. The script wants a shell,
programs beside it and a name that resolves; the SQL wants nothing. So the SQL is fed directly, and
the accounts that need no password, apart from root's own, are taken out at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError

WANTED: Final = ("{maker}_system_tables.sql", "{maker}_system_tables_data.sql")
PARTS: Final = (  # in this order, each where the version has it; MariaDB renamed its own in 11.0
    "{maker}_system_tables.sql",
    "{maker}_performance_tables.sql",
    "{maker}_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "{maker}_sys_schema.sql",
)
MAKERS: Final = ("mariadb", "mysql")
BEFORE: Final = ("USE mysql;", "SET @auth_root_socket=NULL;", "SET @skip_auth_anonymous=1;")
STRANGERS: Final = "Host <> 'localhost' OR User = ''"
ACCOUNTS_SINCE_10_4: Final = "global_priv"  # mysql.user is a view of it


def system_tables_sql(share: Path) -> str:
    """Everything to feed to ``--bootstrap``, from the SQL in a server's `share` folder.

    Raises:
        ProvisionError: the files are not there.
    """
    for maker in MAKERS:
        if all((share / name.format(maker=maker)).is_file() for name in WANTED):
            texts = [_read(share / name.format(maker=maker)) for name in PARTS]
            break
    else:
        raise ProvisionError(
            f"{share} lacks the SQL that makes a server's system tables",
            wanted=" and ".join(name.format(maker="mysql") for name in WANTED),
            found=", ".join(sorted(path.name for path in share.glob("*.sql"))) or "no SQL",
            hint="unpack the whole archive of the server, with its share folder",
        )
    table = ACCOUNTS_SINCE_10_4 if ACCOUNTS_SINCE_10_4 in texts[0] else "user"
    after = [f"DELETE FROM mysql.{table} WHERE {STRANGERS};"]
    after += [
        f"DELETE FROM mysql.proxies_priv WHERE {STRANGERS};",
        "DELETE FROM mysql.db WHERE User = '';",
    ]
    return "\n".join([*BEFORE, *texts, "USE mysql;", *after, ""])


def _read(path: Path) -> str:
    """A part's text; empty where this version has no such part."""
    return path.read_text("utf-8", "replace") if path.is_file() else ""
