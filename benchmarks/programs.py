"""What every benchmark here needs: a server of its own, and one run of a program against it.

The CPU of a run is that of the whole process, start-up included, as the system counts it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno.servers import open
from dbdyno.servers.base import PGSQL, Server, ServerSpec

ROOT = Path(__file__).resolve().parent.parent
QUERIES = re.compile(r"^ +queries: +(\d+)", re.MULTILINE)
Cell = tuple[str, str, int]
"""What is compared: workload, transport (`tcp` or `socket`), connections."""


def dbdyno() -> str:
    """The console script of this environment."""
    return str(Path(sysconfig.get_path("scripts")) / "dbdyno")


@contextmanager
def running_server(
    folder: str, system: str, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A fresh server in `folder`, stopped and removed at the end."""
    # The server runs as another user: the folder must let it through.
    Path(folder).chmod(0o755)
    spec = ServerSpec(label="bench", reference=system, settings=dict(settings or {}))
    instance = open.instance(spec, Path(folder) / "server", lambda text: None)
    try:
        yield instance.start()
    finally:
        instance.close()


def run_program(
    program: list[str],
    server: Server,
    options: argparse.Namespace,
    cell: Cell,
    command: str,
    *more: str,
) -> tuple[float, str]:
    """Runs one command to its end; its CPU seconds and what it printed.

    `options` has `tables`, `table_size` and `seconds`; `more` are options as they are typed.
    """
    workload, transport, connections = cell
    arguments = [
        workload,
        *_login_typed(server, transport),
        f"--tables={options.tables}",
        f"--table-size={options.table_size}",
        f"--threads={connections}",
        f"--time={options.seconds}",
        "--rand-type=uniform",
        *more,
        command,
    ]
    return finished(program, arguments, server.credentials.password)


def _login_typed(server: Server, transport: str) -> list[str]:
    """Options of the server's driver that name it and the load's user."""
    endpoint, driver = server.endpoint, server.driver
    who = [f"--{driver}-user={server.credentials.user}", f"--{driver}-db={server.database}"]
    tcp = [f"--{driver}-host={endpoint.host}", f"--{driver}-port={endpoint.port}"]
    if transport != "socket" or endpoint.socket is None:
        return [f"--db-driver={driver}", *tcp, *who]
    if driver == PGSQL:
        folder = f"--pgsql-host={endpoint.socket.parent}"
        return [f"--db-driver={driver}", folder, f"--pgsql-port={endpoint.port}", *who]
    return [f"--mysql-socket={endpoint.socket}", *who]


def login(server: Server, transport: str = "tcp") -> dict[str, Any]:
    """Where a server is and who logs in, as the engine's specs have it."""
    endpoint, credentials = server.endpoint, server.credentials
    tcp = {"host": endpoint.host, "port": endpoint.port}
    return {
        "endpoint": {"socket": str(endpoint.socket)} if transport == "socket" else tcp,
        "user": credentials.user,
        "password": credentials.password,
        "database": server.database,
    }


def run_engine(spec: dict[str, Any]) -> dict[str, Any]:
    """One run of the engine in a process of its own: see `benchmarks.one_run`."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.one_run"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        input=json.dumps(spec),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def finished(program: list[str], arguments: list[str], password: str) -> tuple[float, str]:
    """Runs a program to its end; its CPU seconds and what it printed. A failure ends all."""
    with (
        tempfile.TemporaryFile() as output,
        tempfile.NamedTemporaryFile("w", suffix=".conf") as secret,
    ):
        secret.write(f"mysql-password={password}\n")
        secret.flush()
        # Neither shows the password to others: sysbench reads a file, dbdyno the environment.
        hidden = [f"--config-file={secret.name}"] if program[0] == "sysbench" else []
        process = subprocess.Popen(
            [*program, *hidden, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "MYSQL_PWD": password, "PGPASSWORD": password},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
    if process.returncode != 0:
        sys.exit(f"{program[0]} {arguments[0]} {arguments[-1]} failed:\n{text}")
    return usage.ru_utime + usage.ru_stime, text


def queries_in(text: str) -> int:
    """The count of queries in a report."""
    found = QUERIES.search(text)
    if found is None:
        sys.exit(f"the program printed no count of queries:\n{text}")
    return int(found[1])


# Rust programs, built when they are needed.


@cache
def example(name: str, profile: str = "release") -> str:
    """An example of the engine's crate; cargo builds only what has changed."""
    build = ["cargo", "build", "--profile", profile, "--quiet", "--locked", "--workspace"]
    subprocess.run([*build, "--example", name], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return str(ROOT / target / profile / "examples" / name)


@contextmanager
def null_responder(socket: Path, sessions: int) -> Iterator[dict[str, Any]]:
    """A server that answers at once; it ends with this process, however that ends."""
    command = [example("null_responder"), "--socket", str(socket)]
    with subprocess.Popen(
        [*command, "--sessions", str(sessions)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the null responder did not start; its words are above")
        yield json.loads(line)
        # Leaving closes its standard input, and that ends it.
