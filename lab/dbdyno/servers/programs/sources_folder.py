"""Programs that lie on this disk already: a server unpacked, built or installed by the user.

``path:/opt/mysql`` names the folder that the server calls its base folder. It is used where it is,
never copied and never changed, so it may be as large as ``/usr``. What a stored result says of it
is the digest of the server's program.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, UnknownSystemError
from dbdyno.servers import process
from dbdyno.servers.programs import identify, places
from dbdyno.servers.programs.sources import Tool, digest_of

SCHEME: Final = "path:"


@dataclass(frozen=True)
class FolderSource:
    """A folder with a server in it; nothing is fetched.

    Attributes:
        folder: where it is.
        identity: SHA-256 of the server's program.
    """

    folder: Path
    identity: str

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.folder)

    @property
    def download_bytes(self) -> int:
        """Nothing is downloaded."""
        return 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """No tools are needed."""
        return ()


def read(reference: str) -> Path:
    """The folder that a reference names; UnknownSystemError unless its path is absolute."""
    folder = Path(reference.removeprefix(SCHEME)).expanduser()
    if not folder.is_absolute():
        raise UnknownSystemError(
            f"{reference!r} does not name a folder from the root on",
            wanted="path:/folder, the folder that holds bin or sbin",
            hint=f"did you mean path:{folder.absolute()}?" if folder.name else None,
        )
    return folder


def look(folder: Path) -> FolderSource:
    """The server in a folder.

    Raises:
        ProvisionError: there is none, or the user that servers run as cannot get there.
    """
    program = identify.program_in(folder)
    if program is None:
        raise ProvisionError(
            f"there is no server's program in {folder}",
            wanted=" or ".join(identify.PROGRAMS),
            found="no such folder" if not folder.is_dir() else "none of them",
            hint="name the folder that holds the server's bin or sbin",
        )
    user = process.server_user()
    if not places.reachable(folder / program, user):
        raise ProvisionError(
            f"the servers' user {user.name if user else ''} may not run {folder / program}",
            hint="let others enter its folders, or copy it to a place where they may",
        )
    return FolderSource(folder, digest_of(folder / program))
