"""Arguments and options of all commands, with their text for `--help`.

Numbers stay text in this file: the plan reads and checks them, so all mistakes of a command line
are reported at once, and the plan alone knows defaults.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from dbdyno.cli.compare import TIME
from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import (
    BUDGET_S_MAX,
    DatasetPlan,
    DesignPlan,
    TrialPlan,
)
from dbdyno.plan.spelling import duration_s
from dbdyno.report.formats.stdout import Output
from dbdyno.store.bundle import SUFFIX

THREADS: Final = ",".join(map(str, LoadPlan().threads))
CONNECTIONS: Final = str(LoadPlan().connections)
BLOCKS: Final = str(DesignPlan().blocks)
MARGIN: Final = str(DesignPlan().margin)
DISTURBANCE_MAX: Final = str(DesignPlan().disturbance_max)
TABLES: Final = str(DatasetPlan().tables)
TABLE_SIZE: Final = str(DatasetPlan().rows)
WARMUP: Final = str(TrialPlan().warmup_s)
WINDOW: Final = str(TrialPlan().window_s)
WORKSPACE: Final = Path("dbdyno-runs")
PORT: Final = 8732


def expanded(path: Path) -> Path:
    """The path with ``~`` resolved: in ``--workspace=~/runs`` the shell leaves it as it is."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise typer.BadParameter(str(error)) from None


def expanded_or_none(path: Path | None) -> Path | None:
    """The expanded path of an optional option; None without it."""
    return None if path is None else expanded(path)


def settings_of(typed: Sequence[str]) -> dict[str, str]:
    """Settings of --set KEY=VALUE; UsageError for a malformed text."""
    settings: dict[str, str] = {}
    for text in typed:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {text} is not KEY=VALUE")
        if key in settings:
            raise UsageError(f"--set {key} stands twice", hint="keep one of the two")
        settings[key] = value
    return settings


def time_of(option: str, text: str) -> float:
    """Seconds of an option (--time 2h); UsageError for an invalid time of a run."""
    seconds = duration_s(text)
    with contextlib.suppress(ValueError):
        seconds = float(text)
    if not isinstance(seconds, float) or not 0 < seconds <= BUDGET_S_MAX:
        raise UsageError(
            f"{option} {text} is no time of a run",
            wanted="such as 2h, 90m, 45s or 45 (seconds), a year at most",
            found=repr(text),
        )
    return seconds


def stored_command(*words: str) -> str:
    """A command line as it is stored with a run."""
    return in_utf8(shlex.join(["dbdyno", *words]))


def in_utf8(typed: str) -> str:
    """Text with escapes in place of bytes outside UTF-8."""
    return typed.encode(errors="surrogateescape").decode(errors="backslashreplace")


def next_command(*words: str, workspace: Path) -> str:
    """Suggested next command, with the workspace unless it is the default."""
    where = () if workspace == WORKSPACE else ("--workspace", str(workspace))
    return shlex.join(["dbdyno", *words, *where])


# `dbdyno compare`.

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
Time = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="How long to measure, such as 5m or 2h; downloads and loading come on top. The first "
        "blocks show how much this machine scatters; warm-up, window and blocks follow from that, "
        "and the run ends sooner if the comparison is decided. "
        f"{TIME} unless blocks, a warm-up, a window, rates or a latency limit are given.",
    ),
]
Blocks = Annotated[
    str | None,
    typer.Option(
        metavar="INTEGER",
        help="Repetitions instead of a time; a verdict needs 3 at least; "
        f"{BLOCKS} with a warm-up or window alone.",
    ),
]
Tables = Annotated[str, typer.Option(metavar="INTEGER", help="Tables of the dataset.")]
TableSize = Annotated[str, typer.Option(metavar="INTEGER", help="Rows in each table.")]
Warmup = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS",
        help=f"Load before the measured window; {WARMUP} with a window or blocks.",
    ),
]
Window = Annotated[
    str | None,
    typer.Option(metavar="SECONDS", help=f"Measured window of a trial; {WINDOW} with blocks."),
]
Margin = Annotated[
    str, typer.Option(metavar="RATIO", help="Difference that matters to you: 0.02 = 2 %.")
]
DisturbanceMax = Annotated[
    str,
    typer.Option(
        metavar="RATIO",
        help="A trial in whose window others had more of the host's CPU is void and its cell "
        "measured again; 100% for no such rule.",
    ),
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
Prepared = Annotated[bool, typer.Option(help="Use prepared statements.")]
Distribution = Annotated[
    str,
    typer.Option(metavar="NAME", help="Rows touched: uniform, special, gaussian, pareto, zipfian."),
]
Retry = Annotated[
    bool,
    typer.Option("--retry", help="Try cells again that could not be run."),
]

Fleet = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Ray cluster for the plan's fleet:, such as 10.0.0.1:6379, or auto; for the load "
        "generator if the plan has none (docs/how-to/fleet.md).",
    ),
]

