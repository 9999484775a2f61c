"""The options of the commands, each with its help: what `--help` prints stands here.

Numbers stay text in this file: the plan's own rules read them, so that every mistake of a command
line is told at once, in one way, and defaults have one home, the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import BLOCKS_UNTIL_DECIDED, DatasetPlan, DesignPlan, TrialPlan
from dbdyno.report.formats.stdout import Output

THREADS: Final = ",".join(map(str, LoadPlan().threads))
CONNECTIONS: Final = str(LoadPlan().connections)
BLOCKS: Final = str(DesignPlan().blocks)
MARGIN: Final = str(DesignPlan().margin)
TABLES: Final = str(DatasetPlan().tables)
TABLE_SIZE: Final = str(DatasetPlan().rows)
WARMUP: Final = str(TrialPlan().warmup_s)
WINDOW: Final = str(TrialPlan().window_s)
WORKSPACE: Final = Path("dbdyno-runs")
IN_A_RESUME: Final = frozenset({"resume", "retry", "workspace", "output", "lang"})
"""Options of `compare` that mean something to a run whose plan is stored."""


def at_home(path: Path) -> Path:
    """The path with ``~`` resolved: in ``--workspace=~/runs`` the shell leaves it as it is."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise typer.BadParameter(str(error)) from None


def at_home_or_none(path: Path | None) -> Path | None:
    """The same for an option that may be left out."""
    return None if path is None else at_home(path)


def settings_of(typed: Sequence[str]) -> dict[str, str]:
    """What was typed as --set KEY=VALUE; UsageError for what is not of that form."""
    settings: dict[str, str] = {}
    for text in typed:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {text} is not KEY=VALUE")
        settings[key] = value
    return settings


Systems = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SYSTEM",
        help="Such as mysql:8.0.15, or NAME=mysql:8.0.15 to choose its label. "
        "The first is the baseline.",
    ),
]
Workloads = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="May be repeated; oltp_read_write if there is none."),
]
Threads = Annotated[
    str, typer.Option(metavar="N,N…", help="Load levels: connections of a closed loop.")
]
Rates = Annotated[
    str,
    typer.Option(
        metavar="RATE,RATE…",
        help="Open loop: events/s, or such as 70% of what the slower system sustains (a pilot "
        "finds it). Then --threads has no default.",
    ),
]
Connections = Annotated[
    str, typer.Option(metavar="INTEGER", help="Connections over which an open loop is sent.")
]
Slo = Annotated[
    str,
    typer.Option(
        metavar="p99=20ms",
        help="Find the highest sustained rate of each system that keeps this latency.",
    ),
]
Blocks = Annotated[
    str | None,
    typer.Option(
        metavar="INTEGER",
        help="Repetitions; a verdict needs 3 at least; "
        f"{BLOCKS}, or {BLOCKS_UNTIL_DECIDED} at most with --stop decided.",
    ),
]
Stop = Annotated[
    str,
    typer.Option(
        metavar="blocks|decided",
        help="Run all blocks, or no more than it takes until every cell is decided.",
    ),
]
Controls = Annotated[
    bool,
    typer.Option(
        help="From five blocks on, run the baseline twice more in each block: as it is, and slowed "
        "down by 2 %. It shows how far the verdicts can be trusted."
    ),
]
Tables = Annotated[str, typer.Option(metavar="INTEGER", help="Tables of the dataset.")]
TableSize = Annotated[str, typer.Option(metavar="INTEGER", help="Rows in each table.")]
Warmup = Annotated[str, typer.Option(metavar="SECONDS", help="Load before the measured window.")]
Window = Annotated[str, typer.Option(metavar="SECONDS", help="Measured window of a trial.")]
Margin = Annotated[
    str, typer.Option(metavar="RATIO", help="Difference that matters to you: 0.02 = 2 %.")
]
Seed = Annotated[
    str, typer.Option(metavar="INTEGER", help="Of the order of trials and of the requests.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[LABEL:]KEY=VALUE",
        help="Server setting for one system, or for all; may be repeated.",
    ),
]
ServerSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Server setting; may be repeated."),
]
Restart = Annotated[
    str,
    typer.Option(
        metavar="block|cell",
        help="Fresh server and dataset for each system of a block, or for each of its cells.",
    ),
]
Prepared = Annotated[bool, typer.Option(help="Use prepared statements.")]
Distribution = Annotated[
    str,
    typer.Option(metavar="NAME", help="Rows touched: uniform, special, gaussian, pareto, zipfian."),
]
ResumeRun = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Go on with a stored run, or `latest`; its plan is stored."),
]
ResumePlan = Annotated[
    bool, typer.Option("--resume", help="Go on with the newest unfinished run of this plan.")
]
Scale = Annotated[
    str, typer.Option(metavar="NAME", help="One of the plan's scales: the same in another size.")
]
Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Such as 2h or 90m: as many blocks as fit into it."),
]
Retry = Annotated[
    bool,
    typer.Option("--retry", help="With --resume: try cells again that could not be run."),
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="The plan file.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or `latest`.")]
RunOrBundle = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, `latest`, or a bundle's file.")
]
Reference = Annotated[str, typer.Argument(metavar="REF", help="Such as mysql:8.0.15.")]
Version = Annotated[bool, typer.Option("--version", help="Print the version and end.")]
Workspace = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        help="Folder of the store, the servers' data and the reports.",
        callback=at_home,
    ),
]
OutputAs = Annotated[
    Output, typer.Option(metavar="plain|json|markdown", help="What goes to stdout.")
]
Lang = Annotated[
    Language,
    typer.Option(metavar="en|zh", help="Language of the report and of stdout; JSON is English."),
]
