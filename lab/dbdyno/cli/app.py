"""The command line: a table of commands, each imported when it is called.

`dbdyno --version` and `--help` import no command and answer at once. A command is thin: it reads
its arguments, calls a function and prints.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from dbdyno import __version__, _engine
from dbdyno.cli import defaults
from dbdyno.cli.completion import SCRIPTS
from dbdyno.errors import most_alike
from dbdyno.files import restrict_umask
from dbdyno.sysbench import entry

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import Context, HelpFormatter


class Command(NamedTuple):
    """A command before its import.

    Attributes:
        place: file of this folder and name in it: a function, or a `Typer` with commands.
        summary: line in the list of commands, the first sentence of its help.
    """

    place: str
    summary: str


SECTIONS: Final[Mapping[str, Mapping[str, Command]]] = {
    "Measure": {
        "demo": Command("app:demo", "Compare MySQL 5.7.22 with 8.0.15 in about five minutes."),
        "compare": Command(
            "measure:compare", "Measure two or more servers and judge which is faster."
        ),
        "run": Command("measure:run", "Run the comparison that a plan file describes."),
        "resume": Command(
            "measure:resume", "Continue an interrupted run, or extend a complete run."
        ),
        "explain": Command(
            "explain:explain", "Sample stacks in a new run to see why a server is slower."
        ),
    },
    "Read results": {
        "report": Command("show:report", "Write the report of a stored run or bundle file."),
        "serve": Command("show:serve", "Show runs, reports and live progress in a browser."),
        "runs": Command("runs:app", "List, show and remove stored runs, and free disk space."),
        "history": Command("gate:history_command", "List a system's verdicts in all stored runs."),
        "export": Command("transfer:export_command", "Export a run as Parquet or CSV tables."),
    },
    "CI and sharing": {
        "gate": Command(
            "gate:gate_command", "Fail if a run shows a system slower than the baseline."
        ),
        "bundle": Command(
            "transfer:bundle_command", "Pack a run into a file to share, or verify such a file."
        ),
        "replay": Command(
            "transfer:replay", "Repeat the run of a bundle file and compare the results."
        ),
    },
    "Check": {
        "doctor": Command(
            "doctor:command", "Show what this machine lacks and what may disturb a run."
        ),
        "audit": Command("audit:command", "Look for contradictions in a published benchmark."),
        "import": Command(
            "importing:import_command", "Import results of other benchmark tools as a run."
        ),
        "certify": Command(
            "prove:prove_generator", "Test the load generator's accuracy (one minute)."
        ),
        "prove-durability": Command(
            "prove:prove_durability", "Kill a server under load and look for lost commits."
        ),
    },
    "Tools": {
        "sysbench": Command("app:sysbench", "Run a sysbench command line: prepare, run, cleanup."),
        "servers": Command("servers:app", "Download, start, stop and log in to database servers."),
        "workload": Command(
            "workload:app", "List built-in workloads; write, check and try your own."
        ),
        "plan": Command("plan:plan_app", "Show how long a plan file takes and what it detects."),
        "fleet": Command("fleet:app", "Check a Ray cluster for runs on several machines."),
        "completion": Command(
            "app:completion", "Print a script for completion with TAB in a shell."
        ),
    },
}
"""Every command, under the headings of the help."""
COMMANDS: Final = {name: one for section in SECTIONS.values() for name, one in section.items()}
STYLE: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "suggest_commands": False,  # `Group` does
    "rich_markup_mode": None,
}


def loaded(name: str) -> ClickCommand:
    """Import a command by its name; KeyError for an unknown name."""
    file, _, attribute = COMMANDS[name].place.partition(":")
    place = getattr(import_module(f"dbdyno.cli.{file}"), attribute)
    alone = typer.Typer(**STYLE)
    if isinstance(place, typer.Typer):
        alone.add_typer(place, name=name, cls=Group, help=COMMANDS[name].summary)
        for command in place.registered_commands:
            command.cls = SectionedCommand
    else:
        alone.command(name, cls=SectionedCommand)(place)
    return typer.main.get_group(alone).commands[name]


def write_sections(formatter: HelpFormatter, rows: Sequence[tuple[str, str, str]]) -> None:
    """Write rows of heading, word and meaning as sections with the same two columns."""
    width = max(len(word) for _, word, _ in rows)
    for heading in dict.fromkeys(row[0] for row in rows):
        below = [(word.ljust(width), meaning) for at, word, meaning in rows if at == heading]
        with formatter.section(heading):
            formatter.write_dl(below, col_max=width)


def meant(typed: str, names: Collection[str]) -> str:
    """A question with the name most like a mistyped name; empty if no name is like it."""
    near = most_alike(typed, names)
    return f" Did you mean {near}?" if near else ""


class Group(TyperGroup):
    """A group of commands."""

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, ClickCommand | None, list[str]]:
        """Finds a command; the error for an unknown command has the most similar name."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            error.message += meant(args[0], self.list_commands(ctx))
            raise


