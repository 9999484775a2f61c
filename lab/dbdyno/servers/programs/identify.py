"""Identification of servers outside the catalog, by running their program.

Only the program itself is reliable: a folder's name may be old, and an archive's may be anything.
It runs as the servers' user, never as root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, UsageError
from dbdyno.servers import process

PROGRAMS: Final = (
    "bin/mariadbd",
    "sbin/mariadbd",
    "libexec/mariadbd",
    "bin/mysqld",
    "sbin/mysqld",
    "libexec/mysqld",
    "mysqld",
    "bin/postgres",
)
POSTGRES_MIN: Final = 15
ANSWER_S_MAX: Final = 30
WORDS_OF_MYSQL: Final = re.compile(
    r"\bVer (?P<version>[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})(?![0-9])(?P<more>\S*)"
)
BUILT_ON_MYSQL: Final = {
    "(Percona Server": "percona",
    "(Percona XtraDB Cluster": "percona",
    "(GreatSQL": "greatsql",
}
WORDS_OF_POSTGRES: Final = re.compile(
    r"\bpostgres \(PostgreSQL\) (?P<version>[0-9]{1,4}(\.[0-9]{1,4}){1,3})(?![0-9])"
)


@dataclass(frozen=True)
class ProgramIdentity:
    """Product and version by a program's own account.

    Attributes:
        product: ``mysql``, ``percona``, ``greatsql``, ``mariadb`` or ``postgres``; decides its
            settings and accounts.
        version: its numbers, without a distributor's addition.
        authentication: login plugin of its load user.
    """

    product: str
    version: str
    authentication: str


def program_in(folder: Path) -> str | None:
    """The server's program below a folder, None if there is no executable."""
    for name in PROGRAMS:
        if (folder / name).is_file() and os.access(folder / name, os.X_OK):
            return name
    return None


def ask(program: Path) -> ProgramIdentity:
    """Run a program with ``--version`` and identify it.

    Raises:
        ProvisionError: it does not run here, or its answer is unknown.
    """
    done = said_by(program)
    identity = understood(done.stdout)
    if identity is None:
        said = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise ProvisionError(
            f"{program} does not say that it is a server dbdyno can run",
            wanted="the words of MySQL, MariaDB or PostgreSQL to --version",
            found=said or f"nothing (exit {done.returncode})",
            hint="see docs/reference/servers.md for other servers, as endpoints",
        )
    return identity


def said_by(program: Path, *variables: str) -> subprocess.CompletedProcess[str]:
    """Output of ``--version``, run as the servers' user.

    Args:
        variables: ``NAME=VALUE``, set for the program alone.

    Raises:
        ProvisionError: it does not end in time.
    """
    setting = [shutil.which("env") or "/usr/bin/env", *variables] if variables else []
    launcher = process.launcher(process.server_user())
    try:
        return process.run(
            [*launcher, *setting, str(program), "--version"],
            ANSWER_S_MAX,
            folder=Path("/"),
            env=process.environment(Path("/")),
            fds=process.passed(),
        )
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(
            f"{program} --version did not end within {ANSWER_S_MAX} s",
            hint="is it a database server?",
        ) from error


def understood(words: str) -> ProgramIdentity | None:
    """Parse the answer to ``--version``; None if it is unknown."""
    if postgres := WORDS_OF_POSTGRES.search(words):
        return ProgramIdentity("postgres", postgres["version"], "scram-sha-256")
    if (ours := WORDS_OF_MYSQL.search(words)) is None:
        return None
    version = ours["version"]
    if "-MariaDB" in ours["more"]:  # Enterprise Server has a number before it
        return ProgramIdentity("mariadb", version, "mysql_native_password")
    product = next((name for by, name in BUILT_ON_MYSQL.items() if by in words), "mysql")
    native = int(version.partition(".")[0]) < 8  # MariaDB's first major version was 10
    return ProgramIdentity(
        product, version, "mysql_native_password" if native else "caching_sha2_password"
    )


def refuse_too_old(reference: str, server: ProgramIdentity) -> None:
    """Raise UsageError for a known server older than dbdyno's oldest."""
    if server.product == "postgres" and int(server.version.partition(".")[0]) < POSTGRES_MIN:
        raise UsageError(
            f"{reference}: dbdyno runs PostgreSQL from {POSTGRES_MIN} on",
            found=f"PostgreSQL {server.version}",
        )


# Vendors' archives, repackers' jars and unpacked Debian packages each have their own layout: so
# files are looked for around the program, wherever it came from.


FOLDERS_OF_PROGRAMS: Final = frozenset({"bin", "sbin", "libexec"})
SHARES: Final = ("share", "share/mariadb", "share/mysql")
PLUGINS: Final = ("lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib/mariadb/plugin")


@dataclass(frozen=True)
class ServerFiles:
    """Paths of a server's files.

    Attributes:
        share: messages, character sets and the SQL that makes system tables.
        plugins: its loadable plugins; None if it has none.
        libraries: folder of shared libraries beside the program, outside its own search path; None
            if there is none.
    """

    program: Path
    base: Path
    share: Path
    plugins: Path | None
    libraries: Path | None


def files_of(program: Path) -> ServerFiles:
    """Find the files of a server by its program.

    Raises:
        ProvisionError: messages and character sets are missing.
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
