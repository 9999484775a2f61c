"""A repeated experiment beside its first run: do the verdicts agree, and what was different?

What differed comes right below the answer, as it is the first thing to ask about when two runs
disagree: machine, versions, settings in effect. Throughput of two runs is not compared; days and
machines lie between them, only the ratios within blocks carry over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dbdyno.judge import Judgement, Verdict
from dbdyno.judge.agreement import Agreeing, Agreement, agreements
from dbdyno.judge.wording import change_decided
from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.report import data, markdown, plain_table
from dbdyno.report.facts import RunFacts
from dbdyno.report.numbers import NONE, change
from dbdyno.report.parts import Column, Table
from dbdyno.report.settings import ABSENT, ALWAYS_DIFFER, effective
from dbdyno.report.trials import systems_of
from dbdyno.words import say

FORMAT: Final = 1
ROWS_PLAIN_MAX: Final = 40
DIFFERENCES_OPEN_MAX: Final = 25
"""A longer table of what differed is folded."""


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    plan: Plan
    measurements: Sequence[Measurement]
    judgement: Judgement
    facts: RunFacts


@dataclass(frozen=True)
class Replay:
    """Two runs side by side.

    Attributes:
        differences: what, in the first, in the second; what only one of them has comes last.
    """

    first: Side
    second: Side
    agreements: tuple[Agreement, ...]
    differences: tuple[tuple[str, str, str], ...]


def replay(first: Side, second: Side) -> Replay:
    """Compares a run with its repetition, with the first plan's margin."""
    verdicts = (first.judgement.verdicts, second.judgement.verdicts)
    return Replay(
        first,
        second,
        agreements(*verdicts, first.plan.design.margin),
        tuple(sorted(_differences(first, second), key=lambda row: ABSENT in row)),
    )


def answer(replay: Replay) -> list[str]:
    """Whether the second run says what the first said, in sentences."""
    found = replay.agreements
    both = [a for a in found if a.first and a.second]
    if not both:
        return [say("the runs have no comparison in common")]
    counts = {word: sum(a.word is word for a in found) for word in Agreeing}
    told: list[str] = [
        say(
            "the same verdict in {same} of {all} comparisons; the ratios agree in {agree}, are "
            "not shown to differ in {open}, differ in {differ}",
            same=sum(a.same_word for a in both),
            all=len(both),
            agree=counts[Agreeing.AGREE],
            open=counts[Agreeing.NOT_SHOWN],
            differ=counts[Agreeing.DIFFER],
        )
    ]
    if contradictions := sum(agreement.contradict for agreement in both):
        told.append(
            say("{count} contradict: better in one run, worse in the other", count=contradictions)
        )
    if counts[Agreeing.MISSING]:
        told.append(say("{count} are in one run only", count=counts[Agreeing.MISSING]))
    if replay.first.facts.run_id == replay.second.facts.run_id:
        told.append(say("both are the same run: nothing was repeated"))
    if replay.first.plan.hash() != replay.second.plan.hash():
        told.append(say("the plans differ: this is no repetition of the same experiment"))
    return told


def difference(agreement: Agreement) -> str:
    """How the second ratio stands to the first: "differ: +3.1 % [+1.0 %, +5.2 %]"."""
    if agreement.ratio is None:
        return agreement.word.value
    told = change(agreement.ratio)
    if agreement.low is not None and agreement.high is not None:
        told = f"{told} [{change(agreement.low)}, {change(agreement.high)}]"
    return f"{agreement.word.value}: {told}"


def plain(replay: Replay) -> str:
    """The answer and both tables as text."""
    lines = [*_heads(replay), *answer(replay), ""]
    for table in _tables(replay):
        shown = dataclasses.replace(table, rows=table.rows[:ROWS_PLAIN_MAX])
        lines += [table.caption, *plain_table.lines(shown)]
        if left := len(table.rows) - len(shown.rows):
            lines.append(say("and {count} more; all of them: --output json", count=left))
        lines.append("")
    return "".join(f"{plain_table.printable(line)}\n" for line in lines).rstrip() + "\n"


