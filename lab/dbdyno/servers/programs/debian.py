"""Programs from Debian packages of another release than this machine's; none is installed.

apt works in a folder of its own, on this machine's mirror and by Debian's own key, so the system is
unchanged and no root is needed. The server's packages are pinned by the catalog's digests. Their
libraries change with every point release, so those are checked by apt alone, against Debian's
signed index; a list beside the programs records how each was checked.

Programs of a newer release need its C library too: each is tied to that loader and library folder
by name, and so to the folder it lies in.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, Final

from dbdyno.errors import ProvisionError
from dbdyno.servers import process
from dbdyno.servers.programs import places
from dbdyno.servers.programs.sources import Tool, client, digest_of, fetched_file, run_client
from dbdyno.servers.programs.unpack import Layout, unpack_streams

APT: Final = Tool("apt-get", "apt")
DPKG: Final = Tool("dpkg-deb", "dpkg")
PATCHELF: Final = Tool("patchelf", "patchelf")
LIBRARIES: Final = "lib/x86_64-linux-gnu"
LOADER: Final = f"{LIBRARIES}/ld-linux-x86-64.so.2"
PACKAGE_LIST: Final = "packages.txt"
ELF: Final = b"\x7fELF"
TREE: Final = Layout(
    inside="usr",
    left_out=(
        *(f"share/{name}/*" for name in ("doc", "man", "locale", "lintian", "bug", "info")),
        *(f"{LIBRARIES}/{name}/*" for name in ("gconv", "audit")),
        *("lib/sysusers.d/*", "lib/systemd/*", "lib/tmpfiles.d/*", "lib/udev/*"),
    ),
)


@dataclass(frozen=True)
class DebianPackage:
    """A package with the server or its client, pinned to an exact file."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class DebianSource:
    """Packages of a suite, with their dependencies.

    Attributes:
        packages: pinned by digest.
        download_bytes: size of all, when the catalog's row was made.
        assumed: dependencies of scripts only, which are therefore not fetched.
    """

    suite: str
    packages: tuple[DebianPackage, ...]
    download_bytes: int
    assumed: tuple[str, ...] = ()
    tools: ClassVar[tuple[Tool, ...]] = (APT, DPKG, PATCHELF)

    @property
    def name(self) -> str:
        """Suite and packages, as in ``Debian sid: mysql-server-core 9.7.4-2``."""
        named = ", ".join(f"{package.name} {package.version}" for package in self.packages)
        return f"Debian {self.suite}: {named}"

    @property
    def identity(self) -> str:
        """SHA-256 of the pinned packages' digests."""
        return hashlib.sha256("".join(p.sha256 for p in self.packages).encode()).hexdigest()

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        apt = make_state(work / "apt", self.suite, self.assumed)
        command = [client(APT.program), "-q", "-y", *apt.options]
        what = f"apt could not fetch {self.name}"
        run_client([*command, "update"], what, work)
        wanted = [f"{package.name}={package.version}" for package in self.packages]
        try:
            run_client([*command, "--download-only", "install", *wanted], what, work)
        except ProvisionError as error:
            error.hint = (
                f"check the network; Debian's {self.suite} keeps only its newest packages: if it "
                "has moved on, unpack the version by hand and name it as path:/folder"
            )
            raise
        again = "the mirror serves another file than it did; nothing of it was kept"
        for package in self.packages:
            archive = next(apt.archives.glob(f"{package.name}_*.deb"), apt.archives / package.name)
            fetched_file(archive, f"{package.name} {package.version}", package.sha256, again)
        report(f"{self.name}: {len(list(apt.archives.glob('*.deb')))} packages with libraries")
        return apt.archives

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the packages' ``usr`` into `target`; its programs run once it is at `home`."""
        packages = sorted(fetched.glob("*.deb"))
        unpack_streams((_opened(package) for package in packages), TREE, target, self.name)
        if not (target / LOADER).is_file():
            raise ProvisionError(f"{self.name}: there is no {LOADER} in the packages")
        for folder in ("bin", "sbin"):
            for program in sorted((target / folder).glob("*")):
                if _is_program(program):
                    _set_loader(program, home)
        (target / PACKAGE_LIST).write_text(self._list_of(packages))

    def _list_of(self, packages: list[Path]) -> str:
        pinned = {package.sha256 for package in self.packages}
        lines = [f"Packages of Debian {self.suite} these programs and libraries come from.", ""]
        for package in packages:
            digest = digest_of(package)
            by = "dbdyno's catalog" if digest in pinned else "Debian's signed index, by apt"
            lines.append(f"{package.name} sha256 {digest}, checked by {by}")
        return "\n".join([*lines, ""])


