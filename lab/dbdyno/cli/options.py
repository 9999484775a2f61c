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

from dbdyno.cli import defaults
from dbdyno.cli.compare import TIME
from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.language.words import in_utf8
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
WORKSPACE: Final = defaults.workspace()
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


def next_command(*words: str, workspace: Path) -> str:
    """Suggested next command, with the workspace unless it is the default."""
    where = () if workspace == WORKSPACE else ("--workspace", str(workspace))
    return shlex.join(["dbdyno", *words, *where])


# `dbdyno compare`. A heading (`rich_help_panel`) holds for the options after it, too.

Systems = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SYSTEM",
        help="Two or more servers, such as mysql:8.0.15 (downloaded), the https:// address of a "
        "vendor's archive, or mysql://USER@HOST/DATABASE (already running). LABEL=mysql:8.0.15 "
        "gives a server a name for the report. All servers are compared with the first, the "
        "baseline.",
        rich_help_panel="What to compare",
    ),
]
KeptServers = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="NAME",
        help="Also compare the server that `dbdyno servers start` started as NAME. Repeatable.",
    ),
]
Workloads = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Built-in workload (dbdyno workload list), or a Lua script or YAML template. "
        "Repeatable. Default: oltp_read_write.",
    ),
]
Threads = Annotated[
    str,
    typer.Option(
        metavar="N,N…",
        help="Numbers of connections to measure with. Each connection sends its next request "
        "when its last request is answered (closed loop).",
        rich_help_panel="Load",
    ),
]
Rates = Annotated[
    str,
    typer.Option(
        metavar="RATE,RATE…",
        help="Fixed rates to measure with, in place of --threads (open loop): 500 means 500 "
        "transactions/s, 70% means 70 % of the slowest server's throughput, which dbdyno "
        "measures first.",
    ),
]
Connections = Annotated[
    str,
    typer.Option(
        metavar="INTEGER",
        help="Number of connections that send the requests of --rates and --slo.",
    ),
]
Slo = Annotated[
    str,
    typer.Option(
        metavar="p99=20ms",
        help="Find the highest rate at which each server's latency stays within this limit, here "
        "99 % of requests within 20 ms.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Longest time to measure, such as 5m or 2h, not counting downloads and loading data. "
        "dbdyno chooses length and number of measurements, and ends early if every verdict has "
        f"enough data. Default: {TIME}, unless --blocks, --warmup, --window, --rates or --slo is "
        "given.",
        rich_help_panel="How long and how exact",
    ),
]
Blocks = Annotated[
    str | None,
    typer.Option(
        metavar="INTEGER",
        help="Number of times to measure every server. A verdict needs at least 3. "
        f"Default: chosen by --time, else {BLOCKS}.",
    ),
]
Tables = Annotated[
    str,
    typer.Option(
        metavar="INTEGER",
        help="Number of tables to load.",
        rich_help_panel="Data and settings",
    ),
]
TableSize = Annotated[
    str, typer.Option(metavar="INTEGER", help="Number of rows to load into each table.")
]
TableOptions = Annotated[
    str,
    typer.Option(
        metavar="SQL", help="SQL for the end of each CREATE TABLE, such as SHARD_ROW_ID_BITS=4."
    ),
]
Warmup = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS",
        help="Seconds of load before each measurement, which do not count. "
        f"Default: chosen by --time, else {WARMUP} seconds.",
    ),
]
Window = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS",
        help=f"Seconds of each measurement. Default: chosen by --time, else {WINDOW} seconds.",
    ),
]
Margin = Annotated[
    str, typer.Option(metavar="RATIO", help="Smallest difference that matters to you. 0.02 is 2 %.")
]
DisturbanceMax = Annotated[
    str,
    typer.Option(
        metavar="RATIO",
        help="Repeat a measurement if other programs or virtual machines took more than this "
        "share of the host's CPU. 100% means never repeat.",
    ),
]
Seed = Annotated[
    str,
    typer.Option(
        metavar="INTEGER", help="Random seed for the order of measurements and for the requests."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[LABEL:]KEY=VALUE",
        help="Server setting for the server called LABEL, or without LABEL for all servers. "
        "Repeatable.",
    ),
]
Prepared = Annotated[
    bool, typer.Option(help="Send prepared statements, or else statements as text.")
]
Distribution = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Random distribution of the rows that queries touch: uniform, special (sysbench's "
        "default: most accesses go to few rows), gaussian, pareto, zipfian.",
    ),
]
Retry = Annotated[
    bool,
    typer.Option(
        "--retry",
        help="Also repeat measurements that failed because the server refused them, "
        "for example with too many connections.",
    ),
]

Fleet = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a Ray cluster to run the load generator on, such as 10.0.0.1:6379, or "
        "`auto` for this machine's cluster.",
    ),
]

# What every command of runs has.

