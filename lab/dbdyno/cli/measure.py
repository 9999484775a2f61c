"""Commands that measure: `compare` makes a plan of options, `run` reads a plan, `resume` goes on.

Only results go to stdout; progress and notes go to stderr.
"""

from __future__ import annotations

import sys

import typer

from dbdyno.cli import flow, options
from dbdyno.cli.compare import displaced, read
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.kept import system_of
from dbdyno.cli.machines import exposing, machines_of
from dbdyno.cli.plan import in_budget, pinned, read_file, with_generators
from dbdyno.cli.progress import note
from dbdyno.experiment.schedule.forecast import fitted, outlook_of
from dbdyno.language.catalogues import Language
from dbdyno.report.formats.stdout import Output
from dbdyno.servers.open import check


def compare(
    context: typer.Context,
    systems: options.Systems = None,
    server: options.KeptServers = None,
    workload: options.Workloads = None,
    threads: options.Threads = options.THREADS,
    rates: options.Rates = "",
    connections: options.Connections = options.CONNECTIONS,
    slo: options.Slo = "",
    fleet: options.Fleet = "",
    time: options.Time = None,
    blocks: options.Blocks = None,
    warmup: options.Warmup = None,
    window: options.Window = None,
    margin: options.Margin = options.MARGIN,
    disturbance_max: options.DisturbanceMax = options.DISTURBANCE_MAX,
    seed: options.Seed = "1",
    tables: options.Tables = options.TABLES,
    table_size: options.TableSize = options.TABLE_SIZE,
    table_options: options.TableOptions = "",
    distribution: options.Distribution = "uniform",
    settings: options.Settings = None,
    prepared: options.Prepared = True,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
    exit_code: options.ExitCode = False,
    prometheus: options.Prometheus = None,
    otlp: options.Otlp = None,
) -> None:
    """Measure two or more servers and judge which is faster."""
    typed = _typed(context)
    # By name, so that an option stands in the signature and in KEYS only.
    values = context.params | displaced(typed)
    is_open = bool(values["rates"] or values["slo"])
    values |= {
        "kept": [system_of(workspace, name) for name in server or ()],
        "threads": threads if not is_open or "threads" in typed else "",
        "connections": connections if is_open or "connections" in typed else None,
    }
    plan = with_generators(read(values, check), fleet)
    shown = ReportOptions(output, lang, exit_code)
    with machines_of(plan, fleet) as plain, exposing(plain, prometheus, otlp) as machines:
        flow.begin(pinned(plan), workspace, _command_line(), shown, machines)


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
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
    exit_code: options.ExitCode = False,
    prometheus: options.Prometheus = None,
    otlp: options.Otlp = None,
) -> None:
    """Run the comparison that a plan file describes."""
    whole_plan = with_generators(read_file(plan, scale, budget), fleet)
    shown = ReportOptions(output, lang, exit_code)
    with machines_of(whole_plan, fleet) as plain, exposing(plain, prometheus, otlp) as machines:
        count = machines.makers.machines
        fitted_plan = fitted(whole_plan, count)
        if words := in_budget(whole_plan, outlook_of(fitted_plan), count):
            note(words)
        flow.begin(pinned(fitted_plan), workspace, _command_line(), shown, machines)


def resume(
    run_id: options.Run,
    time: options.MoreTime = None,
    retry: options.Retry = False,
    trust: options.Trust = False,
    fleet: options.Fleet = "",
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
    exit_code: options.ExitCode = False,
    prometheus: options.Prometheus = None,
    otlp: options.Otlp = None,
) -> None:
    """Continue an interrupted run, or extend a complete run."""
    time_s = None if time is None else options.time_of("--time", time)
    shown = ReportOptions(output, lang, exit_code)
    flow.resume(
        run_id,
        workspace,
        shown,
        time_s=time_s,
        retry=retry,
        trusted=trust,
        fleet=fleet,
        prometheus=prometheus,
        otlp=otlp,
    )


def _command_line() -> str:
    return options.stored_command(*sys.argv[1:])