@contextmanager
def _opened(package: Path) -> Iterator[IO[bytes]]:
    """The tar archive of a package's files."""
    command = [client(DPKG.program), "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}) as on:
        assert on.stdout is not None
        yield on.stdout
        on.stdout.read()  # padding after the archive's end: else dpkg-deb dies of a closed pipe
    if on.returncode != 0:
        raise ProvisionError(f"{package.name} cannot be opened (dpkg-deb, exit {on.returncode})")


def _is_program(path: Path) -> bool:
    """True for a program of the machine; false for scripts and links."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as opened:
        return opened.read(len(ELF)) == ELF


def _set_loader(program: Path, home: Path) -> None:
    """Let a program use only the loader and the libraries at `home`, its later place."""
    libraries = str(home / LIBRARIES)
    run_client(
        [
            *(client(PATCHELF.program), "--set-interpreter", str(home / LOADER)),
            *("--force-rpath", "--set-rpath", libraries, str(program)),
        ],
        f"patchelf could not tie {program.name} to its libraries",
        program.parent,
    )


# A private state folder for apt, with the mirror of this machine's own packages: so a site's own
# mirror, proxy and certificates serve here too.


KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TARGETS: Final = "$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(ORIGIN)|$(REPO_URI)"
UNKNOWN: Final = "$(ORIGIN)"  # apt has not been updated yet, so it does not know
INSTALLED: Final = (
    "Package: {}\nStatus: install ok installed\nArchitecture: amd64\n"
    "Multi-Arch: allowed\nVersion: 999\nMaintainer: none\nDescription: assumed\n\n"
)


@dataclass(frozen=True)
class AptState:
    """A folder of apt's state: options that make apt work there, and its place for packages."""

    options: tuple[str, ...]
    archives: Path


def make_state(folder: Path, suite: str, assumed: tuple[str, ...]) -> AptState:
    """Make the state in the new folder `folder`, for a suite.

    Args:
        assumed: packages treated as installed.

    Raises:
        ProvisionError: this machine's apt knows no Debian mirror.
    """
    archives = folder / "cache" / "archives"
    for place in (archives / "partial", folder / "lists" / "partial", folder / "none"):
        place.mkdir(parents=True)
    key = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
    (folder / "sources.list").write_text(f"deb {key}{mirror(folder)} {suite} main\n")
    (folder / "status").write_text("".join(map(INSTALLED.format, assumed)))
    settings: dict[str, object] = {
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::State::extended_states": folder / "extended_states",
        "Dir::Cache": folder / "cache",
        "Dir::Cache::archives": archives,
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "none",
        "Dir::Etc::preferences": folder / "none" / "preferences",
        "Dir::Etc::preferencesparts": folder / "none",
        "Dir::Log": folder,
        "APT::Architecture": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Get::AllowUnauthenticated": "false",
        "Acquire::AllowInsecureRepositories": "false",
        "Acquire::Languages": "none",
    }
    user = process.server_user()
    if user is not None:  # apt's own user could not enter a closed folder either
        settings["APT::Sandbox::User"] = user.name if places.reachable(folder, user) else "root"
    return AptState(
        tuple(word for name, value in settings.items() for word in ("-o", f"{name}={value}")),
        archives,
    )


def mirror(folder: Path) -> str:
    """Address of this machine's mirror of Debian's main packages.

    Raises:
        ProvisionError: apt's sources have none, as on another distribution.
    """
    said = run_client(
        [client("apt-get"), "indextargets", "--format", TARGETS],
        "apt could not tell this machine's mirror",
        folder,
    )
    for line in said.splitlines():
        made_by, component, release, origin, address = [*line.split("|"), "", "", "", ""][:5]
        if (made_by, component) != ("Packages", "main") or "-" in release:
            continue  # an update or security suite: its mirror has no other releases
        known = origin == UNKNOWN and address.rstrip("/").endswith("/debian")
        if known or origin == "Debian":
            return address
    raise ProvisionError(
        "this server comes in Debian packages, and apt knows no Debian mirror here",
        wanted="a source of Debian's main packages in apt's sources",
        found="none" if not said.strip() else "sources of other packages only",
        hint="run dbdyno on Debian, or unpack the server by hand and name it as path:/folder",
    )