Workspace = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        help="Folder for results. Its disk also holds the servers' data files. Environment "
        "variable: DBDYNO_WORKSPACE.",
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
        "--exit-code",
        help="Exit with status 4 if any verdict is 'void', with 3 if any verdict is 'not enough "
        "data' or 'no verdict'.",
    ),
]
Prometheus = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        help="Serve live metrics for Prometheus on this port of 127.0.0.1. 0 takes a free port.",
    ),
]
Otlp = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Push live metrics to OpenTelemetry by OTLP, such as http://127.0.0.1:4318.",
    ),
]
Lang = Annotated[
    Language,
    typer.Option(metavar="en|zh", help="Language of report and result. JSON is always English."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Run id, or `latest`.")]
RunIds = Annotated[list[str], typer.Argument(metavar="RUN", help="Run ids.")]
Yes = Annotated[bool, typer.Option("--yes", help="Delete without asking.")]
MoreTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Measure for this time more, such as 10m, in a complete run that was begun with "
        "--time.",
    ),
]
RunOrBundle = Annotated[
    str, typer.Argument(metavar="RUN", help="Run id, `latest`, or a bundle file.")
]
ReportFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder to write the report to. Default: the run's folder in the workspace.",
        callback=expanded_or_none,
    ),
]

# `dbdyno run` and `dbdyno plan`.

PlanFile = Annotated[
    Path,
    typer.Argument(metavar="PLAN.yaml", help="Plan file (YAML), or a name of dbdyno plan list."),
]
Scale = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Variant of the plan, by its name under `scales` in the plan file."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time for the whole run, such as 2h. dbdyno runs as many blocks (repetitions) as fit.",
    ),
]

# `dbdyno gate`.

Slower = Annotated[
    str | None,
    typer.Option(
        "--fail-if-slower",
        metavar="SHARE",
        help="How much slower than the baseline a system may be, such as 3%. Default: the run's "
        "margin (smallest difference that matters).",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="BUNDLE",
        help="Bundle file, or run id, of an earlier run. The gate then fails if a system, compared "
        "with the baseline of its own run, has become slower since then.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Fail also if the data do not prove that every system stays within --fail-if-slower.",
    ),
]
JUnit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        help="Also write the gate's result as JUnit XML.",
        callback=expanded_or_none,
    ),
]

# `dbdyno explain`.

CellName = Annotated[
    str | None,
    typer.Argument(
        metavar="CELL",
        help="Cell of the run as reports print it, such as 'oltp_read_only, 8 threads', or a part "
        "of it that no other cell has. Default: the cell with the largest difference among those "
        "with a faster or slower system.",
    ),
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
    bool,
    typer.Option(
        "--verify", help="Check that the run or bundle is unchanged, and write no bundle."
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run a plan that was begun elsewhere, even if it uses its author's programs, hosts or "
        "files.",
    ),
]
With = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="RUN",
        help="Compare the bundle with this stored run or bundle, and measure nothing.",
    ),
]
Replayed = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="Bundle file, or the id of a stored run.")
]

# `dbdyno history` and `dbdyno export`.

Label = Annotated[
    str | None,
    typer.Argument(
        metavar="LABEL",
        help="Name of a system in reports, such as mysql:8.0.15. Default: all systems.",
    ),
]
Last = Annotated[
    int, typer.Option(metavar="N", min=1, max=1_000_000, help="List only the N newest runs.")
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
    typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on. 0 takes a free port."),
]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Loopback address to listen on.")]

# `dbdyno servers` and `dbdyno prove-durability`.

Reference = Annotated[
    str,
    typer.Argument(
        metavar="REF",
        help="Server reference, such as mysql:8.0.15, path:/opt/mysql or "
        "https://HOST/mysql-8.4.6.tar.xz#sha256=HEX.",
    ),
]
ServerSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Server setting. Repeatable."),
]
KeptServer = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="NAME",
        help="Use the server that `dbdyno servers start` started as NAME, instead of REF.",
    ),
]
ServerName = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="Name of a server that `dbdyno servers start` started. Default: the only such server.",
    ),
]
NewServerName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Name for the server. Default: made of the reference, such as mysql-8.0.15.",
    ),
]
Kills = Annotated[
    int, typer.Option(min=1, max=100, metavar="N", help="How often to kill the server.")
]
CommitConnections = Annotated[
    int, typer.Option(min=1, max=64, metavar="N", help="Number of connections that commit.")
]
CommitSeconds = Annotated[
    float,
    typer.Option(min=0.2, max=3600, metavar="SECONDS", help="Seconds of load before each kill."),
]

# `dbdyno audit`.

Publication = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE",
        help="Files of the publication: pages with tables, logs of benchmark tools, or YAML data.",
    ),
]
Imported = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Logs or tables of other benchmark tools, or folders that contain them.",
    ),
]
ImportedAs = Annotated[str, typer.Option("--as", metavar="NAME", help="Title of the new run.")]
NamePattern = Annotated[
    str,
    typer.Option(
        metavar="PATTERN",
        help="Where names stand in file and folder names, such as "
        "{system}/{workload}_{threads}.log.",
    ),
]
OwnRun = Annotated[
    str | None,
    typer.Option(
        "--self", metavar="RUN", help="Audit a stored run of dbdyno instead of published files."
    ),
]
AuditPage = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Also write the result as an HTML page.",
        callback=expanded_or_none,
    ),
]
AuditSave = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Also write what was read as a new YAML file, which `dbdyno audit` reads.",
        callback=expanded_or_none,
    ),
]
AuditExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code", help="Exit with status 3 if there is a contradiction or an over-claim."
    ),
]
ColumnMapping = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="YAML file that explains column headings and names."),
]
