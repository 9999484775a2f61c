"""Where a server's files lie below its folder, found by looking.

Vendors' archives, repackers' jars and unpacked Debian packages each have their own order, and a
folder named by a user has any of them; so what is there decides, not where it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError

PROGRAMS: Final = (  # MariaDB's own name first: its mysqld is a link to it, or an older program
    *("bin/mariadbd", "bin/mysqld", "sbin/mariadbd", "sbin/mysqld", "libexec/mysqld"),
    *("usr/sbin/mariadbd", "usr/sbin/mysqld", "usr/bin/mysqld"),
    "mysqld",
)
SHARES: Final = ("share", "share/mariadb", "share/mysql")
PLUGINS: Final = ("lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib/mariadb/plugin")
FOLDERS_OF_PROGRAMS: Final = frozenset({"bin", "sbin", "libexec"})


@dataclass(frozen=True)
class Layout:
    """Where things are.

    Attributes:
        program: the server.
        base: what the server calls its basedir.
        share: messages, character sets and the SQL that makes system tables.
        plugins: its loadable plugins; None if it has none.
        libraries: a folder with shared libraries shipped beside the program; None for the
            system's, or for those the program finds by itself.
    """

    program: Path
    base: Path
    share: Path
    plugins: Path | None
    libraries: Path | None


def layout_of(home: Path) -> Layout:
    """Look where things are below `home`.

    Raises:
        ProvisionError: there is no server program, or not what belongs to it.
    """
    program = program_of(home)
    beside = program.parent
    base = beside.parent if beside.name in FOLDERS_OF_PROGRAMS else beside
    shares = [base / name for name in SHARES if (base / name / "charsets" / "Index.xml").is_file()]
    if not shares:
        raise ProvisionError(
            f"{program} was found, but not the messages and character sets that belong to it",
            wanted=" or ".join(f"{name}/charsets" for name in SHARES),
            found=f"none of them in {base}",
            hint="name the folder that the server's archive was unpacked to",
        )
    plugins = next((base / name for name in PLUGINS if (base / name).is_dir()), None)
    shipped = beside if next(beside.glob("lib*.so*"), None) is not None else None
    return Layout(program, base, shares[0], plugins, shipped if beside == base else None)


def program_of(home: Path) -> Path:
    """The server's program below `home`; ProvisionError if there is none."""
    for name in PROGRAMS:
        if (home / name).is_file():
            return home / name
    raise ProvisionError(
        f"there is no MySQL or MariaDB server in {home}",
        wanted=f"one of {', '.join(PROGRAMS)}",
        found=", ".join(sorted(path.name for path in home.glob("*"))[:12]) or "an empty folder",
        hint="name the folder that the server's archive was unpacked to",
    )
