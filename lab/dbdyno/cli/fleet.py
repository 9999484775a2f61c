"""`dbdyno fleet check`: what a cluster has, before a run is begun on it."""

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
from dbdyno.report.numbers import number
from dbdyno.report.parts import Table, numeric, table

if TYPE_CHECKING:
    from dbdyno.fleet.check import Seen, Way

app = typer.Typer(help="Clusters on which runs have many machines.", no_args_is_help=True)
Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="Of the head, such as 10.0.0.1:6379, or auto.")
]


@app.callback()
def root() -> None:
    """Clusters on which runs have many machines."""


@app.command()
def check(
    address: Address = "auto",
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Look at every node. What it can run, its clock, and the way to each other one."""
    from dbdyno.fleet import check, cluster  # noqa: PLC0415 - Ray takes seconds to import

    with cluster.connected(address):
        seen, ways = check.look()
    sys.stdout.write(render(Looked(tuple(seen), tuple(ways)), output, lang))


@dataclass(frozen=True)
class Looked(Result):
    """The nodes and the ways between them."""

    nodes: tuple[Seen, ...]
    ways: tuple[Way, ...]

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """Both tables, then what the numbers are."""
        yield from self.markdown()
        yield say("Clocks count from each machine's own start; ± is what a run can rely on.")

    def markdown(self) -> Iterator[Table]:
        """A line for each node, then one for each pair."""
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
        yield table(
            say("Between them"),
            self.ways,
            (say("From"), lambda way: str(way.start)),
            (say("To"), lambda way: str(way.end)),
            (numeric(say("Round trip ms")), lambda way: number(way.round_trip_ms, 2)),
            (numeric(say("MB/s")), lambda way: number(way.megabytes_per_s, 0)),
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
            "ways": [way._asdict() for way in self.ways],
        }


def _clock(seen: Seen) -> Text:
    if seen.clock_ms is None or seen.within_ms is None:
        return name("–")
    return name(f"{seen.clock_ms:+.2f} ± {seen.within_ms:.2f}")
