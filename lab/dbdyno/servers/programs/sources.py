"""Origins of a server's programs: the protocol `Source`, and Maven, npm and PyPI.

Programs come from repositories of Java, JavaScript, Python and Debian packages, from a vendor's
tarball, or lie on this disk already; `Source` hides the difference from the rest of the lab. Each
source lets the registry's own client fetch, as set up on this machine (mirrors, proxies,
certificates), as root only if unavoidable, and then trusts a digest alone.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Protocol

from dbdyno import interpreter
from dbdyno.errors import ProvisionError
from dbdyno.files import hold, open_file, opened_folder
from dbdyno.servers import process
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs import places
from dbdyno.servers.programs.unpack import WHOLE, Layout, unpack

HOME: Final = "home"
SETS_UP: Final = re.compile(
    r"(PATH|LD_LIBRARY_PATH|TZ|LANG|LC_\w+|JAVA_\w+|JDK_\w+|MAVEN_\w+|M2_HOME|NODE_\w+|NPM_\w+"
    r"|PIP_\w+|SSL_\w+|\w+_CA_BUNDLE|\w+_PROXY)",
    re.IGNORECASE,
)
FETCH_S_MAX: Final = 900
ANSWER_S_MAX: Final = 60
PIECE_BYTES: Final = 1 << 20
RETRY_S: Final = 3.0
LINES_QUOTED: Final = 8


@dataclass(frozen=True)
class Tool:
    """A program needed to fetch or unpack, and its Debian package.

    Attributes:
        settings: files of the user's settings for it, below the user's home.
    """

    program: str
    package: str
    settings: tuple[str, ...] = ()


class Source(Protocol):
    """Origin of a server's programs."""

    @property
    def name(self) -> str:
        """Coordinates, a package with its version, or a URL; for lists."""

    @property
    def identity(self) -> str:
        """SHA-256 of the programs' origin, for records and markers."""

    @property
    def download_bytes(self) -> int:
        """Size of the download; 0 without a download, or if unknown beforehand."""

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Put the download into the folder `work` and return its path; its digest is checked.

        Raises:
            ProvisionError: the client failed or took too long, or the digest is another.
        """

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into the empty folder `target`, which will be moved to `home`.

        Raises:
            ProvisionError: the download is damaged, unsafe, or holds no such server.
        """


def client(program: str) -> str:
    """Path of a registry's client: beside this Python (a dependency of ours) or on PATH."""
    beside = interpreter.beside(program)
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(program) or program


def run_client(
    command: Sequence[str],
    failure: str,
    work: Path,
    limit_s: float = FETCH_S_MAX,
    user: ServerUser | None = None,
) -> str:
    """Run a client in the folder `work`, so that it dies with the lab; returns its output.

    A failed client is run once more: registries and networks fail for a moment now and then.

    Args:
        command: the program's path first.
        failure: start of an error, for example ``Maven could not fetch g:a:v``.
        user: runs the client, with `HOME` in `work` as its home; None for ourselves.

    Raises:
        ProvisionError: it failed or took too long; quotes its last lines.
    """
    try:
        done = _ended(command, work, limit_s, user)
        if done.returncode != 0:
            time.sleep(RETRY_S)
            done = _ended(command, work, limit_s, user)
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(
            f"{failure}: it took longer than {limit_s:g} s",
            hint="check the network and the client's settings, then try again",
        ) from error
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()[-LINES_QUOTED:]
        name = Path(command[0]).name + (f", which runs as {user.name}" if user else "")
        raise ProvisionError(
            f"{failure} (exit {done.returncode})",
            found="\n    ".join(lines) or "no output",
            hint=f"check the network and the settings of {name}, then try again",
        )
    return done.stdout


def _ended(
    command: Sequence[str], work: Path, limit_s: float, user: ServerUser | None
) -> subprocess.CompletedProcess[str]:
    return process.run(
        [*process.launcher(user), *command],
        limit_s,
        folder=work,
        env=None if user is None else _environment(work / HOME),
        fds=process.passed(),
    )


