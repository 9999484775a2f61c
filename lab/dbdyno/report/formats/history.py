"""A label's verdicts in each run of a workspace, the newest first.

Only ratios within blocks are listed, which a change of machine or day does not move as it moves
throughput.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.judge.verdict import Verdict
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import Plan, comparisons
from dbdyno.report.formats.stdout import Result
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Table, numeric, table
from dbdyno.report.tell.measured import cell_title
from dbdyno.report.tell.terms import term
from dbdyno.report.tell.verdicts import change_decided


class HistoryEntry(Noun):
    """A verdict of a run.

    Attributes:
        version: the system's own version.
    """

    run_id: str
    created_at: str
    plan_hash: str
    complete: bool
    version: str
    verdict: Verdict


class RunVerdicts(Noun):
    """Verdicts of a run.

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
    """Verdicts on a label, or on all, newest run first.

    Args:
        runs: the newest first, as a store gives them.
    """
    return tuple(
        HistoryEntry(
            run_id=run.run_id,
            created_at=run.created_at,
            plan_hash=run.plan.hash(),
            complete=run.complete,
            version=run.versions.get(_system_of(run.plan, verdict.system), ""),
            verdict=verdict,
        )
        for run in runs
        for verdict in run.verdicts
        if label in (None, verdict.system)
    )


def _system_of(plan: Plan, arm: str) -> str:
    return next((one.arm.system for one in comparisons(plan) if one.arm.label == arm), "")


@dataclass(frozen=True)
class History(Result):
    """Verdicts of several runs, a table for each label."""

    listed: tuple[HistoryEntry, ...]

    def plain(self, language: Language) -> Iterator[Text | Table]:
        for part in self.markdown():
            yield from (part, name(""))

    def markdown(self) -> Iterator[Table]:
        return tables(self.listed)

    def document(self) -> dict[str, Any]:
        """Every verdict."""
        verdicts = [entry.model_dump(mode="json") for entry in self.listed]
        return {"verdicts": verdicts}


def tables(listed: Sequence[HistoryEntry]) -> Iterator[Table]:
    """A table for each label: comparisons stay together, newest run first."""
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
            (say("Cell"), lambda entry: cell_title(entry.verdict.cell)),
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
        )


def _run(entry: HistoryEntry) -> Text:
    run = name(entry.run_id)
    return run if entry.complete else say("{run} (incomplete)", run=run)
