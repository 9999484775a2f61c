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


# `dbdyno compare`. A heading (`rich_help_panel`) holds for the options after it, too.

Systems = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SYSTEM",
        help="Two or more servers: mysql:8.0.15, or mysql://USER@HOST/DATABASE for a running one. "
        "LABEL=mysql:8.0.15 sets a label. The first is the baseline.",
        rich_help_panel="What to compare",
    ),
]
Workloads = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Built-in workload, or a file (Lua, YAML); may be repeated. Default: oltp_read_write.",
    ),
]
Threads = Annotated[
    str,
    typer.Option(
        metavar="N,N…",
        help="Load levels: numbers of connections that send without a pause (closed loop).",
        rich_help_panel="Load",
    ),
]
Rates = Annotated[
    str,
    typer.Option(
        metavar="RATE,RATE…",
        help="Load levels: fixed rates (open loop), such as 500 (events/s) or 70% (of the slower "
        "system's highest rate, found by a pilot). Replaces the default --threads.",
    ),
]
Connections = Annotated[
    str, typer.Option(metavar="INTEGER", help="Connections for --rates and --slo.")
]
Slo = Annotated[
    str,
    typer.Option(metavar="p99=20ms", help="Find each system's highest rate within this latency."),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Longest measuring time, such as 5m or 2h; downloads and loading data come on top. "
        "Chooses warm-up, window and blocks, and ends early once the comparison is decided. "
        f"Default: {TIME}, unless --blocks, --warmup, --window, --rates or --slo is given.",
        rich_help_panel="How long and how exact",
    ),
]
Blocks = Annotated[
    str | None,
    typer.Option(
        metavar="INTEGER",
        help="Number of repetitions, in place of --time; a verdict needs 3. "
        f"Default without a time: {BLOCKS}.",
    ),
]
Tables = Annotated[
    str,
    typer.Option(metavar="INTEGER", help="Number of tables.", rich_help_panel="Data and settings"),
]
TableSize = Annotated[str, typer.Option(metavar="INTEGER", help="Rows per table.")]
Warmup = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS",
        help=f"Load before each measured window. Default without a time: {WARMUP}.",
    ),
]
Window = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS", help=f"Measured window of each trial. Default without a time: {WINDOW}."
    ),
]
Margin = Annotated[
    str, typer.Option(metavar="RATIO", help="Smallest difference that matters to you: 0.02 = 2 %.")
]
DisturbanceMax = Annotated[
    str,
    typer.Option(
        metavar="RATIO",
        help="Repeat a trial if other programs used more than this share of the machine's CPU; "
        "100% never repeats.",
    ),
]
Seed = Annotated[
    str, typer.Option(metavar="INTEGER", help="Random seed for trial order and requests.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[LABEL:]KEY=VALUE",
        help="Server setting, for the system with that label or for all; may be repeated.",
    ),
]
Prepared = Annotated[bool, typer.Option(help="Use prepared statements.")]
Distribution = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="How rows are chosen: uniform, special, gaussian, pareto, zipfian."
    ),
]
Retry = Annotated[bool, typer.Option("--retry", help="Retry measurements that could not be run.")]

Fleet = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Ray cluster, such as 10.0.0.1:6379, or auto for this machine's cluster. Only the "
        "load generator runs there, unless a plan has `fleet` (docs/how-to/fleet.md).",
    ),
]

# What every command of runs has.

Workspace = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        help="Folder for results; its disk holds the servers' data.",
        callback=expanded,
        rich_help_panel="General options",
    ),
]
OutputAs = Annotated[
    Output, typer.Option(metavar="plain|json|markdown", help="Format of the result on stdout.")
]
ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code", help="Exit with status 4 if a cell is void, 3 if one has not enough data."
    ),
]
Lang = Annotated[
    Language,
    typer.Option(metavar="en|zh", help="Language of report and result; JSON stays English."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Run id, or `latest`.")]
RunIds = Annotated[list[str], typer.Argument(metavar="RUN", help="Run ids.")]
Yes = Annotated[bool, typer.Option("--yes", help="Delete without asking.")]
MoreTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Time to add, such as 10m, to a complete run measured with --time."
    ),
]
RunOrBundle = Annotated[
    str, typer.Argument(metavar="RUN", help="Run id, `latest`, or a bundle file.")
]

# `dbdyno run` and `dbdyno plan`.

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="Plan file (YAML).")]
Scale = Annotated[
    str, typer.Option(metavar="NAME", help="Size of the run: a name under `scales` in the plan.")
]
Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time for the whole run, such as 2h: as many blocks as fit."),
]

# `dbdyno gate`.

Slower = Annotated[
    str | None,
    typer.Option(
        "--fail-if-slower",
        metavar="SHARE",
        help="Slowdown to allow, such as 3%. Default: the run's margin.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail also if a system is not proved within the limit.")
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
        help=f"File to write. Default: RUN{SUFFIX} in the current folder.",
        callback=expanded_or_none,
    ),
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Check that the run or bundle is unchanged; write nothing.")
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Run even if the plan asks for unknown programs, hosts or files."),
]
With = Annotated[
    str | None,
    typer.Option(
        "--with", metavar="RUN", help="Compare with this stored run or bundle; run nothing."
    ),
]
Replayed = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="Bundle file, or the id of a stored run.")
]

# `dbdyno history` and `dbdyno export`.

Label = Annotated[
    str | None,
    typer.Argument(
        metavar="LABEL", help="Label of the system, such as mysql:8.0.15. Default: all."
    ),
]
Last = Annotated[
    int, typer.Option(metavar="N", min=1, max=1_000_000, help="Number of newest runs to list.")
]
Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for Parquet files.", callback=expanded_or_none),
]
Csv = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for CSV files.", callback=expanded_or_none),
]

# `dbdyno serve`.

Port = Annotated[
    int,
    typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0 picks a free port."),
]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Loopback address to listen on.")]

# `dbdyno servers` and `dbdyno prove-durability`.

Reference = Annotated[str, typer.Argument(metavar="REF", help="Server, such as mysql:8.0.15.")]
ServerSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Server setting; may be repeated."),
]
ServerName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Server's name, unless there is only one.")
]
NewServerName = Annotated[
    str, typer.Option(metavar="NAME", help="Server's name. Default: such as mysql-8.0.15.")
]
Kills = Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Number of kills.")]
CommitConnections = Annotated[
    int, typer.Option(min=1, max=64, metavar="N", help="Connections that send commits.")
]
CommitSeconds = Annotated[
    float, typer.Option(min=0.2, max=3600, metavar="SECONDS", help="Load before each kill.")
]

# `dbdyno audit`.

Publication = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="Pages with tables, logs, or data as YAML."),
]
Imported = Annotated[list[Path], typer.Argument(metavar="PATH", help="Logs, tables, or folders.")]
ImportedAs = Annotated[str, typer.Option("--as", metavar="NAME", help="Title of the new run.")]
NamePattern = Annotated[
    str,
    typer.Option(
        metavar="PATTERN", help="Parts of the file names, such as {workload}_{threads}_{system}."
    ),
]
OwnRun = Annotated[
    str | None, typer.Option("--self", metavar="RUN", help="Audit a stored run in place of files.")
]
AuditPage = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write an HTML page.", callback=expanded_or_none),
]
ColumnMapping = Annotated[
    Path | None, typer.Option(metavar="FILE", help="YAML file that explains columns and names.")
]
