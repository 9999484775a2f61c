"""A run's verdicts on stdout.

A sentence for each of a few cells, or for each workload; a table with the numbers of all cells; the
doubts in short: two cells fit a screen of 25 lines. The whole report is in the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Word
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, clauses, count, listed, name, phrase, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact, Known
from dbdyno.plan.plan import CELLS_FEW, Plan, cells, latency_of, one_baseline
from dbdyno.report import document, numbers
from dbdyno.report.formats.stdout import Result, shortened
from dbdyno.report.numbers import change_with_interval, decided, metric_value
from dbdyno.report.parts import Column, Items, Paragraph, Table, line, numeric
from dbdyno.report.rows import CHECKS_OF_ATTEMPTS, compared_arms, title_of
from dbdyno.report.sections.conclusion import IMPORTED, headlines, tallies
from dbdyno.report.tell import findings as tell
from dbdyno.report.tell import verdicts as words_of
from dbdyno.report.tell.causes import likeliest, of_samples
from dbdyno.report.tell.findings import check_name
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.terms import Sentence, fitting, term
from dbdyno.report.tell.verdicts import accounting, few_blocks, sentence

MERGED: Final = Sentence(phrase("Numbers, merged over all valid trials"), Fact.HERE)
INCOMPLETE: Final = (
    Sentence(phrase("{title}: run {run_id}, incomplete ({trials} planned)"), Fact.HERE),
    Sentence(phrase("{title}: run {run_id}, imported in part"), Fact.ELSEWHERE),
)
DOUBTS_MAX: Final = 3
"""More kinds of doubts are counted; the report has them all."""
DOUBT_COLUMNS: Final = 190
"""A longer doubt is cut here."""
SHOWN: Final[tuple[Metric, ...]] = (PRIMARY, BY_NAME["latency_ms_p95"])
QUERIES: Final = BY_NAME["queries_per_s"]
"""Shown in place of transactions if they are unknown, as in many published tables."""
TAIL: Final = BY_NAME["latency_ms_p99"]
"""Shown with its change, where few cells leave room."""


@dataclass(frozen=True)
class Summary(Result):
    """Verdicts, numbers, counts and doubts of a run."""

    plan: Plan
    judgement: Judgement
    facts: RunFacts

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """Sentences, numbers, doubts."""
        plan, judgement = self.plan, self.judgement
        yield from (_head(title_of(plan), self.facts, judgement.known), name(""))
        few = len(judgement.verdicts) <= CELLS_FEW
        answers = [
            *of_samples(judgement),
            *(_of_few(plan, judgement) if few else tallies(plan, judgement)),
            *numbers.sentences(judgement),
            *likeliest(judgement),
        ]
        yield from (*answers, name("")) if answers else ()
        if judgement.values:
            shown = (_values(plan, judgement),) if few else _tables(plan, judgement)
            yield from (part for table in shown for part in (table, name("")))
        doubtful = list(doubts(judgement, advised=False))
        yield from (
            name(shortened(line(one, language), DOUBT_COLUMNS)) for one in doubtful[:DOUBTS_MAX]
        )
        if left := doubtful[DOUBTS_MAX:]:
            yield say("and {doubts} in the report", doubts=count(len(left), "more doubt"))
        if not (few and judgement.verdicts):  # a headline names a few
            yield from _counts(judgement)

    def markdown(self) -> Iterator[Paragraph | Items | Table]:
        """A table of all cells, then the doubts."""
        yield Paragraph(_head(title_of(self.plan), self.facts, self.judgement.known))
        several = len(self.judgement.verdicts) > 1
        compared = tallies(self.plan, self.judgement) if several else []
        limits = numbers.sentences(self.judgement)
        sampled = of_samples(self.judgement)
        yield Items((*sampled, *compared, *limits, *likeliest(self.judgement)))
        yield from _tables(self.plan, self.judgement)
        yield Items((*doubts(self.judgement), *_counts(self.judgement)))

    def document(self) -> dict[str, Any]:
        """Run, plan and the whole judgement."""
        return {
            "run": self.facts.model_dump(mode="json"),
            "plan": self.plan.model_dump(mode="json"),
            **document.of_judgement(self.judgement),
        }


def _head(title: Text, run: RunFacts, known: Known) -> Text:
    if run.complete:
        return say("{title}: run {run_id}", title=title, run_id=run.run_id)
    trials = count(run.trials_planned, "trial")
    return fitting(INCOMPLETE, known, title=title, run_id=run.run_id, trials=trials)


def _of_few(plan: Plan, judgement: Judgement) -> Iterator[Text]:
    """The headline, then a sentence for each cell, with its reasons."""
    yield from headlines(plan, judgement)
    shared = words_of.shared_reasons(judgement.verdicts)
    for cell in dict.fromkeys(
        [*_cells(plan, judgement), *(verdict.cell for verdict in judgement.verdicts)]
    ):
        yield from _cell(cell, judgement, shared)
    yield from (say("every verdict: {reason}", reason=reason) for reason in shared)


def _cell(cell: Cell, judgement: Judgement, shared: Sequence[Text]) -> Iterator[Text]:
    for verdict in judgement.verdicts:
        if verdict.cell == cell:
            text = sentence(verdict)
            yield say("{cell}: {text}", cell=cell_title(cell), text=text)
            parts = None if judgement.causes else judgement.accounting(verdict)
            if parts is not None and verdict.word in (Word.BETTER, Word.WORSE):
                yield from (say("  ({reason})", reason=t) for t in (accounting(parts),) if t)
            said = [f"{text}; {few_blocks(verdict.blocks)}", *shared]
            for reason in map(words_of.reason, verdict.reasons):
                if not any(reason in line for line in said):
                    yield say("  ({reason})", reason=reason)


def _values(plan: Plan, judgement: Judgement) -> Table:
    """The systems' numbers, grouped by cell, with the changes of metrics that no sentence has."""
    cells = _cells(plan, judgement)
    baseline = one_baseline(plan) if len(plan.systems) > 1 else None
    shown = _metrics(plan, cells, judgement)
    metrics = tuple(dict.fromkeys((*shown, *([TAIL] if TAIL.name in _known(judgement) else []))))
    known = [metric for metric in metrics if metric.name in _known(judgement)]
    compared = [TAIL] if judgement.verdicts else known  # imports have no sentences
    is_elsewhere = judgement.known.has(Fact.ELSEWHERE)
    measured = {(one.cell, one.system) for one in judgement.values if one.value is not None}
    columns = [Column(say("Cell")), Column(say("System"))]
    for metric in metrics:
        label = metric_label(metric)
        columns.append(numeric(say("{metric} {unit}", metric=label, unit=metric.unit)))
        if baseline is not None and metric in compared:
            with_interval = say("{metric} change [95 %]", metric=label)
            columns.append(
                numeric(
                    with_interval if judgement.verdicts else say("{metric} change", metric=label)
                )
            )
    rows = []
    for cell in cells:
        for system in plan.systems:
            if is_elsewhere and (cell, system.label) not in measured:
                continue
            row = [cell_title(cell), name(system.label)]
            for metric in metrics:
                row.append(metric_value(judgement, cell, system.label, metric))
                if baseline is not None and metric in compared:
                    estimate = judgement.estimate(cell, baseline, system.label, metric.name)
                    row.append(change_with_interval(estimate) if estimate else name(""))
            rows.append(tuple(row))
    caption = next(iter(MERGED.of(judgement.known)), say("Numbers"))
    return Table(caption, tuple(columns), tuple(rows))


