"""`dbdyno prove-durability`: kills a server under load and says what became of its commits.

Exit status 0: every acknowledged commit was there, and enough flushes were counted. 3: it was not
proved, because commits were lost, or had reached no disk when they were answered.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dbdyno.cli import options
from dbdyno.errors import GateError
from dbdyno.experiment import durability
from dbdyno.judge.checks.durability import DurabilityVerdict, Proof, verdict_of
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.parts import KilledServer
from dbdyno.plan.systems import label_of
from dbdyno.report.formats.stdout import Output, Result, render
from dbdyno.report.parts import Items, Paragraph
from dbdyno.servers.base import ServerSpec

KEPT: Final = (Proof.DURABLE,)


def command(
    system: options.Reference,
    settings: options.ServerSettings = None,
    kills: options.Kills = 3,
    connections: options.CommitConnections = durability.CONNECTIONS,
    seconds: options.CommitSeconds = durability.LOAD_S,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Kill a server under load (kill -9) and look for every acknowledged commit."""
    spec = ServerSpec(label_of(system), system, options.settings_of(settings or []))
    with tempfile.TemporaryDirectory(prefix="dbdyno-durability-") as temporary:
        folder = Path(temporary)
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
    sys.stdout.write(render(DurabilityResult(killed, verdict), output, lang))
    if verdict.proof not in KEPT:
        raise GateError(
            f"{spec.label}: durable commits are not proved",
            wanted="every acknowledged commit, flushed before it was acknowledged",
            found=f"{verdict.proof.value}: {verdict.sentence}",
            hint="see docs/how-to/durability.md for what each word means",
        )


@dataclass(frozen=True)
class DurabilityResult(Result):
    """What became of the commits of a server that was killed, and the verdict on it."""

    killed: KilledServer
    verdict: DurabilityVerdict

    def plain(self, language: Language) -> Iterator[Text]:
        """The verdict, what it rests on, and a line for each kill."""
        yield self._answer()
        yield from _indented(self.verdict.reasons)
        yield name("")
        yield from _indented(_rounds(self.killed))

    def markdown(self) -> Iterator[Paragraph | Items]:
        """The verdict, and a list of each of the two."""
        yield Paragraph(self._answer(), strong=True)
        yield Items(self.verdict.reasons)
        yield Items(tuple(_rounds(self.killed)))

    def document(self) -> dict[str, Any]:
        """The verdict and every count behind it."""
        return {
            "verdict": self.verdict.model_dump(mode="json"),
            "seen": self.killed.model_dump(mode="json", exclude={"settings"}),
        }

    def _answer(self) -> Text:
        verdict = self.verdict
        return say("{proof}: {sentence}", proof=verdict.proof.said, sentence=verdict.sentence)


def _rounds(killed: KilledServer) -> list[Text]:
    return [
        say(
            "kill {number}: {acknowledged} acknowledged in {load_s:.1f} s, {kept} of them there, "
            "{unanswered} more that were on their way; back after {recovery_s:.1f} s",
            number=number,
            acknowledged=one.acknowledged,
            load_s=one.load_s,
            kept=one.kept,
            unanswered=one.unanswered,
            recovery_s=one.recovery_s,
        )
        for number, one in enumerate(killed.kills, 1)
    ]


def _indented(sentences: Iterable[Text]) -> list[Text]:
    return [say("  {sentence}", sentence=sentence) for sentence in sentences]


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
