"""Finds every tool and library a server will want, before anything is downloaded.

All that is missing is said in one error with one command, so that a user installs once and not
four times. A library counts as present when the loader itself can open it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs.catalog_entry import LIBRARIES, CatalogEntry, Library
from dbdyno.servers.programs.sources import Tool, client

RENAMED: Final = {"libaio1": "libaio1t64"}  # Debian 13, Ubuntu 24.04


def check(entry: CatalogEntry, *, download: bool) -> None:
    """Everything `entry` needs to be fetched (when `download`) and run is here.

    Raises:
        ProvisionError: names all that is missing and the command that installs it.
    """
    _check_machine(entry)
    wanted = entry.source.tools if download else ()
    tools = [tool for tool in wanted if shutil.which(client(tool.program)) is None]
    libraries = [library for library in entry.libraries if not loadable(library.soname)]
    if not tools and not libraries:
        return
    missing = [*(tool.program for tool in tools), *(library.soname for library in libraries)]
    raise ProvisionError(
        f"{entry.reference} cannot be {'fetched and run' if download else 'run'} here: "
        f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
        wanted=", ".join(
            [*(tool.program for tool in wanted), *(lib.soname for lib in entry.libraries)]
        ),
        found=f"without {', '.join(missing)}",
        hint=_command(tools, libraries),
    )


def loadable(soname: str) -> bool:
    """Whether the system's loader finds and opens a shared library."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def check_program(program: Path, entry: CatalogEntry) -> None:
    """The unpacked program finds all its libraries, its own private ones included.

    Raises:
        ProvisionError: the loader says "not found" for some.
    """
    # As ldd does it, but by the program's own loader, which may be another than this machine's.
    done = subprocess.run(
        [str(program), "--version"],
        env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = (done.stdout + done.stderr).splitlines()
    lost = [line.split()[0] for line in said if "=> not found" in line]
    if lost:
        known = [library for library in LIBRARIES if library.soname in lost]
        raise ProvisionError(
            f"{entry.reference} is there but cannot be run: {', '.join(lost)} not found",
            hint=_command([], known) if known else "install the packages that hold these libraries",
        )


def _check_machine(entry: CatalogEntry) -> None:
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        raise ProvisionError(
            f"{entry.reference} is built for another machine",
            wanted="Linux x86_64",
            found=f"{system} {machine}",
            hint="run the lab on a Linux x86_64 machine",
        )


def _command(tools: Iterable[Tool], libraries: Iterable[Library]) -> str:
    """What to type, with the newer package names where Debian changed them."""
    packages = [tool.package for tool in tools] + [library.package for library in libraries]
    command = f"apt-get install -y {' '.join(packages)}"
    notes = [
        f"Debian 13 calls {old} {RENAMED[old]}; if its library is named {old_name}t64, make a link "
        f"{old_name} to it in a folder of LD_LIBRARY_PATH"
        for old, old_name in ((lib.package, lib.soname) for lib in libraries)
        if old in RENAMED
    ]
    return "; ".join([command, *notes])
