"""`dbdyno prove-durability`: kills a server under load and says what became of its commits.

Exit status 0: every acknowledged commit was there, and enough flushes were counted. 3: it was not
proved, because commits were lost, or had reached no disk when they were answered.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dbdyno import cli_options as options
from dbdyno.bench import durability
from dbdyno.cli_flow import Output
from dbdyno.errors import GateError
from dbdyno.judge.durability import DurabilityVerdict, Proof, verdict_of
from dbdyno.measurement_evidence import KilledServer
from dbdyno.plan_systems import label_of
from dbdyno.servers.base import ServerSpec

KEPT: Final = (Proof.DURABLE,)
Kills = Annotated[int, typer.Option(min=1, max=100, metavar="N", help="How often it is killed.")]
Connections = Annotated[
    int, typer.Option(min=1, max=64, metavar="N", help="Connections that send commits.")
]
Seconds = Annotated[
    float, typer.Option(min=0.2, metavar="SECONDS", help="Commits before each kill.")
]


def command(
    system: options.Reference,
    settings: options.ServerSettings = None,
    kills: Kills = 3,
    connections: Connections = durability.CONNECTIONS,
    seconds: Seconds = durability.LOAD_S,
    output: options.OutputAs = Output.PLAIN,
) -> None:
    """Kill a server under load (kill -9) and look for every acknowledged commit."""
    spec = ServerSpec(label_of(system), system, options.settings_of(settings or []))
    with tempfile.TemporaryDirectory(prefix="dbdyno-durability-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the servers' user must enter it
        killed = durability.prove(
            spec,
            folder / "server",
            _note,
            kills=kills,
            connections=connections,
            load_s=seconds,
        )
    verdict = verdict_of(killed)
    sys.stdout.write(WORDS_FOR[output](killed, verdict))
    if verdict.proof not in KEPT:
        raise GateError(
            f"{spec.label}: durable commits are not proved",
            wanted="every acknowledged commit, flushed before it was acknowledged",
            found=f"{verdict.proof.value}: {verdict.sentence}",
            hint="see docs/durability.md for what each word means",
        )


def plain(killed: KilledServer, verdict: DurabilityVerdict) -> str:
    """The verdict, what it rests on, and a line for each kill."""
    lines = [f"{verdict.proof.value}: {verdict.sentence}", *(f"  {r}" for r in verdict.reasons)]
    return "\n".join([*lines, "", *(f"  {line}" for line in _rounds(killed)), ""])


def markdown(killed: KilledServer, verdict: DurabilityVerdict) -> str:
    """The same for a page."""
    lines = [f"**{verdict.proof.value}**: {verdict.sentence}", ""]
    lines += [f"- {reason}" for reason in verdict.reasons]
    return "\n".join([*lines, "", *(f"- {line}" for line in _rounds(killed)), ""])


def as_json(killed: KilledServer, verdict: DurabilityVerdict) -> str:
    """Everything that was seen, and what is said about it."""
    told: dict[str, Any] = {
        "verdict": verdict.model_dump(mode="json"),
        "seen": killed.model_dump(mode="json", exclude={"settings"}),
    }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


WORDS_FOR: Final = {Output.PLAIN: plain, Output.MARKDOWN: markdown, Output.JSON: as_json}


def _rounds(killed: KilledServer) -> list[str]:
    return [
        f"kill {number}: {one.acknowledged} acknowledged in {one.load_s:.1f} s, {one.kept} of them "
        f"there, {one.unanswered} more that were on their way; back after {one.recovery_s:.1f} s"
        for number, one in enumerate(killed.kills, 1)
    ]


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
