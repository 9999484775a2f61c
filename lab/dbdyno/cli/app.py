"""The command line: a table of commands, each imported when it is called.

`dbdyno --version` and `--help` import no command and answer at once. A command is thin: it reads
its arguments, calls a function and prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from dbdyno import __version__, _engine
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


COMMANDS: Final = {
    "compare": Command("measure:compare", "Measure systems side by side, a verdict on each cell."),
    "run": Command("measure:run", "Run a plan file."),
    "resume": Command("measure:resume", "Go on with a stored run, or add time to it."),
    "report": Command("show:report", "Judge a stored run or a bundle again."),
    "serve": Command("show:serve", "Show runs, reports and a run in progress in a browser."),
    "runs": Command("runs:app", "The runs of a workspace, and what they take."),
    "history": Command("gate:history_command", "List the verdicts on a label over time."),
    "gate": Command("gate:gate_command", "Fail if a run proves a system slower than allowed."),
    "export": Command("transfer:export_command", "Write a stored run as tables."),
    "bundle": Command(
        "transfer:bundle_command", "Write all evidence of a run into one file, or verify it."
    ),
    "replay": Command("transfer:replay", "Run a bundle's experiment again and compare the two."),
    "import": Command("transfer:import_command", "Import results of other tools as a run."),
    "audit": Command("audit:command", "Hold a published comparison against itself."),
    "certify": Command("prove:prove_generator", "Try the load generator and this machine."),
    "prove-durability": Command(
        "prove:prove_durability", "Kill a server under load and look for lost commits."
    ),
    "plan": Command("plan:plan_app", "What a plan file asks for."),
    "workload": Command("workload:app", "List, check and try workloads."),
    "servers": Command("servers:app", "The servers dbdyno can get, and those kept running."),
    "fleet": Command("fleet:app", "Clusters on which runs have many machines."),
    "sysbench": Command("app:sysbench", "Do what sysbench does: prepare, run, cleanup."),
}
STYLE: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def loaded(name: str) -> ClickCommand:
    """Import a command by its name; KeyError for an unknown name."""
    file, _, attribute = COMMANDS[name].place.partition(":")
    place = getattr(import_module(f"dbdyno.cli.{file}"), attribute)
    alone = typer.Typer(**STYLE)
    if isinstance(place, typer.Typer):
        alone.add_typer(place, name=name)
    else:
        alone.command(name)(place)
    return typer.main.get_group(alone).commands[name]


class _Loading(Mapping[str, "ClickCommand"]):
    """Commands by name, imported when they are looked up."""

    def __getitem__(self, name: str) -> ClickCommand:
        return loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """The program, which lists its commands without importing them."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as typer has it
        super().__init__(**attributes)
        self.commands = _Loading()  # type: ignore[assignment]  # none is added

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Answers `--version` before typer imports pydantic to check values."""
        if args == ["--version"]:
            sys.stdout.write(f"dbdyno {__version__} (engine {_engine.version()})\n")
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Context) -> list[str]:
        """Names of all commands, in the order of help."""
        return list(COMMANDS)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Writes the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.summary) for name, one in COMMANDS.items()])


def sysbench(context: typer.Context) -> None:
    """Do what sysbench does: prepare, run, cleanup."""
    raise typer.Exit(entry.main(context.args))


app = typer.Typer(name="dbdyno", cls=Commands, no_args_is_help=True, **STYLE)


def command_line() -> TyperGroup:
    """All commands."""
    return typer.main.get_group(app)


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Compares database servers under load and gives a verdict that you can defend."""
    restrict_umask()
