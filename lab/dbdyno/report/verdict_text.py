"""The verdict for stdout: as text for people, as JSON for programs, as Markdown for an issue.

A cell's verdict comes as a sentence with the numbers it is about; doubts follow in short, since a
verdict without them would be half the truth. The whole report is in the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge import Finding, Judgement, Level, Word, sentence
from dbdyno.judge.cell_metric import latency_of
from dbdyno.judge.verdict import few_blocks
from dbdyno.judge.wording import THIN
from dbdyno.measurement import Cell
from dbdyno.metric import BY_NAME, PRIMARY, Metric
from dbdyno.plan import Plan, cells
from dbdyno.report import data, markdown, rates
from dbdyno.report.facts import RunFacts
from dbdyno.report.numbers import change_with_interval, count, metric_value
from dbdyno.report.parts import Column, Table
from dbdyno.report.trials import OF_FAILED_ATTEMPT, title_of

OF_MADE_GOOD: Final = "repeated-trial"
"""The check that speaks of a trial with a complete attempt among several."""
SHOWN: Final[tuple[Metric, ...]] = (PRIMARY, BY_NAME["latency_ms_p95"])


def plain(plan: Plan, judgement: Judgement, run: RunFacts) -> str:
    """Verdicts, numbers, counts and doubts as plain text, ordinary spaces only."""
    lines = [_head(plan, run), ""]
    if found := rates.sentences(judgement):
        lines += [*found, ""]
    for cell in _cells(plan, judgement):
        lines += [*_cell(cell, plan, judgement), ""]
    lines += [*_doubts(judgement), *_counts(judgement)]
    return "\n".join(_printable(line) for line in lines).rstrip() + "\n"


def _printable(line: str) -> str:
    """Ordinary spaces, and nothing that would steer a terminal."""
    return "".join(sign if sign.isprintable() and sign != THIN else " " for sign in line)


def as_json(plan: Plan, judgement: Judgement, run: RunFacts) -> str:
    """Run, plan and the whole judgement as JSON text; numbers as the judge gave them."""
    head = {"run": run.model_dump(mode="json"), "plan": plan.model_dump(mode="json")}
    whole = {**head, **data.of_judgement(judgement)}
    return data.text({name: data.finite(value) for name, value in whole.items()})


def as_markdown(plan: Plan, judgement: Judgement, run: RunFacts) -> str:
    """One table of all cells, then the doubts, as GitHub Markdown."""
    lines = [markdown.text(_head(plan, run)), ""]
    if found := rates.sentences(judgement):
        lines += [*(f"- {markdown.text(line)}" for line in found), ""]
    lines += [*markdown.table(_table(plan, judgement)), ""]
    lines += [f"- {markdown.text(line)}" for line in (*_doubts(judgement), *_counts(judgement))]
    return "\n".join(lines).rstrip() + "\n"


def _head(plan: Plan, run: RunFacts) -> str:
    state = "" if run.complete else f", incomplete ({count(run.trials_planned, 'trial')} planned)"
    return f"{title_of(plan)}: run {run.run_id}{state}"


def _cell(cell: Cell, plan: Plan, judgement: Judgement) -> Iterator[str]:
    yield cell.title
    for verdict in judgement.verdicts:
        if verdict.cell == cell:
            told = sentence(verdict)
            yield f"  {told}"
            said = f"{told}; {few_blocks(verdict.estimate.blocks)}"
            yield from (f"    ({reason})" for reason in verdict.reasons if reason not in said)
    labels = [system.label for system in plan.systems]
    width = max(map(len, labels))
    metrics = SHOWN if cell.rate_per_s is None else (PRIMARY, latency_of(plan))
    heads = [f"{metric.label} {metric.unit}" for metric in metrics]
    yield "  " + " " * width + "".join(f"  {head:>20}" for head in heads)
    for label in labels:
        shown = [metric_value(judgement.value(cell, label, m.name), m) for m in metrics]
        yield f"  {label:<{width}}" + "".join(f"  {value:>20}" for value in shown)


def _table(plan: Plan, judgement: Judgement) -> Table:
    columns = [Column("Cell"), Column("System"), Column("Verdict")]
    for metric in SHOWN:
        columns.append(Column(f"{metric.label} {metric.unit}", numeric=True))
        columns.append(Column("Change [95 %]", numeric=True))
    rows = []
    for cell in _cells(plan, judgement):
        for system in plan.systems:
            row = [cell.title, system.label, _word(judgement, cell, system.label)]
            for metric in SHOWN:
                estimate = judgement.estimate(cell, system.label, metric.name)
                value = judgement.value(cell, system.label, metric.name)
                row += [metric_value(value, metric), change_with_interval(estimate)]
            rows.append(tuple(row))
    baseline = plan.systems[0].label
    return Table(f"Verdicts against {baseline}", tuple(columns), tuple(rows))


def _word(judgement: Judgement, cell: Cell, system: str) -> str:
    words = [v.word.value for v in judgement.verdicts if (v.cell, v.system) == (cell, system)]
    return words[0] if words else "baseline"


def _cells(plan: Plan, judgement: Judgement) -> list[Cell]:
    """All cells but those that only help to find a limit: that is told in one sentence."""
    every = dict.fromkeys([*cells(plan), *(value.cell for value in judgement.values)])
    return [cell for cell in every if not plan.load.is_rung(cell.rate_per_s)]


def _counts(judgement: Judgement) -> Iterator[str]:
    searched = [verdict for search in judgement.slo for verdict in search.verdicts]
    words = [verdict.word for verdict in (*judgement.verdicts, *searched)]
    if not words:
        yield "no comparison was made"
        return
    yield ", ".join(f"{word.value} {words.count(word)}" for word in Word)


def _doubts(judgement: Judgement) -> Iterator[str]:
    """What throws doubt on the verdicts; not a failed attempt that a complete one made good."""
    good = {finding.trial for finding in judgement.findings if finding.check == OF_MADE_GOOD}
    for level in (Level.VOID, Level.DOUBTFUL):
        found = [
            finding
            for finding in judgement.findings
            if finding.level is level
            and not (finding.check in OF_FAILED_ATTEMPT and finding.trial in good)
        ]
        for check in dict.fromkeys(finding.check for finding in found):
            yield _short(level, [finding for finding in found if finding.check == check])


def _short(level: Level, found: Sequence[Finding]) -> str:
    first = found[0]
    where = f", {first.place}" if first.place else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{level.value}: {first.check}{where}: {first.evidence}{more}; {first.advice}"