class SectionedCommand(TyperCommand):
    """A command with sections of options; a `rich_help_panel` is the heading from there on."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Reads the arguments; the error for an unknown option has the most similar name."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            typed = getattr(error, "option_name", "")
            if not hasattr(error, "possibilities") or not typed.startswith("--"):
                raise
            options = (name for p in self.get_params(ctx) for name in (*p.opts, *p.secondary_opts))
            names = [name for name in options if name.startswith("--")]
            ctx.fail(f"{error.message}.{meant(typed, names)}")

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Writes arguments and options, without the arguments' Python types."""
        heading = ""
        rows: list[tuple[str, str, str]] = []
        for parameter in self.get_params(ctx):
            heading = getattr(parameter, "rich_help_panel", None) or heading
            if record := parameter.get_help_record(ctx):
                kind = f"{parameter.param_type_name}s".title()
                meaning = record[1]
                if parameter.name in (ctx.default_map or {}):
                    meaning = meaning.replace("[default: ", "[your default: ")
                rows.append((heading or kind, record[0].partition(" <")[0], meaning))
        write_sections(formatter, rows)


class _Loading(Mapping[str, "ClickCommand"]):
    """Commands by name, imported when they are looked up."""

    def __getitem__(self, name: str) -> ClickCommand:
        return loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(Group):
    """The program, which lists its commands without importing them."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as typer has it
        super().__init__(**attributes)
        self.commands = _Loading()  # type: ignore[assignment]  # none is added

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Answers `--version` before typer imports pydantic; reads defaults for a command."""
        if args == ["--version"]:
            sys.stdout.write(f"dbdyno {__version__} (engine {_engine.version()})\n")
            ctx.exit()
        rest = super().parse_args(ctx, args)
        ctx.default_map = defaults.by_command()
        return rest

    def list_commands(self, ctx: Context) -> list[str]:
        """Names of all commands, in the order of help."""
        return list(COMMANDS)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Writes the list of commands."""
        rows = [(at, name, one.summary) for at, of in SECTIONS.items() for name, one in of.items()]
        write_sections(formatter, rows)


DEMO: Final = (
    *("mysql:5.7.22", "mysql:8.0.15", "--workload", "oltp_read_only"),
    *("--workload", "oltp_write_only", "--threads", "8", "--tables", "4"),
    *("--table-size", "50000", "--time", "5m"),
)
"""Arguments of `dbdyno compare` in the demonstration."""


def demo(context: typer.Context) -> None:
    """Compare MySQL 5.7.22 with 8.0.15 in about five minutes."""
    sys.stderr.write(f"dbdyno compare {' '.join(DEMO)}\n")
    command = loaded("compare")
    own = context.default_map  # its general options; those of `compare` do not count
    with command.make_context("compare", [*DEMO], parent=context, default_map=own) as inner:
        command.invoke(inner)


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", help="Shell that reads the script."),
    ],
) -> None:
    """Print a script for completion with TAB in a shell."""
    sys.stdout.write(SCRIPTS[shell])


def sysbench(context: typer.Context) -> None:
    """Run a sysbench command line: prepare, run, cleanup."""
    raise typer.Exit(entry.main(context.args))


app = typer.Typer(
    name="dbdyno",
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 120},
    **STYLE,
)


def command_line() -> TyperGroup:
    """All commands."""
    return typer.main.get_group(app)


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Compare database servers under load: which is faster, and by how much."""
    from dbdyno.servers.programs import places  # noqa: PLC0415 - not to list the commands

    restrict_umask()
    places.clear()
