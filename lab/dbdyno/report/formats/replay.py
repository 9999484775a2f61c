"""A repeated experiment beside its first run: agreement of verdicts, and differences.

Differences (machine, versions, settings in effect) come right below the answer, as the first
suspects when two runs disagree. Throughput of two runs is not compared; days and machines lie
between them, only the ratios within blocks carry over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dbdyno.judge.judgement import JudgedRun
from dbdyno.judge.uses.agreement import Agreeing, Agreement, agreements
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.known import Fact
from dbdyno.report.formats.stdout import Result
from dbdyno.report.numbers import NONE, decided, interval, value_of, what
from dbdyno.report.parts import Column, Items, Paragraph, Table, table
from dbdyno.report.rows import ABSENT, ALWAYS_DIFFER, effective, systems_of
from dbdyno.report.sections.method import generator_threads
from dbdyno.report.tell.measured import cell_title
from dbdyno.report.tell.terms import term

ROWS_PLAIN_MAX: Final = 40
DIFFERENCES_OPEN_MAX: Final = 25
"""A longer table of what differed is folded."""
SILENT: Final = frozenset({Word.NO_VERDICT, Word.VOID})
"""Words that say nothing of the systems, and so cannot agree."""


@dataclass(frozen=True)
class Replay(Result):
    """Two runs side by side.

    Attributes:
        differences: subject, first value, second value; subjects of a single run come last.
    """

    first: JudgedRun
    second: JudgedRun
    agreements: tuple[Agreement, ...]
    differences: tuple[tuple[Text, Text, Text], ...]

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """The answer and both tables, cut if long."""
        yield from (*_heads(self), *answer(self), name(""))
        for whole in _tables(self):
            yield dataclasses.replace(whole, rows=whole.rows[:ROWS_PLAIN_MAX])
            if (left := len(whole.rows) - ROWS_PLAIN_MAX) > 0:
                yield say("and {count} more; all of them: --output json", count=left)
            yield name("")

    def markdown(self) -> Iterator[Paragraph | Items | Table]:
        """The answer and both tables."""
        first, *others = (*answer(self), *_heads(self))
        yield Paragraph(first, strong=True)
        yield Items(tuple(others))
        for whole in _tables(self):
            folded = len(whole.rows) > DIFFERENCES_OPEN_MAX and whole.folded
            yield dataclasses.replace(whole, folded=folded)

    def document(self) -> dict[str, Any]:
        """Both runs, the answer, every agreement and difference."""
        return {
            "first": self.first.facts.model_dump(mode="json"),
            "second": self.second.facts.model_dump(mode="json"),
            "answer": [str(line) for line in answer(self)],
            "agreements": [
                {**a.model_dump(mode="json"), "same_word": a.same_word, "contradict": a.contradict}
                for a in self.agreements
            ],
            "differences": [
                dict(zip(("what", "first", "second"), row, strict=True)) for row in self.differences
            ],
        }


def replay(first: JudgedRun, second: JudgedRun) -> Replay:
    """Compares a run with its repetition, with the first plan's margin."""
    verdicts = (first.judgement.all_verdicts, second.judgement.all_verdicts)
    return Replay(
        first,
        second,
        tuple(agreements(*verdicts, (first.plan.design, second.plan.design))),
        differences(first, second),
    )


def answer(replay: Replay) -> list[Text]:
    """Agreement of the second run with the first, in sentences."""
    outcome = replay.agreements
    both = [a for a in outcome if a.first and a.second]
    if not both:
        return [say("the runs have no comparison in common")]
    comparable = [a for a in both if all(v and v.word not in SILENT for v in (a.first, a.second))]
    counts = {word: sum(a.word is word for a in comparable) for word in Agreeing}
    same = {"same": sum(a.same_word for a in comparable), "all": len(comparable)}
    sentences: list[Text] = [
        say(
            "the same verdict in {same} of {all} comparisons; the ratios agree in {agree}, are "
            "not shown to differ in {open}, differ in {differ}",
            **same,
            agree=counts[Agreeing.AGREE],
            open=counts[Agreeing.NOT_SHOWN],
            differ=counts[Agreeing.DIFFER],
        )
        if comparable
        else say("no comparison has a verdict in both runs")
    ]
    if comparable and (silent := len(both) - len(comparable)):
        cells = count(silent, "cell")
        sentences.append(say("without a verdict in one of the two runs: {cells}", cells=cells))
    if contradictions := sum(agreement.contradict for agreement in both):
        sentences.append(
            say(
                "contradictory comparisons, faster in one run and slower in the other: {count}",
                count=contradictions,
            )
        )
    if missing := len(outcome) - len(both):
        sentences.append(say("comparisons in one run only: {count}", count=missing))
    if replay.first.facts.run_id == replay.second.facts.run_id:
        sentences.append(say("both are the same run: nothing was repeated"))
    if replay.first.plan.hash() != replay.second.plan.hash():
        sentences.append(say("the plans differ: this is no repetition of the same experiment"))
    return sentences


