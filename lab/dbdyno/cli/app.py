"""The command line: each command reads what was typed, calls one function and prints.

Commands are thin on purpose: `compare` makes a plan of options, `flow` runs a plan. Only results go
to stdout; progress and notes go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from dbdyno import __version__, _engine
from dbdyno.cli import audit, flow, gate, options, prove, runs, servers, transfer, workload
from dbdyno.cli import fleet as fleet_command
from dbdyno.cli.compare import TIME, read
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.plan import plan_app, read_file, with_generators
from dbdyno.cli.progress import note
from dbdyno.errors import UsageError
from dbdyno.files import restrict_umask
from dbdyno.language.catalogues import Language, catalogue, of_environment
from dbdyno.report.formats.stdout import Output
from dbdyno.servers.open import check
from dbdyno.store.store import opened
from dbdyno.sysbench import entry

Helped = TyperGroup | TyperCommand | TyperOption | TyperArgument

app = typer.Typer(
    name="dbdyno",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(servers.app, name="servers")
app.add_typer(runs.app, name="runs")
app.add_typer(plan_app, name="plan")
app.add_typer(workload.app, name="workload")
app.add_typer(fleet_command.app, name="fleet")


def command_line(language: Language | None = None) -> TyperGroup:
    """All commands, with help in that language; unless given, in that of the environment."""
    whole, known = typer.main.get_group(app), catalogue(language or of_environment())
    for one in helped(whole) if known else ():
        one.help = known.get(one.help or "", one.help)
    return whole


def helped(command: Helped) -> Iterator[Helped]:
    """A command, its options and arguments, and the commands that it is parted into."""
    yield command
    if isinstance(command, TyperCommand | TyperGroup):
        for parameter in command.params:
            if isinstance(parameter, TyperOption | TyperArgument):
                yield parameter
    for part in command.commands.values() if isinstance(command, TyperGroup) else ():
        if isinstance(part, TyperCommand | TyperGroup):
            yield from helped(part)


@app.callback(invoke_without_command=True)
def root(version: options.Version = False) -> None:
    """Compares database servers under load and gives a verdict that you can defend."""
    restrict_umask()
    if version:
        sys.stdout.write(f"dbdyno {__version__} (engine {_engine.version()})\n")
        raise typer.Exit


@app.command()
def compare(
    context: typer.Context,
    systems: options.Systems = None,
    workload: options.Workloads = None,
    threads: options.Threads = options.THREADS,
    rates: options.Rates = "",
    connections: options.Connections = options.CONNECTIONS,
    slo: options.Slo = "",
    time: options.Time = None,
    blocks: options.Blocks = None,
    stop: options.Stop = None,
    controls: options.Controls = None,
    tables: options.Tables = options.TABLES,
    table_size: options.TableSize = options.TABLE_SIZE,
    warmup: options.Warmup = None,
    window: options.Window = None,
    margin: options.Margin = options.MARGIN,
    disturbance_max: options.DisturbanceMax = options.DISTURBANCE_MAX,
    seed: options.Seed = "1",
    settings: options.Settings = None,
    restart: options.Restart = "block",
    prepared: options.Prepared = True,
    distribution: options.Distribution = "uniform",
    fleet: options.Fleet = "",
    generators: options.Generators = None,
    resume: options.ResumeRun = None,
    retry: options.Retry = False,
    exit_code: options.ExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Measure systems side by side, a verdict on each cell."""
    if resume is not None:
        _refuse_beside_resume(context)
        flow.resume(
            resume, workspace, ReportOptions(output, lang, exit_code), retry=retry, fleet=fleet
        )
        return
    _refuse_without_resume(retry, "--resume RUN")
    typed = {  # by name, so that an option stands in the signature and in KEYS only
        **context.params,
        "threads": threads if not (rates or slo) or "threads" in _typed(context) else "",
        "connections": connections if "connections" in _typed(context) else None,
        "generators": generators or ("1" if fleet else None),
    }
    plan = read(typed, check)
    flow.begin(plan, workspace, _command_line(), ReportOptions(output, lang, exit_code), fleet)


