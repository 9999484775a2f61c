"""A gate's outcome as plain text, JSON, a comment on a pull request, and JUnit.

What decided against comes first, then what is not decided, then what held; doubts about the run
follow, since they bear on every outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from xml.etree import ElementTree

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.uses.gate import Gate, GateOutcome, Passage
from dbdyno.judge.wording import change_decided
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, count, say
from dbdyno.measurement.outcome import RunFacts
from dbdyno.report.formats import summary
from dbdyno.report.formats.stdout import Result
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Items, Paragraph, Table, numeric, table

MARK: Final = "<!-- dbdyno gate -->"
"""By this line a job finds its own comment of an earlier commit, to write over it."""
ORDER: Final = (GateOutcome.SLOWER, GateOutcome.VOID, GateOutcome.UNDECIDED, GateOutcome.HELD)
DOUBTS_MAX: Final = 10


@dataclass(frozen=True)
class GateResult(Result):
    """A gate with the doubts about the run it was held against."""

    gate: Gate
    judgement: Judgement
    facts: RunFacts
    tag: ClassVar[str] = MARK

    def plain(self, language: Language) -> Iterator[Text]:
        """One line for the whole, one for each comparison, then the doubts."""
        yield say("run {run_id}: {outcome}", run_id=self.facts.run_id, outcome=self.gate.text)
        for passage in ordered(self.gate):
            yield say(
                "  {mark} {cell}: {text}",
                mark=_mark(passage),
                cell=passage.verdict.cell.title,
                text=passage.text,
            )
        yield from doubts(self.judgement, self.facts)

    def markdown(self) -> Iterator[Paragraph | Items | Table]:
        """The comment on a pull request."""
        run = self.facts
        yield Paragraph(self.gate.text, strong=True)
        if self.gate.passages:
            yield _table(self.gate)
        yield Items(tuple(doubts(self.judgement, run)))
        yield Paragraph(
            say(
                "Run {run_id} of {day}, dbdyno {version}, plan {plan}.",
                run_id=run.run_id,
                day=run.created_at[:10],
                version=run.dbdyno_version,
                plan=run.plan_hash[:12],
            )
        )

    def document(self) -> dict[str, Any]:
        """The run, whether the gate holds, each comparison and every finding."""
        return {
            "run": self.facts.model_dump(mode="json"),
            "holds": self.gate.holds,
            "text": str(self.gate.text),
            "gate": self.gate.model_dump(mode="json"),
            "findings": [f.model_dump(mode="json") for f in self.judgement.findings],
        }


def ordered(gate: Gate) -> list[Passage]:
    """The comparisons, the gravest first."""
    return sorted(gate.passages, key=lambda passage: ORDER.index(passage.outcome))


def doubts(judgement: Judgement, run: RunFacts) -> list[Text]:
    """What throws doubt on the gate, a sentence each; a long list is cut and says so."""
    sentences = [*_incomplete(run), *summary.doubts(judgement)]
    if len(sentences) <= DOUBTS_MAX:
        return sentences
    more = say("and {more}; see the report", more=count(len(sentences) - DOUBTS_MAX, "more doubt"))
    return [*sentences[:DOUBTS_MAX], more]


def _incomplete(run: RunFacts) -> Iterator[Text]:
    if not run.complete:
        yield say(
            "the run is incomplete: {planned} trials were planned", planned=run.trials_planned
        )


def _table(gate: Gate) -> Table:
    return table(
        say("Held against the limit"),
        ordered(gate),
        (
            say("Gate"),
            lambda one: say("{mark} {outcome}", mark=_mark(one), outcome=one.outcome.said),
        ),
        (say("Cell"), lambda one: one.verdict.cell.title),
        (say("System"), lambda one: one.verdict.system),
        (say("Against"), lambda one: one.verdict.baseline),
        (numeric(say("Change [95 %]")), lambda one: change_decided(one.verdict) or NONE),
        (say("Verdict"), lambda one: one.verdict.word.said),
    )


def _mark(passage: Passage) -> str:
    if passage.outcome is GateOutcome.HELD:
        return "✓"
    return "?" if passage.holds else "✗"


# JUnit. Each comparison is a test. Slower is a failure; undecided and void are failures of a strict
# gate, skipped tests of another, and never passed ones. A gate that decides nothing has a failing
# test more, since a file without tests would pass.

NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that no XML file may hold, not even escaped."""


def junit(gate: Gate, run: RunFacts) -> bytes:
    """The gate as a JUnit file, for CI systems."""
    suite = ElementTree.Element("testsuite", name=_clean(f"dbdyno gate {run.run_id}"))
    suite.set("timestamp", _clean(run.created_at[:19]))
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in _properties(gate, run).items():
        ElementTree.SubElement(properties, "property", name=key, value=_clean(value))
    for passage in gate.passages:
        _case(suite, passage)
    if not gate.decided:
        case = ElementTree.SubElement(suite, "testcase", classname="dbdyno", name="decided")
        ElementTree.SubElement(case, "failure", message=_clean(gate.text), type="undecided")
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    for key, path in counts.items():
        suite.set(key, str(len(suite.findall(path))))
    suite.set("errors", "0")
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    ElementTree.indent(whole)
    made: bytes = ElementTree.tostring(whole, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _case(suite: ElementTree.Element, passage: Passage) -> None:
    verdict = passage.verdict
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_clean(f"{verdict.system} against {verdict.baseline}"),
        name=_clean(verdict.cell.title),
    )
    text, outcome = _clean(passage.text), passage.outcome
    if not passage.holds:
        made = ElementTree.SubElement(case, "failure", message=text, type=outcome.value)
        made.text = "\n".join(map(_clean, (passage.text, *verdict.reasons)))
    elif outcome is not GateOutcome.HELD:
        ElementTree.SubElement(case, "skipped", message=text)
    ElementTree.SubElement(case, "system-out").text = text


def _properties(gate: Gate, run: RunFacts) -> dict[str, str]:
    return {
        "run": run.run_id,
        "plan_hash": run.plan_hash,
        "dbdyno": run.dbdyno_version,
        "slower_max": f"{gate.slower_max:g}",
        "strict": str(gate.strict).lower(),
        "complete": str(run.complete).lower(),
    }


def _clean(text: str) -> str:
    return NOT_IN_XML.sub("\ufffd", text)
