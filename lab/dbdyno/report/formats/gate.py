"""A gate's outcome as plain text, JSON, Markdown and JUnit.

Failed comparisons come first, then undecided ones, then passed ones. Differences from an earlier
run follow, since they may explain a change, then doubts about the run, since they bear on every
outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.uses.gate import Gate, GateOutcome, Passage
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Said, Text, count, listed, name, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact
from dbdyno.report import document
from dbdyno.report.formats import summary
from dbdyno.report.formats.stdout import Result
from dbdyno.report.numbers import NONE, interval
from dbdyno.report.parts import Items, Paragraph, Table, numeric, table
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.terms import Sentence, term
from dbdyno.report.tell.verdicts import change_decided, differs, needed, reason

ORDER: Final = (GateOutcome.SLOWER, GateOutcome.VOID, GateOutcome.UNDECIDED, GateOutcome.HELD)
DOUBTS_MAX: Final = 10
DIFFERENCES_MAX: Final = 10


@dataclass(frozen=True)
class GateResult(Result):
    """A gate with the doubts about its run.

    Attributes:
        differences: of the earlier run and this run, as `replay.differences` gives them.
    """

    gate: Gate
    judgement: Judgement
    facts: RunFacts
    differences: tuple[tuple[Text, Text, Text], ...] = ()

    def plain(self, language: Language) -> Iterator[Text]:
        """A line for the whole, each comparison, each difference of two runs, each doubt."""
        run_id, outcome, earlier = self.facts.run_id, whole(self.gate), self.gate.earlier
        if earlier:
            yield say(
                "run {run_id} against run {earlier}: {outcome}",
                run_id=run_id,
                earlier=earlier,
                outcome=outcome,
            )
        else:
            yield say("run {run_id}: {outcome}", run_id=run_id, outcome=outcome)
        for passage in ordered(self.gate):
            yield say(
                "  {mark} {cell}: {text}",
                mark=_mark(passage),
                cell=cell_title(passage.verdict.cell),
                text=text(passage, self.gate.slower_max),
            )
        yield from self._differing()
        yield from doubts(self.judgement, self.facts)

    def markdown(self) -> Iterator[Paragraph | Items | Table]:
        """The whole, a table of the comparisons, the doubts, the differences of two runs."""
        run = self.facts
        yield Paragraph(whole(self.gate), strong=True)
        if self.gate.passages:
            yield _table(self.gate)
        not_compared = (
            say(
                "{cell}: {text}",
                cell=cell_title(passage.verdict.cell),
                text=text(passage, self.gate.slower_max),
            )
            for passage in self.gate.passages
            if passage.reasons
        )
        yield Items((*not_compared, *doubts(self.judgement, run)))
        yield Paragraph(
            say(
                "Run {run_id} of {day}, dbdyno {version}, plan {plan}.",
                run_id=run.run_id,
                day=run.created_at[:10],
                version=run.dbdyno_version,
                plan=run.plan_hash[:12],
            )
        )
        if earlier := self.gate.earlier:
            yield Paragraph(say("Compared with run {earlier}.", earlier=earlier))
            yield Items(tuple(self._differing()))

    def document(self) -> dict[str, Any]:
        """The run, whether the gate holds, each comparison, difference and finding."""
        return {
            "run": self.facts.model_dump(mode="json"),
            "holds": self.gate.holds,
            "text": str(whole(self.gate)),
            "gate": self._gate(),
            "differences": [
                dict(zip(("what", "first", "second"), row, strict=True)) for row in self.differences
            ],
            "findings": document.of_judgement(self.judgement)["findings"],
        }

    def _differing(self) -> Iterator[Text]:
        yield from (differs(*row) for row in self.differences[:DIFFERENCES_MAX])
        if (left := len(self.differences) - DIFFERENCES_MAX) > 0:
            yield say("and {count} more; all of them: --output json", count=left)

    def _gate(self) -> dict[str, Any]:
        gate = self.gate.model_dump(mode="json")
        for row, passage in zip(gate["passages"], self.gate.passages, strict=True):
            row["text"] = text(passage, self.gate.slower_max)
            document.add_sentences(row["verdict"]["reasons"], passage.verdict.reasons)
            document.add_sentences(row["reasons"], passage.reasons)
        return gate


def whole(gate: Gate) -> Said:
    """The gate's outcome in a sentence."""
    allowed = _percent(gate.slower_max)
    if not gate.passages:
        return say("gate fails: the run has no verdict")
    if all(passage.reasons for passage in gate.passages):
        return say("gate fails: no comparison can be held against the earlier run")
    if not gate.decided:
        return say("gate fails: no comparison has enough data for a limit of {a}", a=allowed)
    counts = {outcome.value: gate.count(outcome) for outcome in GateOutcome}
    if gate.holds:
        return say(
            "gate passes with a limit of {a}: {held} held, {undecided} without enough data, "
            "{void} void",
            a=allowed,
            **counts,
        )
    return say(
        "gate fails with a limit of {a}: {slower} slower, {held} held, {undecided} without "
        "enough data, {void} void",
        a=allowed,
        **counts,
    )