def difference(agreement: Agreement) -> Text:
    """Agreement of the second ratio with the first: "differ: +3.1 % [+1.0, +5.2]"."""
    word = term(agreement.word)
    if agreement.ratio is None:
        return word
    change = interval(agreement.ratio, agreement.low, agreement.high)
    return say("{word}: {change}", word=word, change=change)


def _heads(replay: Replay) -> list[Text]:
    return [
        say(
            "{which}: run {run_id} of {when}, dbdyno {version}",
            which=which,
            run_id=side.facts.run_id,
            when=side.facts.created_at[:16].replace("T", " "),
            version=side.facts.dbdyno_version,
        )
        for which, side in ((say("first"), replay.first), (say("again"), replay.second))
    ]


def _tables(replay: Replay) -> Iterator[Table]:
    if replay.agreements:
        yield table(
            say("Verdicts, first and again"),
            replay.agreements,
            (say("Cell"), lambda one: cell_title(one.cell)),
            (say("System"), lambda one: one.system),
            (say("First"), lambda one: _verdict(one.first)),
            (say("Again"), lambda one: _verdict(one.second)),
            (say("Again / first [95 %]"), difference),
        )
    columns = (Column(say("What")), Column(say("First")), Column(say("Again")))
    if replay.differences:
        caption = say("What was different ({count})", count=len(replay.differences))
        yield Table(caption, columns, replay.differences, folded=True)
    elif all(side.judgement.known.has(Fact.SETTINGS) for side in (replay.first, replay.second)):
        alike = (say("machine, versions and settings"), say("alike"), say("alike"))
        yield Table(say("What was different"), columns, (alike,))


def _verdict(verdict: Verdict | None) -> Text:
    if verdict is None:
        return NONE
    return say("{word} {change}", word=term(verdict.word), change=decided(verdict))


def differences(first: JudgedRun, second: JudgedRun) -> tuple[tuple[Text, Text, Text], ...]:
    """Differences of two runs in machine, dbdyno, versions and settings in effect.

    Each has its subject and the value in either run; subjects of a single run come last.
    """
    return tuple(sorted(_differences(first, second), key=lambda row: ABSENT in row))


def _differences(first: JudgedRun, second: JudgedRun) -> Iterator[tuple[Text, Text, Text]]:
    yield from _differing(*(_machine(side.facts.environment) for side in (first, second)))
    engines = [{say("load generator"): _engines(side.measurements)} for side in (first, second)]
    yield from _differing(*engines)
    for system in systems_of(first.plan, first.measurements):
        versions = [listed(side.versions(system), "; ") for side in (first, second)]
        what_of = say("{system}: {what}", system=system, what=say("version"))
        yield from _differing(*({what_of: version} for version in versions))
        in_effect = [effective(side.measurements, system) for side in (first, second)]
        if all(in_effect):
            yield from _differing(*(_telling(system, settings) for settings in in_effect))


def _machine(environment: dict[str, str]) -> dict[Text, Text]:
    return {what(feature): value_of(value) for feature, value in environment.items()}


def _differing(
    first: dict[Text, Text], second: dict[Text, Text]
) -> Iterator[tuple[Text, Text, Text]]:
    for feature in dict.fromkeys([*first, *second]):
        pair = (first.get(feature, ABSENT), second.get(feature, ABSENT))
        if pair[0] != pair[1]:
            yield (feature, *pair)


def _telling(system: str, settings: dict[str, Text]) -> dict[Text, Text]:
    """Drop settings of an instance rather than its configuration: paths, ports, identities."""
    return {
        name(f"{system}: {variable}"): value
        for variable, value in settings.items()
        if not ALWAYS_DIFFER.fullmatch(variable)
    }


def _engines(measurements: Sequence[Measurement]) -> Text:
    seen = {
        say(
            "{version}, {reactor}, {threads}",
            version=m.engine.version,
            reactor=m.engine.reactor,
            threads=generator_threads(m.engine),
        )
        for m in measurements
        if m.intervals
    }
    return listed(sorted(seen), "; ")
