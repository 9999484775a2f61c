"""Puts the fake docker on PATH, and reads what it was told."""

import json
import os
import shutil
import sys
from pathlib import Path

from dbdyno.servers.foreign import container

DIGEST = "sha256:" + "0f" * 32
IMAGE = f"docker.io/library/mysql@{DIGEST}"
REFERENCE = f"container:{IMAGE}"


class Docker:
    """The fake's folder, and what lies in it."""

    def __init__(self, monkeypatch, folder, says="mysqld  Ver 8.0.15 for Linux on x86_64"):
        self.folder = folder / "docker"
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "says").write_text(says)
        program = self.folder / "bin" / "docker"
        program.write_text(
            f"#!{sys.executable} -IS\n"
            f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\n"
            "import fake_docker\nfake_docker.main()\n"
        )
        program.chmod(0o755)
        tools = [Path(shutil.which(name)).parent for name in ("sh", "sleep", "cp")]
        path = os.pathsep.join(map(str, [self.folder / "bin", *dict.fromkeys(tools)]))
        monkeypatch.setenv("PATH", path)
        monkeypatch.setenv("FAKE_DOCKER", str(self.folder))
        monkeypatch.setattr(container, "PROC", self.folder / "proc")

    def calls(self):
        """Every command, as a list of words."""
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]

    def first(self, word):
        """The first call that begins so."""
        return next(call for call in self.calls() if call[0] == word)

    def containers(self):
        """The containers there are, by id, and what was said when they were made."""
        places = (self.folder / "containers").glob("*")
        return {place.name: json.loads((place / "about.json").read_text()) for place in places}

    def volumes(self):
        """The volumes there are, by name."""
        return sorted(place.name for place in (self.folder / "volumes").glob("*"))