# What every command of runs has.

Workspace = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        help="Folder of the store and the reports; servers work on its disk.",
        callback=expanded,
    ),
]
OutputAs = Annotated[
    Output, typer.Option(metavar="plain|json|markdown", help="What goes to stdout.")
]
ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code", help="Exit with 4 if a verdict is void, with 3 if one is undecided."
    ),
]
Lang = Annotated[
    Language,
    typer.Option(metavar="en|zh", help="Language of report and stdout; JSON is English."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or `latest`.")]
RunIds = Annotated[list[str], typer.Argument(metavar="RUN…", help="Ids of runs.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
MoreTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Such as 10m: time to add to a complete run that was begun with one."
    ),
]
RunOrBundle = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, `latest`, or a bundle's file.")
]

# `dbdyno run` and `dbdyno plan`.

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="The plan file.")]
Scale = Annotated[
    str, typer.Option(metavar="NAME", help="One of the plan's scales: the same in another size.")
]
Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Such as 2h or 90m: as many blocks as fit into it."),
]

# `dbdyno gate`.

Slower = Annotated[
    str | None,
    typer.Option(
        "--fail-if-slower",
        metavar="SHARE",
        help="Such as 3%: how much slower a system may be; the plan's margin if left out.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail also if it is not proved to be within that.")
]
JUnit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write a JUnit file.", callback=expanded_or_none),
]

# `dbdyno bundle` and `dbdyno replay`.

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"The bundle; RUN{SUFFIX} in this folder if left out.",
        callback=expanded_or_none,
    ),
]
Verify = Annotated[
    bool,
    typer.Option("--verify", help="Write nothing: check that the run, or a bundle, is as stored."),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Run it even if it asks for unknown programs, hosts or files."),
]
With = Annotated[
    str | None,
    typer.Option(
        "--with", metavar="RUN", help="Compare with this stored run or bundle; run nothing."
    ),
]
Replayed = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="A bundle's file, or a run of the workspace.")
]

# `dbdyno history` and `dbdyno export`.

Label = Annotated[
    str | None,
    typer.Argument(
        metavar="LABEL", help="A system's label, such as mysql:8.0.15; all if left out."
    ),
]
Last = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, max=1_000_000, help="How many of the newest runs; each is judged again."
    ),
]
Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write Parquet files there.", callback=expanded_or_none),
]
Csv = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write CSV files there.", callback=expanded_or_none),
]

# `dbdyno serve`.

Port = Annotated[
    int,
    typer.Option(
        metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for any that is free."
    ),
]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Address of this machine's loopback to listen on.")
]

# `dbdyno servers` and `dbdyno prove-durability`.

Reference = Annotated[str, typer.Argument(metavar="REF", help="Such as mysql:8.0.15.")]
ServerSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Server setting; may be repeated."),
]
ServerName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="May be left out if there is only one.")
]
NewServerName = Annotated[str, typer.Option(help="Its name; made from its reference if left out.")]
Kills = Annotated[
    int, typer.Option(min=1, max=100, metavar="N", help="How many times the server is killed.")
]
CommitConnections = Annotated[
    int, typer.Option(min=1, max=64, metavar="N", help="Connections that send commits.")
]
CommitSeconds = Annotated[
    float,
    typer.Option(min=0.2, max=3600, metavar="SECONDS", help="Time of commits before each kill."),
]

# `dbdyno audit`.

Publication = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE…", help="Data as YAML, pages with tables, or logs."),
]
Imported = Annotated[list[Path], typer.Argument(metavar="PATH…", help="Logs, and folders of logs.")]
ImportedAs = Annotated[str, typer.Option("--as", metavar="NAME", help="Title of the run.")]
NamePattern = Annotated[
    str,
    typer.Option(
        metavar="PATTERN",
        help="What file names say, such as {workload}_{threads}_{port}.",
    ),
]
OwnRun = Annotated[
    str | None,
    typer.Option("--self", metavar="RUN", help="Audit what a run of your own would publish."),
]
AuditPage = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a page too.", callback=expanded_or_none),
]
ColumnMapping = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="YAML that says what columns of a table mean."),
]
