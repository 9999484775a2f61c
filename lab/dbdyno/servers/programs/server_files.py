"""Where the files lie that belong to a server's program, found by looking around it.

Vendors' archives, repackers' jars and unpacked Debian packages each have their own order, and a
folder named by a user has any of them; so what is there decides, not where it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError

FOLDERS_OF_PROGRAMS: Final = frozenset({"bin", "sbin", "libexec"})
SHARES: Final = ("share", "share/mariadb", "share/mysql")
PLUGINS: Final = ("lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib/mariadb/plugin")


@dataclass(frozen=True)
class ServerFiles:
    """Where things are.

    Attributes:
        program: the server.
        base: what the server calls its basedir.
        share: messages, character sets and the SQL that makes system tables.
        plugins: its loadable plugins; None if it has none.
        libraries: a folder of shared libraries that lie beside the program and that it does not
            find by itself; None if there is none.
    """

    program: Path
    base: Path
    share: Path
    plugins: Path | None
    libraries: Path | None


def files_of(program: Path) -> ServerFiles:
    """Look where things are around a server's program.

    Raises:
        ProvisionError: what belongs to it is not there.
    """
    beside = program.parent
    in_its_place = beside.name in FOLDERS_OF_PROGRAMS
    base = beside.parent if in_its_place else beside
    shares = [base / name for name in SHARES if (base / name / "charsets" / "Index.xml").is_file()]
    if not shares:
        raise ProvisionError(
            f"{program} has no messages and character sets beside it",
            wanted=" or ".join(f"{name}/charsets" for name in SHARES),
            found=f"none of them in {base}",
            hint="unpack the server's whole archive",
        )
    plugins = next((base / name for name in PLUGINS if (base / name).is_dir()), None)
    shipped = not in_its_place and any(beside.glob("lib*.so*"))
    return ServerFiles(program, base, shares[0], plugins, beside if shipped else None)