def _typed(context: typer.Context) -> list[str]:
    """The options and arguments that stand on the command line."""
    return [
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]


def _refuse_beside_resume(context: typer.Context) -> None:
    """UsageError for options that would change the plan of a resumed run."""
    spelled = {one.name: one.opts[0] for one in context.command.params}
    typed = [spelled[one] for one in _typed(context) if one not in options.ALLOWED_WITH_RESUME]
    if typed:
        among = ", ".join(f"--{name}" for name in sorted(options.ALLOWED_WITH_RESUME - {"resume"}))
        raise UsageError(
            "a resumed run keeps its plan",
            wanted=f"--resume with {among} only",
            found=f"also {', '.join(sorted(typed))}",
            hint="leave the others out, or begin a new run without --resume",
        )


def _refuse_without_resume(retry: bool, wanted: str) -> None:
    """UsageError for --retry in a new run, in which nothing was tried yet."""
    if retry:
        raise UsageError("--retry is for a run that is resumed", wanted=f"{wanted} beside it")


@app.command()
def run(
    plan: options.PlanFile,
    scale: options.Scale = "",
    budget: options.Budget = None,
    resume: options.ResumePlan = False,
    retry: options.Retry = False,
    fleet: options.Fleet = "",
    generators: options.Generators = None,
    exit_code: options.ExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Run a plan file."""
    if not resume:
        _refuse_without_resume(retry, "--resume")
    asked = with_generators(read_file(plan, scale, budget), generators, fleet)
    if resume:
        flow.resume_plan(
            asked, workspace, ReportOptions(output, lang, exit_code), retry=retry, fleet=fleet
        )
    else:
        options_of_report = ReportOptions(output, lang, exit_code)
        flow.begin(asked, workspace, _command_line(), options_of_report, fleet, fit=True)


@app.command()
def more(
    run_id: options.Run,
    time: options.Added = TIME,
    fleet: options.Fleet = "",
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Add time to a run that was begun with a time."""
    time_s = options.time_of("--time", time)
    flow.more(run_id, time_s, workspace, ReportOptions(output, lang), fleet)


@app.command()
def report(
    run_id: options.RunOrBundle,
    exit_code: options.ExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Judge a stored run or a bundle again. Its report is written again."""
    flow.report(run_id, workspace, ReportOptions(output, lang, exit_code))


def serve(
    port: options.Port = options.PORT,
    host: options.Host = "127.0.0.1",
    workspace: options.Workspace = options.WORKSPACE,
    lang: options.Lang = Language.EN,
) -> None:
    """Show runs, reports and a run in progress in a browser."""
    # Imported only here: other commands load no web server.
    from dbdyno.serve import server  # noqa: PLC0415 - see above

    def begun() -> None:
        sys.stdout.write(f"{server.address(listening)}\n")
        sys.stdout.flush()
        note("Ctrl-C closes it")

    opened(workspace).close()
    listening = server.listen(host, port)
    try:
        server.serve(workspace, listening, begun=begun, language=lang)
    except KeyboardInterrupt:
        note("the page is closed")


app.command("export")(transfer.export_command)
app.command("serve")(serve)
app.command("gate")(gate.gate_command)
app.command("history")(gate.history_command)
app.command("bundle")(transfer.pack)
app.command("verify")(transfer.verify)
app.command("replay")(transfer.replay)
app.command("import")(transfer.import_command)
app.command("audit")(audit.command)
app.command("certify")(prove.prove_generator)
app.command("prove-durability")(prove.prove_durability)


@app.command(
    "sysbench",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def sysbench(context: typer.Context) -> None:
    """Do what sysbench does: prepare, run, cleanup."""
    raise typer.Exit(entry.main(context.args))


def _command_line() -> str:
    return options.stored_command(*sys.argv[1:])
