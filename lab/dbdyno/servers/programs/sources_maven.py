"""Programs out of Maven artifacts: other projects ship servers there for their own tests.

An artifact's version is its packer's, not the server's. Maven's own client fetches, by the
repositories it is set up for; it is asked to copy, so the lab's file is not the one in the client's
store, which others may change.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.servers.programs import places
from dbdyno.servers.programs.sources import Tool, client, fetched_file, run_client
from dbdyno.servers.programs.unpack import WHOLE, Layout, unpack

MAVEN: Final = Tool("mvn", "maven")
COPY_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
EMPTY_PROJECT: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>dbdyno</groupId><artifactId>fetch</artifactId><version>1</version>
  <packaging>pom</packaging>
</project>
"""


@dataclass(frozen=True)
class MavenSource:
    """One artifact.

    Attributes:
        name: coordinates, ``group:artifact:version[:type[:classifier]]``, type jar if unsaid.
        identity: SHA-256 of the artifact.
        download_bytes: its size.
        layout: where in it the programs are.
    """

    name: str
    identity: str
    download_bytes: int
    layout: Layout = WHOLE

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Maven's client."""
        return (MAVEN,)

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

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into `target`; ProvisionError if the artifact does not hold them."""
        del home
        unpack(fetched, self.layout, target)


def _local_repository() -> list[str]:
    """Where Maven keeps its downloads, for a user whose home is none: Java does not ask $HOME."""
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # a container started with a user of no name
        home = Path("/nonexistent")
    if os.access(home, os.W_OK):
        return []
    return [f"-Dmaven.repo.local={places.make_cache_folder('maven')}"]