def _environment(home: Path) -> dict[str, str]:
    """Environment of a client of another user: only its set-up, no secret."""
    kept = {name: value for name, value in os.environ.items() if SETS_UP.fullmatch(name)}
    return {**kept, "HOME": str(home)}


class _Client:
    """A registry's client at work in a folder of its own, from which its file is taken.

    If the lab is root, the client runs as the servers' user, if it can, with copies of our
    settings: Maven runs plugins that it has just downloaded.

    Attributes:
        program: its path.
        user: runs the client; None for ourselves.
        folder: its working folder; `run` gives it to the user.
        settings: the copies, by file name; none if it runs as ourselves.
    """

    def __init__(self, tool: Tool, work: Path, report: Callable[[str], None]) -> None:
        self.program = client(tool.program)
        self.user = _user_for(self.program, work, report)
        self.folder = work / "download"
        home = self.folder / HOME
        home.mkdir(mode=0o700, parents=True)
        ours = [name for name in tool.settings if self.user and (Path.home() / name).is_file()]
        self.settings = {Path(name).name: home / name for name in ours}
        for name in ours:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path.home() / name, home / name)

    def run(self, arguments: Sequence[str], failure: str) -> None:
        """Run it; ProvisionError as `run_client`."""
        if self.user is not None:  # bottom up: nothing is changed below a folder given away
            for path in [*sorted(self.folder.rglob("*"), reverse=True), self.folder]:
                os.chown(path, self.user.uid, self.user.gid)
        run_client([self.program, *arguments], failure, self.folder, user=self.user)

    def left(self, pattern: str, size: int) -> Path:
        """The downloaded file, moved to a folder that only the lab can change.

        Of a file larger than `size` bytes, only enough is copied for its digest to differ.
        """
        files = list(self.folder.glob(pattern))
        if len(files) != 1:
            raise ProvisionError(
                f"{Path(self.program).name} left {len(files)} files where one was wanted",
                wanted=pattern,
                found=", ".join(sorted(path.name for path in files)) or "none of that name",
            )
        if self.user is None:
            return files[0]
        taken = self.folder.parent / files[0].name
        with (
            opened_folder(self.folder) as folder,
            os.fdopen(open_file(folder, taken.name, self.user.uid), "rb") as read,
            taken.open("xb") as written,
        ):
            left = size + 1
            while piece := read.read(min(left, PIECE_BYTES)):
                written.write(piece)
                left -= len(piece)
        return taken


def _user_for(program: str, work: Path, report: Callable[[str], None]) -> ServerUser | None:
    """User of a client; None for ourselves, reported if that is root."""
    user = process.server_user()
    if user is None:
        return None
    if places.reachable(work, user) and _can_run(program, user):
        return user
    report(f"{Path(program).name} runs as root, as {user.name} cannot run it here")
    return None


def _can_run(program: str, user: ServerUser) -> bool:
    """Test that a client starts as `user`; its script language may lie elsewhere."""
    with suppress(subprocess.TimeoutExpired):
        requested = process.run(
            [*process.launcher(user), program, "--version"],
            ANSWER_S_MAX,
            folder=Path("/"),
            env=_environment(Path("/nonexistent")),
            fds=process.passed(),
        )
        return requested.returncode == 0
    return False


def fetched_file(path: Path, name: str, sha256: str, again: str) -> Path:
    """Check a client's file: present, and with the catalog's digest.

    Args:
        again: remedy if it is another file.

    Raises:
        ProvisionError: no such file, or another digest; names both.
    """
    if not path.is_file():
        raise ProvisionError(f"{name} was fetched, but there is no {path.name}", hint=again)
    digest = digest_of(path)
    if digest != sha256:
        raise ProvisionError(
            f"{name} is not the file dbdyno knows; it was not unpacked",
            wanted=f"sha256 {sha256}",
            found=f"sha256 {digest}",
            hint=again,
        )
    return path


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class _Archive:
    """Base of sources with a single archive; `layout` has the programs' place in it."""

    layout: Layout

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        del home
        unpack(fetched, self.layout, target)


MAVEN: Final = Tool("mvn", "maven", (".m2/settings.xml", ".m2/settings-security.xml"))
COPY_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
EMPTY_PROJECT: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>dbdyno</groupId><artifactId>fetch</artifactId><version>1</version>
  <packaging>pom</packaging>
