"""A label's verdicts over time: what each run of a workspace said of it, the newest first.

Only ratios within blocks are listed, which a change of machine or day does not move as it moves
throughput. Each is held against the run before it that asked for the same thing (the same plan but
for its seed, blocks and title), with the interval of `judge.uses.agreement`; so a step in a label's
course is distinguished from chance by the same rule as everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dbdyno.judge.uses.agreement import Agreement, agreements
from dbdyno.judge.verdict import Verdict
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import DesignPlan, Plan, comparisons
from dbdyno.report.formats.replay import difference
from dbdyno.report.formats.stdout import Result
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Table, numeric, table
from dbdyno.report.tell.terms import term
from dbdyno.report.tell.verdicts import change_decided

FORMAT: Final = 1


class HistoryEntry(Noun):
    """One verdict of one run.

    Attributes:
        version: what the system said its version was.
        since: the same comparison in the run before of the same experiment; None for the first.
    """

    run_id: str
    created_at: str
    plan_hash: str
    complete: bool
    version: str
    verdict: Verdict
    since: Agreement | None = None


class RunVerdicts(Noun):
    """The verdicts of one run.

    Attributes:
        versions: by system.
    """

    run_id: str
    created_at: str
    plan: Plan
    complete: bool
    versions: dict[str, str]
    verdicts: tuple[Verdict, ...]


def entries(runs: Sequence[RunVerdicts], label: str | None = None) -> tuple[HistoryEntry, ...]:
    """Every verdict on that label, or on all, of the newest run first.

    Args:
        runs: the newest first, as a store gives them.
    """
    made: list[HistoryEntry] = []
    before: dict[str, RunVerdicts] = {}
    for run in reversed(runs):
        asked = experiment(run.plan)
        made[:0] = _of_run(run, before.get(asked), label)
        before[asked] = run
    return tuple(made)


def experiment(plan: Plan) -> str:
    """What two runs have in common that ask the same question, however often or in which order."""
    design = DesignPlan(margin=plan.design.margin, chosen=plan.design.chosen)
    return plan.model_copy(update={"design": design, "seed": 1, "title": "", "scale": ""}).hash()


def _of_run(run: RunVerdicts, before: RunVerdicts | None, label: str | None) -> list[HistoryEntry]:
    verdicts = [v for v in run.verdicts if label in (None, v.system)]
    since = (
        agreements(before.verdicts, verdicts, (before.plan.design, run.plan.design))
        if before
        else ()
    )
    systems = {one.arm.label: one.arm.system for one in comparisons(run.plan)}
    by_place = {
        (a.cell, a.second.metric, a.baseline, a.system): a for a in since if a.first and a.second
    }
    return [
        HistoryEntry(
            run_id=run.run_id,
            created_at=run.created_at,
            plan_hash=run.plan.hash(),
            complete=run.complete,
            version=run.versions.get(systems.get(verdict.system, ""), ""),
            verdict=verdict,
            since=by_place.get((verdict.cell, verdict.metric, verdict.baseline, verdict.system)),
        )
        for verdict in verdicts
    ]


@dataclass(frozen=True)
class History(Result):
    """Verdicts of several runs, a table for each label."""

    listed: tuple[HistoryEntry, ...]

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """The tables one below the other."""
        for one in self.markdown():
            yield from (one, name(""))

    def markdown(self) -> Iterator[Table]:
        """One table for each label."""
        return tables(self.listed)

    def document(self) -> dict[str, Any]:
        """Every verdict."""
        verdicts = [entry.model_dump(mode="json") for entry in self.listed]
        return {"format": FORMAT, "verdicts": verdicts}


def tables(listed: Sequence[HistoryEntry]) -> Iterator[Table]:
    """One table for each label: what was compared stays together, the newest run first."""
    groups: dict[str, dict[tuple[Cell, str], list[HistoryEntry]]] = {}
    for entry in listed:
        verdict = entry.verdict
        compared = groups.setdefault(verdict.system, {})
        compared.setdefault((verdict.cell, verdict.baseline), []).append(entry)
    for system, of_system in sorted(groups.items()):
        baselines = list(dict.fromkeys(baseline for _, baseline in of_system))
        against = (say("Against"), lambda entry: entry.verdict.baseline)
        yield table(
            say("{system} against {baseline}", system=system, baseline=" / ".join(baselines)),
            [entry for members in of_system.values() for entry in members],
            (say("Cell"), lambda entry: entry.verdict.cell.title),
            *([against] if len(baselines) > 1 else []),
            (say("When"), lambda entry: entry.created_at[:16].replace("T", " ")),
            (say("Run"), _run),
            (say("Version"), lambda entry: entry.version or NONE),
            (say("Verdict"), lambda entry: term(entry.verdict.word)),
            (
                numeric(say("Change [95 %]")),
                lambda entry: change_decided(entry.verdict) or NONE,
            ),
            (numeric(say("Blocks")), lambda entry: entry.verdict.blocks),
            (
                say("Since the run before"),
                lambda entry: difference(entry.since) if entry.since else NONE,
            ),
        )


def _run(entry: HistoryEntry) -> Text:
    run = name(entry.run_id)
    return run if entry.complete else say("{run} (incomplete)", run=run)
