"""What the catalog says of one server: where it comes from, what it wants, how it is asked for.

Apart from the rows, so that what works with one entry need not know which there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbdyno.servers.programs.sources import Source
from dbdyno.servers.programs.sources_folder import FolderSource


@dataclass(frozen=True)
class Library:
    """A shared library the server wants from the system, and the Debian package that has it."""

    soname: str
    package: str


LIBAIO: Final = Library("libaio.so.1", "libaio1")
LIBNUMA: Final = Library("libnuma.so.1", "libnuma1")
LIBCRYPT: Final = Library("libcrypt.so.1", "libcrypt1")
LIBSYSTEMD: Final = Library("libsystemd.so.0", "libsystemd0")
LIBSTDCXX: Final = Library("libstdc++.so.6", "libstdc++6")
LIBRARIES: Final = (LIBAIO, LIBNUMA, LIBCRYPT, LIBSYSTEMD, LIBSTDCXX)


@dataclass(frozen=True)
class CatalogEntry:
    """One server that can be had.

    Attributes:
        product: such as ``mysql``.
        version: what ``SELECT VERSION()`` answers, up to a distributor's addition.
        source: where its programs come from, and their digest.
        libraries: what the programs want from the system.
        authentication: plugin of the load user; 8.0 uses its own default, as its users do.
        program: the server's program, below the folder it is unpacked to; empty until looked for.
        named: the reference it was asked for by, for what is no row of the catalog.
    """

    product: str
    version: str
    source: Source | FolderSource
    libraries: tuple[Library, ...]
    authentication: str
    program: str = "bin/mysqld"
    named: str = ""

    @property
    def reference(self) -> str:
        """How a plan names it."""
        return self.named or f"{self.product}:{self.version}"

    @property
    def folder_name(self) -> str:
        """Its folder in the cache."""
        if self.named:
            return f"given-{self.identity[:16]}"
        return f"{self.product}-{self.version}"

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version for comparing, as (8, 0, 15)."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def identity(self) -> str:
        """Digest of what its programs come from, for records and markers."""
        return self.source.identity