def _metrics(plan: Plan, cells: Sequence[Cell], judgement: Judgement) -> tuple[Metric, ...]:
    """Throughput and p95 of closed loops; the verdicts' percentile of open loops."""
    closed = any(cell.rate_per_s is None for cell in cells)
    is_open = any(cell.rate_per_s is not None for cell in cells)
    shown = [*(SHOWN if closed else [PRIMARY]), *([latency_of(plan)] if is_open else [])]
    known = _known(judgement)
    if QUERIES.name in known and PRIMARY.name not in known:
        shown[0] = QUERIES
    return tuple(dict.fromkeys(shown))


def _known(judgement: Judgement) -> set[str]:
    """Names of metrics with a value in some cell."""
    return {value.metric for value in judgement.values if value.value is not None}


def _tables(plan: Plan, judgement: Judgement) -> tuple[Table, ...]:
    """Numbers and verdicts in a table, or in two with several baselines."""
    if one_baseline(plan) is not None:
        return (_table(plan, judgement),)
    return (compared_arms(judgement.verdicts), _values(plan, judgement))


def _table(plan: Plan, judgement: Judgement) -> Table:
    baseline, cells = plan.systems[0].label, _cells(plan, judgement)
    metrics = _metrics(plan, cells, judgement)
    verdicts = {(one.cell, one.system): one for one in judgement.verdicts}
    columns = [Column(say("Cell")), Column(say("System")), Column(say("Verdict"))]
    for metric in metrics:
        columns.append(numeric(name(f"{metric_label(metric)} {metric.unit}")))
        columns.append(numeric(say("Change [95 %]")))
    rows = []
    for cell in cells:
        for system in plan.systems:
            is_baseline = system.label == baseline
            verdict = verdicts.get((cell, system.label))
            word = term(verdict.word if verdict else Word.NO_VERDICT)
            row = [cell_title(cell), name(system.label), say("baseline") if is_baseline else word]
            for metric in metrics:
                estimate = judgement.estimate(cell, baseline, system.label, metric.name)
                change = change_with_interval(estimate)
                if verdict and verdict.metric == metric.name:
                    change = decided(verdict)
                row += [metric_value(judgement, cell, system.label, metric), change]
            rows.append(tuple(row))
    caption = say("Verdicts against {baseline}", baseline=baseline)
    return Table(caption, tuple(columns), tuple(rows))


