"""A private state for apt: its own lists, store and list of what is installed, in one folder.

The mirror is the one this machine uses for its own Debian packages, so a site's own mirror, proxy
and certificates serve here too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs.sources import client, run_client

KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TARGETS: Final = "$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(ORIGIN)|$(REPO_URI)"
UNKNOWN: Final = "$(ORIGIN)"  # apt has not been updated yet, so it does not know


@dataclass(frozen=True)
class AptState:
    """Where apt works.

    Attributes:
        options: what makes apt work there; they go before its command.
        archives: folder that receives the packages.
    """

    options: tuple[str, ...]
    archives: Path


def lay(folder: Path, suite: str, assumed: tuple[str, ...]) -> AptState:
    """Make the state in the new folder `folder`, for one suite.

    Args:
        assumed: packages to be taken for installed.

    Raises:
        ProvisionError: this machine's apt knows no Debian mirror.
    """
    archives = folder / "cache" / "archives"
    for made in (archives / "partial", folder / "lists" / "partial", folder / "none"):
        made.mkdir(parents=True)
    key = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
    (folder / "sources.list").write_text(f"deb {key}{mirror(folder)} {suite} main\n")
    (folder / "status").write_text("".join(_installed(package) for package in assumed))
    settings = {
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
    if os.geteuid() == 0:  # apt's own user could not enter the folder
        settings["APT::Sandbox::User"] = "root"
    return AptState(
        tuple(word for name, value in settings.items() for word in ("-o", f"{name}={value}")),
        archives,
    )


def mirror(folder: Path) -> str:
    """The address from which this machine gets Debian's main packages.

    Raises:
        ProvisionError: there is none in apt's sources, as on another distribution.
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
        hint="run the lab on Debian, or unpack the server by hand and name it as path:/folder",
    )


def _installed(package: str) -> str:
    return (
        f"Package: {package}\nStatus: install ok installed\nArchitecture: amd64\n"
        "Multi-Arch: allowed\nVersion: 999\nMaintainer: none\nDescription: assumed\n\n"
    )
