"""Commands that measure: `compare` makes a plan of options, `run` reads a plan, `resume` goes on.

Only results go to stdout; progress and notes go to stderr.
"""

from __future__ import annotations

import sys

import typer

from dbdyno.cli import flow, options
from dbdyno.cli.compare import read
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.plan import read_file, with_generators
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
    tables: options.Tables = options.TABLES,
    table_size: options.TableSize = options.TABLE_SIZE,
    warmup: options.Warmup = None,
    window: options.Window = None,
    margin: options.Margin = options.MARGIN,
    disturbance_max: options.DisturbanceMax = options.DISTURBANCE_MAX,
    seed: options.Seed = "1",
    settings: options.Settings = None,
    prepared: options.Prepared = True,
    distribution: options.Distribution = "uniform",
    fleet: options.Fleet = "",
    exit_code: options.ExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Measure systems side by side, a verdict on each cell."""
    typed = {  # by name, so that an option stands in the signature and in KEYS only
        **context.params,
        "threads": threads if not (rates or slo) or "threads" in _typed(context) else "",
        "connections": connections if "connections" in _typed(context) else None,
    }
    plan = with_generators(read(typed, check), fleet)
    flow.begin(plan, workspace, _command_line(), ReportOptions(output, lang, exit_code), fleet)


def _typed(context: typer.Context) -> list[str]:
    """Names of the options and arguments on the command line."""
    return [
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]


def run(
    plan: options.PlanFile,
    scale: options.Scale = "",
    budget: options.Budget = None,
    fleet: options.Fleet = "",
    exit_code: options.ExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Run a plan file."""
    whole_plan = with_generators(read_file(plan, scale, budget), fleet)
    options_of_report = ReportOptions(output, lang, exit_code)
    flow.begin(whole_plan, workspace, _command_line(), options_of_report, fleet, fit=True)


def resume(
    run_id: options.Run,
    time: options.MoreTime = None,
    retry: options.Retry = False,
    fleet: options.Fleet = "",
    exit_code: options.ExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Go on with a stored run, or add time to it."""
    time_s = None if time is None else options.time_of("--time", time)
    shown = ReportOptions(output, lang, exit_code)
    flow.resume(run_id, workspace, shown, time_s=time_s, retry=retry, fleet=fleet)


def _command_line() -> str:
    return options.stored_command(*sys.argv[1:])
