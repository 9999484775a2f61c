"""Commands that measure: `compare` makes a plan of options, `run` reads one, `more` adds time.

Only results go to stdout; progress and notes go to stderr.
"""

from __future__ import annotations

import sys

import typer

from dbdyno.cli import flow, options
from dbdyno.cli.compare import TIME, read
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.plan import read_file, with_generators
from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.report.formats.stdout import Output
from dbdyno.servers.open import check


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


def _command_line() -> str:
    return options.stored_command(*sys.argv[1:])