</project>
"""


@dataclass(frozen=True)
class MavenSource(_Archive):
    """A Maven artifact; its version is its packer's, not the server's.

    Maven is asked for a copy, since others may change the file in its local repository.

    Attributes:
        name: coordinates, ``group:artifact:version[:type[:classifier]]``, type jar by default.
    """

    name: str
    identity: str
    download_bytes: int
    layout: Layout = WHOLE
    tools: ClassVar[tuple[Tool, ...]] = (MAVEN,)

    @property
    def file_name(self) -> str:
        """Maven's name for the copy."""
        _, artifact, version, *more = self.name.split(":")
        kind, classifier = [*more, "", ""][:2]
        return "-".join(part for part in (artifact, version, classifier) if part) + (
            f".{kind or 'jar'}"
        )

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        maven = _Client(MAVEN, work, report)
        (maven.folder / "pom.xml").write_text(EMPTY_PROJECT)
        arguments = [
            *("-B", "-q", "-f", str(maven.folder / "pom.xml"), COPY_GOAL),
            *(f"-Dartifact={self.name}", f"-DoutputDirectory={maven.folder}"),
            *("-Dmdep.useBaseVersion=true", *_local_repository(maven.user)),
        ]
        if "settings.xml" in maven.settings:  # Java does not ask $HOME
            arguments += ["-s", str(maven.settings["settings.xml"])]
        if "settings-security.xml" in maven.settings:
            arguments.append(f"-Dsettings.security={maven.settings['settings-security.xml']}")
        maven.run(arguments, f"Maven could not fetch {self.name}")
        again = "remove the artifact from Maven's local repository and fetch it again"
        return fetched_file(
            maven.left(self.file_name, self.download_bytes), self.name, self.identity, again
        )


def _local_repository(user: ServerUser | None) -> list[str]:
    """Option for Maven's local repository, of `user` or, without a home, of ourselves."""
    if user is not None:
        repository = places.make_cache_folder(places.MAVEN, user.name)
        process.give_to(repository, user)
        hold(repository.parent)
        return [f"-Dmaven.repo.local={repository}"]
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # a container started with a user of no name
        home = Path("/nonexistent")
    if os.access(home, os.W_OK):
        return []
    repository = places.make_cache_folder(places.MAVEN)
    hold(repository)
    return [f"-Dmaven.repo.local={repository}"]


NPM: Final = Tool("npm", "npm", (".npmrc",))
PIP: Final = Tool("pip", "python3-pip", (".config/pip/pip.conf", ".pip/pip.conf"))


@dataclass(frozen=True)
class _Package(_Archive):
    """A package that is downloaded and never installed: none of its scripts runs."""

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
        return f"npm {self.package}@{self.version}"

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        npm = _Client(NPM, work, report)
        stored = npm.folder / "npm"  # a store of its own: the user's may be stale or another's
        npm.run(
            ["pack", f"{self.package}@{self.version}", "--ignore-scripts", "--cache", str(stored)],
            f"npm could not fetch {self.package}@{self.version}",
        )
        file_name = f"{self.package.lstrip('@').replace('/', '-')}-{self.version}.tgz"
        again = "try again; if it stays so, the registry serves another file than it did"
        return fetched_file(
            npm.left(file_name, self.download_bytes), self.name, self.identity, again
        )


class PypiSource(_Package):
    """A Python wheel."""

    tools: ClassVar[tuple[Tool, ...]] = (PIP,)

    @property
    def name(self) -> str:
        return f"PyPI {self.package}=={self.version}"

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        pip = _Client(PIP, work, report)
        pip.run(
            [
                *("download", f"{self.package}=={self.version}", "--dest", str(pip.folder)),
                *("--no-deps", "--only-binary", ":all:"),
                *("--disable-pip-version-check", "--no-input"),
            ],
            f"pip could not fetch {self.package}=={self.version}",
        )
        again = "try again; if it stays so, the index serves another wheel for this machine"
        return fetched_file(pip.left("*.whl", self.download_bytes), self.name, self.identity, again)
