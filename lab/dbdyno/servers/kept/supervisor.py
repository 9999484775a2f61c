"""Supervisor of a kept server until SIGTERM: ``python -m dbdyno.servers.kept.supervisor FOLDER``.

`kept.start` writes the request to its stdin and reads a JSON object a line until the server is
ready. It leaves its parent at once, so that the command can end and the server stay. The server is
this process's child and dies with it, however it dies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from dbdyno.errors import DbdynoError, ServerError
from dbdyno.files import locked, private
from dbdyno.servers import open
from dbdyno.servers.base import Instance, Server, ServerSpec
from dbdyno.servers.kept.kept import FILES, LOCK, PASSWORD, STATE, KeptState
from dbdyno.servers.reference import VersionReference, parse

LOOK_S: Final = 0.5


def main(folder: Path) -> int:
    """Serve one folder until SIGTERM or the server's own end; 0 if it was stopped."""
    try:
        with locked(folder / LOCK, f"the server {folder.name}"):
            return _serve(folder)
    except DbdynoError as error:
        parts = {name: getattr(error, name) for name in ("message", "wanted", "found", "hint")}
        _say(error={**parts, "exit_status": error.exit_status})
        return error.exit_status


def _serve(folder: Path) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    request = json.load(sys.stdin)
    instance: Instance | None = None
    try:
        reference = open.pinned(request["reference"], _report)
        spec = ServerSpec(request["label"], reference, request["settings"])
        instance = open.instance(spec, folder / FILES, _report)
        server = instance.start()
        state = _state(spec, server)
        private(folder / PASSWORD, server.credentials.password)
        private(folder / STATE, json.dumps(asdict(state)))
        _say(ready=True)
        _close_output()
        _watch(folder, server, state)
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / PASSWORD).unlink(missing_ok=True)
        if instance is not None:
            try:
                instance.close()
            except ServerError as error:
                sys.stderr.write(f"{error}\n")


def _state(spec: ServerSpec, server: Server) -> KeptState:
    return KeptState(
        reference=spec.reference,
        version=server.version(),
        pid=server.pid,
        host=server.endpoint.host,
        port=server.endpoint.port,
        user=server.credentials.user,
        database=server.database,
        since=datetime.now().astimezone().isoformat("T", "seconds"),
        programs=_programs(spec.reference),
        driver=server.driver,
    )


def _programs(reference: str) -> str:
    """Folder of the server's own client; empty where a stranger's client would run as root."""
    if os.geteuid() == 0 and not isinstance(parse(reference), VersionReference):
        return ""
    return str(open.programs(reference) or "")


def _watch(folder: Path, server: Server, state: KeptState) -> None:
    """Wait for the server's own end and write its last words into its state."""
    while server.alive():
        time.sleep(LOOK_S)
    words = server.last_words().strip().splitlines() or ["gone"]
    private(folder / STATE, json.dumps(asdict(replace(state, ending=words[-1]))))


def _report(text: str) -> None:
    _say(report=text)


def _say(**message: object) -> None:
    try:
        sys.stdout.write(f"{json.dumps(message)}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the waiting command was killed; the server stays all the same
        _close_output()


def _close_output() -> None:
    """Close the streams to the command, so that it may end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def detached(folder: Path) -> None:
    """Serve the folder from a child process, so that the waiting command is no parent of it."""
    if os.fork():
        os._exit(0)
    sys.exit(main(folder))


if __name__ == "__main__":
    detached(Path(sys.argv[1]))