def _cells(plan: Plan, judgement: Judgement) -> list[Cell]:
    """All cells, without the cells of a limit's search, which get a sentence together."""
    every = dict.fromkeys([*cells(plan), *(value.cell for value in judgement.values)])
    return [cell for cell in every if not plan.load.is_rung(cell.rate_per_s)]


def _counts(judgement: Judgement) -> Iterator[Text]:
    words = [verdict.word for verdict in judgement.all_verdicts]
    if not words:
        yield from IMPORTED.of(judgement.known) or [say("no comparison was made")]
        return
    counts = (say("{word} {count}", word=term(w), count=words.count(w)) for w in Word)
    yield listed(counts)


def doubts(judgement: Judgement, *, advised: bool = True) -> Iterator[Text]:
    """Doubts about the verdicts, without failed attempts made good by a complete attempt.

    Args:
        advised: each with its advice.
    """
    good = judgement.counted_from_s.keys()  # a sound attempt counts, whatever failed before it
    for level in (Level.VOID, Level.DOUBTFUL):
        findings = [
            finding
            for finding in judgement.findings
            if finding.level is level
            and not (finding.check in CHECKS_OF_ATTEMPTS and finding.trial in good)
        ]
        for check in dict.fromkeys(finding.check for finding in findings):
            of_check = [finding for finding in findings if finding.check == check]
            yield _short(of_check, judgement, advised=advised)


def _short(findings: Sequence[Finding], judgement: Judgement, *, advised: bool) -> Text:
    """Findings of a check: their place together, and the evidence of the first."""
    first, others = findings[0], len(tell.together(findings, judgement.known)) - 1
    place = tell.place_of_all(findings, judgement.arms)
    text = say(
        "{level}: {check}: {evidence}{more}",
        level=term(first.level),
        check=clauses(part for part in (check_name(first.check), place) if part),
        evidence=tell.evidence(first),
        more=say(" (and {count} more)", count=others) if others else name(""),
    )
    advice = tell.advice(first, judgement.known)
    return say("{doubt}; {advice}", doubt=text, advice=advice) if advised else text
