"""`dbdyno servers`: lists, downloads and removes servers, and starts servers until stopped.

As in `app`, commands are thin: results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from dbdyno.cli import options
from dbdyno.cli.kept import login
from dbdyno.cli.progress import note, noted
from dbdyno.cli.runs import confirm
from dbdyno.errors import UsageError
from dbdyno.files import occupied_bytes
from dbdyno.plan.systems import label_of
from dbdyno.report.formats.stdout import print_lines, printable
from dbdyno.report.numbers import mebibytes
from dbdyno.servers import open
from dbdyno.servers.kept import kept
from dbdyno.servers.kept.kept import KeptServer, KeptState
from dbdyno.servers.programs import places, provision
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.reference import is_endpoint

app = typer.Typer(no_args_is_help=True)
LOAD: Final = "oltp_read_write --tables=4 --table-size=10000"
"""Test and tables of the sysbench command that `start` prints."""


@app.command("list")
def list_known() -> None:
    """List downloadable servers: reference, source, size, cached."""
    _print_columns(
        [
            (
                entry.reference,
                entry.source.name,
                f"{entry.source.download_bytes / 1e6:.0f} MB",
                "cached" if provision.is_cached(entry) else "-",
            )
            for entry in CATALOG
        ]
    )


@app.command()
def get(reference: options.Reference) -> None:
    """Download a server into the cache and print its folder."""
    open.check(reference)
    with noted() as lines:
        home = open.get(reference, lines.stage)
    print_lines(str(home))


@app.command()
def clean(yes: options.Yes = False) -> None:
    """Delete downloaded servers that are not in use. It also deletes initialised data directories.
    The next run downloads and initialises its servers again.
    """
    sizes = {folder: occupied_bytes(folder) for folder in places.programs()}
    if not sizes:
        note(f"no servers in {places.cache_folder()}")
        return
    confirm(sizes, "servers' programs go", yes=yes)
    gone = {folder for folder in sizes if places.remove(folder)}
    for folder in sizes.keys() - gone:
        note(f"{folder.name} stays: another dbdyno uses it")
    note(f"{mebibytes(sum(sizes[folder] for folder in gone))} freed")


@app.command()
def start(
    reference: options.Reference,
    name: options.NewServerName = "",
    settings: options.ServerSettings = None,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Start a server, which runs until `dbdyno servers stop`. Print its address, the file with its
    password, and commands that use it.
    """
    open.check(reference)
    if is_endpoint(reference):
        raise UsageError("an endpoint runs already: there is nothing to fetch or start")
    called = name or label_of(reference).replace(":", "-")
    changed = options.settings_of(settings or [])
    with noted() as lines:
        server = kept.start(workspace, called, reference, changed, lines.stage)
    assert server.state is not None  # it is ready
    about = _about(server, server.state, workspace)
    print_lines("\n".join(f"{name}: {value}" for name, value in about.items()))


def _about(server: KeptServer, state: KeptState, workspace: Path) -> dict[str, str]:
    """Facts of a started server, and commands to be typed as they stand, by name."""
    usual = workspace == options.WORKSPACE
    place = "" if usual else f"DBDYNO_WORKSPACE={shlex.quote(str(workspace))} "
    load = f"{place}dbdyno sysbench --server {server.name} {LOAD}"
    client, end = (
        options.next_command("servers", command, server.name, workspace=workspace)
        for command in ("shell", "stop")
    )
    return {
        "name": server.name,
        "reference": state.reference,
        "version": state.version,
        "pid": str(state.pid or "unknown"),
        "dsn": state.dsn,
        "password file": str(server.folder / kept.PASSWORD),
        "client": client,
        "prepare": f"{load} prepare",
        "run": f"{load} run",
        "stop": end,
    }


@app.command()
def stop(name: options.ServerName = None, workspace: options.Workspace = options.WORKSPACE) -> None:
    """Stop a started server and delete its data."""
    server = kept.find(workspace, name)
    kept.stop(server, note)
    note(f"{server.name} was stopped, and its data removed")


@app.command()
def status(workspace: options.Workspace = options.WORKSPACE) -> None:
    """List started servers: reference, state, pid, address, age."""
    servers = kept.all_of(workspace)
    if not servers:
        note(f"no server was started in {workspace}")
    _print_columns([_row(server) for server in servers])


@app.command(
    "shell",
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": ["--help"],  # -h is an option of the client
    },
)
def open_shell(
    context: typer.Context,
    name: options.ServerName = None,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Log in to a started server. Further arguments go to its client (mysql, mariadb, psql)."""
    arguments = list(context.args)
    if name is not None and name.startswith("-"):  # an option of the client, and no name
        arguments.insert(0, name)
        name = None
    state, password = login(kept.find(workspace, name))
    command = kept.shell(state, password, arguments)
    sys.stdout.flush()
    os.execve(command.command[0], command.command, command.environment)  # noqa: S606 - becomes the client


def _row(server: KeptServer) -> tuple[str, ...]:
    state = server.state
    if state is None:
        return (server.name, "-", server.status, "-", "-", "-")
    pid = f"pid {state.pid}" if state.pid and server.status == "running" else "-"
    address = f"{state.host}:{state.port}" if server.status == "running" else state.ending or "-"
    return (server.name, state.reference, server.status, pid, address, f"since {state.since}")


def _print_columns(rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    shown = [[printable(cell) for cell in row] for row in rows]  # a server's last words too
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{line.rstrip()}\n")
