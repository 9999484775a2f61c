"""`--server NAME`: a server kept up by `dbdyno servers start`, as a system or a sysbench login.

No plan, argument or variable holds its password. A plan has the name of a variable, under which
only this process finds the password, as long as the server runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dbdyno.cli import defaults
from dbdyno.errors import DbdynoError, ServerError
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.kept import kept
from dbdyno.servers.kept.kept import KeptServer, KeptState
from dbdyno.servers.reference import lend_password
from dbdyno.sysbench.options.values import argument_error

VARIABLE: Final = "DBDYNO_PASSWORD_"
"""Beginning of the variable's name; the server's port follows, which is unique on a machine."""


def system_of(workspace: Path, name: str) -> SystemPlan:
    """A running server as an endpoint to measure, its password lent to this process.

    Raises:
        UsageError: no server has this name.
        ServerError: the server does not run.
    """
    state, password = login(kept.find(workspace, name))
    variable = f"{VARIABLE}{state.port}"
    lend_password(variable, password)
    return SystemPlan(label=name, reference=state.dsn, password_env=variable)


def lend_passwords(workspace: Path, plan: Plan) -> None:
    """Lend this process the passwords of a plan's servers still running in the workspace."""
    wanted = {s.reference for s in plan.systems if s.password_env.startswith(VARIABLE)}
    for server in kept.all_of(workspace) if wanted else ():
        if server.status == "running" and server.state and server.state.dsn in wanted:
            system_of(workspace, server.name)


def login(server: KeptServer) -> tuple[KeptState, str]:
    """State and password of a running server; ServerError for any other."""
    if server.state is None or server.status != "running":
        raise ServerError(
            f"the server {server.name} does not run",
            found=f"it is {server.status}",
            hint="see: dbdyno servers status",
        )
    return server.state, kept.password(server)


def sysbench_login(name: str) -> dict[str, str]:
    """sysbench's options for a running server of the usual workspace; Refusal for any other."""
    try:
        state, password = login(kept.find(defaults.workspace(), name))
    except DbdynoError as error:
        raise argument_error(str(error)) from error
    return {
        "db-driver": state.driver,
        f"{state.driver}-host": state.host,
        f"{state.driver}-port": str(state.port),
        f"{state.driver}-user": state.user,
        f"{state.driver}-password": password,
        f"{state.driver}-db": state.database,
    }