TEXTS: Final = {
    GateOutcome.SLOWER: phrase(
        "{system} is slower than {baseline} by more than {allowed}: {numbers}"
    ),
    GateOutcome.HELD: phrase(
        "{system} is not slower than {baseline} by more than {allowed}: {numbers}"
    ),
    GateOutcome.UNDECIDED: phrase(
        "not enough data to say if {system} is slower than {baseline} by more than {allowed}: "
        "{numbers}; {needed}"
    ),
    GateOutcome.VOID: phrase("too few measurements to compare {system} with {baseline}: {numbers}"),
}
SINCE: Final = {
    GateOutcome.SLOWER: phrase(
        "{system} has become slower by more than {allowed}, compared with {baseline}: {numbers}"
    ),
    GateOutcome.HELD: phrase(
        "{system} has not become slower by more than {allowed}, compared with {baseline}: {numbers}"
    ),
    GateOutcome.UNDECIDED: phrase(
        "not enough data to say if {system} has become slower by more than {allowed}, compared "
        "with {baseline}: {numbers}; {needed}"
    ),
    GateOutcome.VOID: phrase(
        "{system} and {baseline} have too few valid measurements in one of the two runs"
    ),
}
"""The same against an earlier run."""


def text(passage: Passage, slower_max: float) -> Said:
    """A comparison's outcome with its numbers, or the reasons against comparing two runs."""
    verdict = passage.verdict
    if passage.reasons:
        return say(
            "{system} and {baseline} cannot be compared with the earlier run: {reasons}",
            system=verdict.system,
            baseline=verdict.baseline,
            reasons=listed(map(reason, passage.reasons), "; "),
        )
    is_open = verdict.standstill is None and verdict.steady_after_s is None
    return say(
        (TEXTS if passage.change is None else SINCE)[passage.outcome],
        system=verdict.system,
        baseline=verdict.baseline,
        allowed=_percent(slower_max),
        numbers=_numbers(passage),
        needed=say("more blocks narrow the interval") if is_open else needed(verdict),
    )


def _numbers(passage: Passage) -> Said:
    verdict, change = passage.verdict, _change(passage)
    if change is None:
        return count(verdict.blocks, "valid block")
    metric = metric_label(BY_NAME[verdict.metric])
    blocks = count(verdict.blocks, "block")
    return say("{metric} {change}, {blocks}", metric=metric, change=change, blocks=blocks)


def _change(passage: Passage) -> Said | None:
    """The change that was held against the limit; after a standstill the words for it."""
    if passage.reasons:
        return None
    change = passage.change
    if change is None or change.ratio is None:
        return change_decided(passage.verdict)
    return interval(change.ratio, change.low, change.high)


def _percent(share: float) -> Said:
    return name(f"{share * 100:g} %")


def ordered(gate: Gate) -> list[Passage]:
    """The comparisons, the gravest first."""
    return sorted(gate.passages, key=lambda passage: ORDER.index(passage.outcome))


def doubts(judgement: Judgement, run: RunFacts) -> list[Text]:
    """Doubts about the gate, a sentence each; a long list is cut with a note."""
    sentences = [*_incomplete(judgement, run), *summary.doubts(judgement)]
    if len(sentences) <= DOUBTS_MAX:
        return sentences
    more = say("and {more}; see the report", more=count(len(sentences) - DOUBTS_MAX, "more doubt"))
    return [*sentences[:DOUBTS_MAX], more]


PLANNED: Final = Sentence(phrase("the run is incomplete: {planned} trials were planned"), Fact.HERE)


def _incomplete(judgement: Judgement, run: RunFacts) -> list[Said]:
    return [] if run.complete else PLANNED.of(judgement.known, planned=run.trials_planned)


def _table(gate: Gate) -> Table:
    return table(
        say("Outcome of each comparison"),
        ordered(gate),
        (
            say("Gate"),
            lambda one: say("{mark} {outcome}", mark=_mark(one), outcome=term(one.outcome)),
        ),
        (say("Cell"), lambda one: cell_title(one.verdict.cell)),
        (say("System"), lambda one: one.verdict.system),
        (say("Against"), lambda one: one.verdict.baseline),
        (numeric(say("Change [95 %]")), lambda one: _change(one) or NONE),
        (say("Verdict"), lambda one: term(one.verdict.word)),
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
        _case(suite, passage, text(passage, gate.slower_max))
    if not gate.decided:
        case = ElementTree.SubElement(suite, "testcase", classname="dbdyno", name="decided")
        ElementTree.SubElement(case, "failure", message=_clean(whole(gate)), type="undecided")
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    for key, path in counts.items():
        suite.set(key, str(len(suite.findall(path))))
    suite.set("errors", "0")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    xml: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _case(suite: ElementTree.Element, passage: Passage, sentence: str) -> None:
    verdict = passage.verdict
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_clean(f"{verdict.system} against {verdict.baseline}"),
        name=_clean(cell_title(verdict.cell)),
    )
    message, outcome = _clean(sentence), passage.outcome
    if not passage.holds:
        failure = ElementTree.SubElement(case, "failure", message=message, type=outcome.value)
        failure.text = "\n".join(map(_clean, (sentence, *map(reason, verdict.reasons))))
    elif outcome is not GateOutcome.HELD:
        ElementTree.SubElement(case, "skipped", message=message)
    ElementTree.SubElement(case, "system-out").text = message


def _properties(gate: Gate, run: RunFacts) -> dict[str, str]:
    return {
        "run": run.run_id,
        "plan_hash": run.plan_hash,
        "dbdyno": run.dbdyno_version,
        "slower_max": f"{gate.slower_max:g}",
        "strict": str(gate.strict).lower(),
        "complete": str(run.complete).lower(),
        **({"against": gate.earlier} if gate.earlier else {}),
    }


def _clean(text: str) -> str:
    return NOT_IN_XML.sub("\ufffd", text)
