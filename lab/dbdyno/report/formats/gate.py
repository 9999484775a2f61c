"""A gate's outcome for those who wait for it: a terminal, a program, a pull request.

What decided against comes first, then what is not decided, then what held; doubts about the run
follow, since a gate that hides them would be half the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.uses.gate import Gate, Outcome, Passage
from dbdyno.judge.wording import change_decided
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.facts import RunFacts
from dbdyno.report import document
from dbdyno.report.formats import markdown, plain_table, terminal
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Column, Table
from dbdyno.report.translation import line, translated

MARK: Final = "<!-- dbdyno gate -->"
"""By this line a job finds its own comment of an earlier commit, to write over it."""
ORDER: Final = (Outcome.SLOWER, Outcome.VOID, Outcome.UNDECIDED, Outcome.HELD)
DOUBTS_MAX: Final = 10


def plain(gate: Gate, judgement: Judgement, run: RunFacts, language: Language = Language.EN) -> str:
    """One line for the whole, one for each comparison, then the doubts."""
    lines = [say("run {run_id}: {outcome}", run_id=run.run_id, outcome=gate.text)]
    lines += [
        say(
            "  {mark} {cell}: {text}",
            mark=_mark(passage),
            cell=passage.verdict.cell.title,
            text=passage.text,
        )
        for passage in ordered(gate)
    ]
    lines += doubts(judgement, run)
    return "".join(f"{plain_table.printable(line(text, language))}\n" for text in lines)


def as_json(
    gate: Gate, judgement: Judgement, run: RunFacts, language: Language = Language.EN
) -> str:
    """The same for programs: numbers unrounded, English in every language."""
    findings = [f.model_dump(mode="json") for f in judgement.findings]
    made: dict[str, Any] = {
        "run": run.model_dump(mode="json"),
        "holds": gate.holds,
        "text": str(gate.text),
        "gate": gate.model_dump(mode="json"),
        "findings": findings,
    }
    return document.text({name: document.finite(value) for name, value in made.items()})


def comment(
    gate: Gate, judgement: Judgement, run: RunFacts, language: Language = Language.EN
) -> str:
    """GitHub Markdown for a pull request, with a mark by which it is found again."""
    lines = [MARK, f"**{markdown.text(line(gate.text, language))}**", ""]
    if gate.passages:
        lines += [*markdown.table(translated(_table(gate), language)), ""]
    lines += [f"- {markdown.text(line(text, language))}" for text in doubts(judgement, run)]
    told = say(
        "Run {run_id} of {day}, dbdyno {version}, plan {plan}.",
        run_id=run.run_id,
        day=run.created_at[:10],
        version=run.dbdyno_version,
        plan=run.plan_hash[:12],
    )
    return (
        "\n".join([*lines, "", markdown.text(line(told, language))]).replace("\n\n\n", "\n\n")
        + "\n"
    )


def ordered(gate: Gate) -> list[Passage]:
    """The comparisons, the gravest first."""
    return sorted(gate.passages, key=lambda passage: ORDER.index(passage.outcome))


def doubts(judgement: Judgement, run: RunFacts) -> list[Text]:
    """What throws doubt on the gate, a sentence each; a long list is cut and says so."""
    told = [*_incomplete(run), *terminal.doubts(judgement)]
    if len(told) <= DOUBTS_MAX:
        return told
    more = say("and {count} more doubts; see the report", count=len(told) - DOUBTS_MAX)
    return [*told[:DOUBTS_MAX], more]


def _incomplete(run: RunFacts) -> Iterator[Text]:
    if not run.complete:
        yield say(
            "the run is incomplete: {planned} trials were planned", planned=run.trials_planned
        )


def _table(gate: Gate) -> Table:
    rows = tuple(
        (
            say("{mark} {outcome}", mark=_mark(passage), outcome=passage.outcome.said),
            name(passage.verdict.cell.title),
            name(passage.verdict.system),
            name(passage.verdict.baseline),
            name(change_decided(passage.verdict) or NONE),
            passage.verdict.word.said,
        )
        for passage in ordered(gate)
    )
    columns = (
        Column(say("Gate")),
        Column(say("Cell")),
        Column(say("System")),
        Column(say("Against")),
        Column(say("Change [95 %]"), numeric=True),
        Column(say("Verdict")),
    )
    return Table(say("Held against the limit"), columns, rows)


def _mark(passage: Passage) -> str:
    if passage.outcome is Outcome.HELD:
        return "✓"
    return "?" if passage.holds else "✗"
