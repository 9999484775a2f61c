"""`dbdyno prove-durability`: kills a server under load and says what became of its commits.

Exit status 0: every acknowledged commit was there, and enough flushes were counted. 3: it was not
proved, because commits were lost, or had reached no disk when they were answered.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from dbdyno.cli import options
from dbdyno.errors import GateError
from dbdyno.experiment import durability
from dbdyno.judge.checks.durability import DurabilityVerdict, Proof, verdict_of
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Text, say
from dbdyno.measurement.parts import KilledServer
from dbdyno.plan.plan import label_of
from dbdyno.report.formats.stdout import Output
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
    sys.stdout.write(FORMATS[output](killed, verdict, lang))
    if verdict.proof not in KEPT:
        raise GateError(
            f"{spec.label}: durable commits are not proved",
            wanted="every acknowledged commit, flushed before it was acknowledged",
            found=f"{verdict.proof.value}: {verdict.sentence}",
            hint="see docs/how-to/durability.md for what each word means",
        )


def plain(
    killed: KilledServer, verdict: DurabilityVerdict, language: Language = Language.EN
) -> str:
    """The verdict, what it rests on, and a line for each kill."""
    whole = say("{proof}: {sentence}", proof=verdict.proof.said, sentence=verdict.sentence)
    return _text([whole, *_indented(verdict.reasons), "", *_indented(_rounds(killed))], language)


def markdown(
    killed: KilledServer, verdict: DurabilityVerdict, language: Language = Language.EN
) -> str:
    """The same for a page."""
    whole = say("**{proof}**: {sentence}", proof=verdict.proof.said, sentence=verdict.sentence)
    items = [
        [say("- {sentence}", sentence=sentence) for sentence in part]
        for part in (verdict.reasons, _rounds(killed))
    ]
    return _text([whole, "", *items[0], "", *items[1]], language)


def as_json(
    killed: KilledServer, verdict: DurabilityVerdict, language: Language = Language.EN
) -> str:
    """Everything that was seen, and what is said about it; English in every language."""
    whole: dict[str, Any] = {
        "verdict": verdict.model_dump(mode="json"),
        "seen": killed.model_dump(mode="json", exclude={"settings"}),
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


FORMATS: Final = {Output.PLAIN: plain, Output.MARKDOWN: markdown, Output.JSON: as_json}


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


def _text(lines: Iterable[str], language: Language) -> str:
    return "".join(f"{said_in(line, language)}\n" for line in lines)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
