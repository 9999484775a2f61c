"""`dbdyno fleet check`: the nodes of a cluster, before a run on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbdyno.cli import options
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, name, say
from dbdyno.report.formats.stdout import Output, Result, render
from dbdyno.report.parts import Table, numeric, table

if TYPE_CHECKING:
    from dbdyno.fleet.cluster import Seen

app = typer.Typer(no_args_is_help=True)
Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="Address of the Ray cluster, such as 10.0.0.1:6379. `auto` is this machine's cluster.",
    ),
]


@app.command()
def check(
    address: Address = "auto",
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """List the nodes: label, CPUs, clock offset, runnable servers."""
    from dbdyno.fleet import cluster  # noqa: PLC0415 - Ray takes seconds to import

    with cluster.connected(address):
        seen = cluster.look()
    sys.stdout.write(render(Looked(tuple(seen)), output, lang))


@dataclass(frozen=True)
class Looked(Result):
    """The nodes of a cluster."""

    nodes: tuple[Seen, ...]

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """The table, then its legend."""
        yield from self.markdown()
        yield say("Clocks count from each machine's own start. ± is their greatest error.")

    def markdown(self) -> Iterator[Table]:
        """A line for each node."""
        yield table(
            say("Nodes"),
            list(enumerate(self.nodes, 1)),
            (numeric(say("Node")), lambda row: str(row[0])),
            (say("Address"), lambda row: row[1].node.address),
            (say("Label"), lambda row: row[1].node.role or "–"),
            (numeric(say("CPUs")), lambda row: f"{row[1].node.cpus:g}"),
            (numeric(say("Clock ms")), lambda row: _clock(row[1])),
            (say("Can run"), lambda row: row[1].runs),
        )

    def document(self) -> dict[str, Any]:
        """The same."""
        return {
            "nodes": [
                {
                    "address": one.node.address,
                    "label": one.node.role,
                    "cpus": one.node.cpus,
                    "clock_ms": one.clock_ms,
                    "within_ms": one.within_ms,
                    "machine": one.machine,
                    "runs": one.runs,
                }
                for one in self.nodes
            ],
        }


def _clock(seen: Seen) -> Text:
    if seen.clock_ms is None or seen.within_ms is None:
        return name("–")
    return name(f"{seen.clock_ms:+.2f} ± {seen.within_ms:.2f}")
