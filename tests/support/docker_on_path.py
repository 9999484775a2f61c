"""Puts the fake docker on PATH, and reads what it was told."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from traceback import format_exc

from dbdyno.servers import process
from dbdyno.servers.foreign import container
from support import fake_docker

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
            "import fake_docker\nfake_docker.main(sys.argv[1:])\n"
        )
        program.chmod(0o755)
        tools = [Path(shutil.which(name)).parent for name in ("sh", "sleep", "cp")]
        path = os.pathsep.join(map(str, [self.folder / "bin", *dict.fromkeys(tools)]))
        monkeypatch.setenv("PATH", path)
        monkeypatch.setenv("FAKE_DOCKER", str(self.folder))
        monkeypatch.setattr(container, "PROC", self.folder / "proc")
        monkeypatch.setattr(fake_docker, "ROOT", self.folder)
        monkeypatch.setattr(process, "run", self._without_a_process(str(program), process.run))

    def _without_a_process(self, program, really):
        def run(command, *limit, **how):
            if command[0] != program:
                return really(command, *limit, **how)
            out, err, status = StringIO(), StringIO(), 0
            try:
                with redirect_stdout(out), redirect_stderr(out if how.get("merged") else err):
                    fake_docker.main(command[1:])
            except SystemExit as ended:
                status = ended.code
            except OSError:
                status = err.write(format_exc())
            return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())

        return run

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
