"""`dbdyno workload`: lists dbdyno's own, checks a template, and tries each of its events."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from dbdyno import _engine, shipped
from dbdyno.cli import options
from dbdyno.cli.kept import system_of
from dbdyno.cli.progress import note, noted
from dbdyno.errors import LoadError, UsageError
from dbdyno.experiment.engine.spec import script_spec
from dbdyno.files import temporary_folder
from dbdyno.language.words import count
from dbdyno.plan.draft import draft
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan, label_of
from dbdyno.plan.template import Template, lua, read, text_of
from dbdyno.plan.workload import WorkloadPlan, known_workloads
from dbdyno.servers import open, tables
from dbdyno.servers.base import Server, ServerSpec
from dbdyno.servers.foreign.endpoint import EndpointInstance
from dbdyno.servers.reference import PROTOCOLS, is_endpoint
from dbdyno.sysbench.ending import failure_of, stoppable

app = typer.Typer(no_args_is_help=True)
File = Annotated[Path, typer.Argument(metavar="TEMPLATE.yaml", help="Template file.")]
Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="Address of the server, such as mysql://USER@HOST/DATABASE or "
        "postgresql://USER@HOST/DATABASE. The password is taken from MYSQL_PWD or PGPASSWORD.",
    ),
]
Tables = Annotated[
    list[str] | None, typer.Argument(metavar="TABLE", help="Tables to describe. Default: all.")
]
Values = Annotated[
    bool,
    typer.Option(
        "--values",
        help="Let texts with few values be chosen from their real values. By default no text of a "
        "row gets into the template, only its length.",
    ),
]


@app.command("list")
def list_built_in() -> None:
    """List built-in workloads, and dbdyno's templates and scripts."""
    ours = shipped.names(shipped.WORKLOADS)
    sys.stdout.write("".join(f"{name}\n" for name in (*known_workloads(), *ours)))
    sys.stdout.flush()  # so that a full disk is the only error
    note(f"the files are in {shipped.folder_of(shipped.WORKLOADS)}")


@app.command()
def check(file: File) -> None:
    """Check a template: print its mistakes, or its tables and events."""
    sys.stdout.write(_summary(_read(file)))


@app.command("try")
def try_it(
    file: File,
    reference: options.Reference = "",
    settings: options.ServerSettings = None,
    kept_server: options.KeptServer = "",
) -> None:
    """Run a template's events on a server and print their statements. Each event runs once, then
    random ones until ten have run. dbdyno starts the server, unless REF is the address of a running
    server, or --server names a started server. The database of a running server must contain no
    other tables.
    """
    if bool(reference) == bool(kept_server):
        raise UsageError(
            "a template is tried on one server",
            wanted="REF, or --server NAME",
            found="both" if reference else "neither",
        )
    script, password_env = lua(_read(file), file.name), ""
    if kept_server:
        system = system_of(options.WORKSPACE, kept_server)
        reference, password_env = system.reference, system.password_env
    open.check(reference)
    label, own = kept_server or label_of(reference), options.settings_of(settings or [])
    spec = ServerSpec(label, reference, own, password_env=password_env, has_scripts=True)
    with temporary_folder() as folder, noted() as lines:
        folder.chmod(0o755)  # the server's user must enter it
        instance = open.instance(spec, folder / "server", lines.stage)
        try:
            server = instance.start()
            lines.stage(f"{spec.label}: making the tables")
            with _cleared(script, server) if is_endpoint(reference) else nullcontext():
                _run(script, file.name, server, "prepare", 4)
                _run(script, file.name, server, "try", 1)
        finally:
            instance.close()


@app.command()
def new(address: Address, names: Tables = None, values: Values = False) -> None:
    """Write a template from the tables of a running server. It goes to stdout, and has their types,
    indexes and numbers of rows, made-up values, and example events. dbdyno only reads there.
    """
    if not is_endpoint(address):
        raise UsageError(
            f"{label_of(address)} is not the address of a running server",
            wanted=" or ".join(protocol.form for protocol in PROTOCOLS.values()),
        )
    spec = ServerSpec(label_of(address), address)
    with noted() as lines:
        instance = open.instance(spec, Path(), lines.stage)
        assert isinstance(instance, EndpointInstance)
        try:
            server = instance.login()
            session = server.sessions[0]
            session.answer_s_max = tables.QUESTION_S_MAX
            seen, reserved = tables.look(
                session, server.driver, server.database, names or (), lines.note, with_values=values
            )
            source = f"the database {server.database}, server version {server.version()}"
        finally:
            instance.close()
    sys.stdout.write(draft(seen, source, reserved))


@contextmanager
def _cleared(script: str, server: Server) -> Iterator[None]:
    """Drop the script's tables before and after: an endpoint outlives the trial."""
    _run(script, "cleanup", server, "cleanup", 1)
    try:
        yield
    finally:
        _run(script, "cleanup", server, "cleanup", 1)


def _read(file: Path) -> Template:
    path = Path(shipped.path_of(str(file), shipped.WORKLOADS))
    if path.suffix == ".lua":
        raise UsageError(
            f"{file} is a Lua script, not a template",
            wanted="TEMPLATE.yaml",
            hint=f"run a script with: dbdyno sysbench {file}",
        )
    return read(text_of(path), str(file))


def _summary(template: Template) -> str:
    tables = [f"{name} ({table.rows:,} rows)" for name, table in template.tables.items()]
    lines = [f"tables: {', '.join(tables) or 'none of its own'}"]
    for (name, event), share in zip(
        template.events.items(), template.shares().values(), strict=True
    ):
        statements = count(event.statement_count(), "statement")
        rest = f", then {event.think_time_ms:g} ms of rest" if event.think_time_ms else ""
        within = " in a transaction" if event.transaction else ""
        lines.append(f"{name}: {share:.1%} of the events, {statements}{within}{rest}")
    return "\n".join(lines) + "\n"


def _run(script: str, name: str, server: Server, command: str, threads: int) -> None:
    """Runs a command of the script; LoadError in its own words."""
    workload = WorkloadPlan(name=name, script=script)
    labels = ("first", "second")  # a plan has two systems or more
    plan = Plan(
        systems=tuple(SystemPlan(label=label, reference="mysql:8.0.33") for label in labels),
        workloads=(workload,),
    )
    spec: dict[str, Any] = script_spec(plan, workload, server, command, threads)

    def work(_stop: _engine.Stop) -> None:
        loaded = _engine.Script(spec)
        loaded.options()
        loaded.set_options(spec["options"])
        sys.stdout.flush()  # the script prints by itself
        if loaded.command(command) is None:
            loaded.call(command)
        else:
            loaded.run_command(command, threads)

    outcome = stoppable(work, _engine.Stop(), lambda: 0.0)  # its server is killed then
    if outcome.signal_number is not None:
        raise KeyboardInterrupt
    error = outcome.error
    if isinstance(error, RuntimeError):
        raise LoadError(
            f"{name}: its command {command} failed",
            found=str(failure_of(error)["message"]),
            hint="what the server says stands above; correct the template and try again",
        ) from error
    if error is not None:
        raise error