def as_markdown(replay: Replay) -> str:
    """The same as GitHub Markdown."""
    first, *others = answer(replay)
    lines = [f"**{markdown.text(first)}**", ""]
    lines += [f"- {markdown.text(line)}" for line in (*others, *_heads(replay))]
    lines.append("")
    for table in _tables(replay):
        folded = len(table.rows) > DIFFERENCES_OPEN_MAX and table.folded
        lines += [*(markdown.folded(table) if folded else markdown.table(table)), ""]
    return "\n".join(lines).rstrip() + "\n"


def as_json(replay: Replay) -> str:
    """The same for programs, numbers unrounded."""
    made: dict[str, Any] = {
        "format": FORMAT,
        "first": replay.first.facts.model_dump(mode="json"),
        "second": replay.second.facts.model_dump(mode="json"),
        "answer": [str(line) for line in answer(replay)],
        "agreements": [
            {**a.model_dump(mode="json"), "same_word": a.same_word, "contradict": a.contradict}
            for a in replay.agreements
        ],
        "differences": [
            dict(zip(("what", "first", "second"), row, strict=True)) for row in replay.differences
        ],
    }
    return data.text({name: data.finite(value) for name, value in made.items()})


def _heads(replay: Replay) -> list[str]:
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
        heads = ("Cell", "System", "First", "Again", "Again / first [95 %]")
        rows = tuple(_row(agreement) for agreement in replay.agreements)
        yield Table(say("Verdicts, first and again"), tuple(map(Column, heads)), rows)
    columns = (Column("What"), Column("First"), Column("Again"))
    if replay.differences:
        caption = say("What was different ({count})", count=len(replay.differences))
        yield Table(caption, columns, replay.differences, folded=True)
    else:
        alike = (say("machine, versions and settings"), say("alike"), say("alike"))
        yield Table(say("What was different"), columns, (alike,))


def _row(agreement: Agreement) -> tuple[str, ...]:
    return (
        agreement.cell.title,
        agreement.system,
        _told(agreement.first),
        _told(agreement.second),
        difference(agreement),
    )


def _told(verdict: Verdict | None) -> str:
    if verdict is None:
        return NONE
    return f"{verdict.word.value} {change_decided(verdict) or NONE}"


def _differences(first: Side, second: Side) -> Iterator[tuple[str, str, str]]:
    """Machine, dbdyno, versions and settings in effect, where they are not the same."""
    yield from _differing("", first.facts.environment, second.facts.environment)
    engines = [_engines(side.measurements) for side in (first, second)]
    yield from _differing("", {"load generator": engines[0]}, {"load generator": engines[1]})
    for system in systems_of(first.plan, first.measurements):
        versions = [{"version": _versions(side.measurements, system)} for side in (first, second)]
        yield from _differing(f"{system}: ", *versions)
        found = [effective(side.measurements, system) for side in (first, second)]
        if all(found):
            yield from _differing(f"{system}: ", *map(_telling, found))


def _differing(
    before: str, first: dict[str, str], second: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*first, *second]):
        pair = (first.get(name, ABSENT), second.get(name, ABSENT))
        if pair[0] != pair[1]:
            yield (before + name, *pair)


def _telling(settings: dict[str, str]) -> dict[str, str]:
    """Without what tells instances apart rather than configurations: paths, ports, identities."""
    return {name: v for name, v in settings.items() if not ALWAYS_DIFFER.fullmatch(name)}


def _engines(measurements: Sequence[Measurement]) -> str:
    seen = (m.engine for m in measurements if m.intervals)
    return "; ".join(sorted({f"{e.version}, {e.reactor}, {e.threads} threads" for e in seen}))


def _versions(measurements: Sequence[Measurement], system: str) -> str:
    of_system = (m for m in measurements if m.trial.system == system)
    return "; ".join(sorted({m.server.version for m in of_system if m.server.version}))
