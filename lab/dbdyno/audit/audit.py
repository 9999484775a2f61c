"""The door: a publication becomes a ledger. Pure: no files, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from dbdyno.audit.ledger import AuditLedger, ledger_of
from dbdyno.audit.rules import cells, claims, copies, design
from dbdyno.audit.tables import LATENCY, MEAN, QPS, TPS, Printed, Publication, PublishedTable
from dbdyno.judge.judgement import Judgement
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import DEFAULT
from dbdyno.plan.workload import WorkloadPlan

METRICS: Final = {"transactions_per_s": TPS, "queries_per_s": QPS}


def audit(publication: Publication) -> AuditLedger:
    """Holds the publication's numbers, claims and set-up against each other."""
    every = publication.cells()
    entries = (
        *cells.check(publication, every),
        *copies.check(publication, every),
        *claims.check(publication, every),
        *design.check(publication, every),
    )
    return ledger_of(entries, len(every))


def between(publications: Sequence[Publication]) -> AuditLedger:
    """Compares publications: numbers that cannot have been measured for both."""
    entries = (
        entry.model_copy(update={"place": f"{first.title}; {second.title}"})
        for first, second in combinations(publications, 2)
        for entry in copies.between(first, second)
    )
    return ledger_of(entries, sum(len(one.cells()) for one in publications))


def of_run(plan: Plan, judgement: Judgement) -> Publication:
    """A run of the workspace as a publication: the numbers of its report."""
    seen = [value for value in judgement.values if value.value is not None]
    workloads = {workload.label: workload for workload in plan.workloads}
    arms: dict[tuple[str, Cell], dict[int, dict[str, Printed]]] = {}
    for value in seen:
        arm = arms.setdefault((value.system, value.cell.model_copy(update={"threads": 0})), {})
        metric = METRICS.get(value.metric, value.metric)
        if _can_be_held(metric, workloads.get(value.cell.workload)):
            arm.setdefault(value.cell.threads, {})[metric] = Printed(text=f"{value.value:.3f}")
    blocks = max((value.blocks for value in seen), default=0)
    disclosed = {
        "repeats": f"{blocks} blocks" if blocks > 1 else "",
        "spread": "95 %" if any(value.low is not None for value in seen) else "",
    }
    is_here = known_of(plan).has(Fact.HERE)
    if is_here:
        disclosed |= {
            "duration": f"{plan.trial.window_s:g} s",
            "warm_up": f"{plan.trial.warmup_s:g} s",
            "order": "at random within each block",
            "client": "its CPU in each window",
            "durability": "settings as read back",
            "rate": "open loop" if any(value.cell.rate_per_s is not None for value in seen) else "",
        }
    return Publication(
        title=plan.title,
        tool="dbdyno" if is_here else "",
        systems={system.label: system.reference for system in plan.systems},
        tables=tuple(_table(*arm, levels) for arm, levels in arms.items()),
        disclosed=disclosed,
        is_record=not is_here,
    )


def _can_be_held(metric: str, workload: WorkloadPlan | None) -> bool:
    """Accepts a metric of publications if rules can apply it to this workload."""
    if metric == MEAN and workload is not None and workload.may_rest:
        return False  # a rest is in no latency
    if metric == QPS and workload is not None:  # statements are those that a label implies
        of_label, of_name = map(cells.statements_of, (workload.label, workload.name))
        if workload.script is not None or workload.options or of_label != of_name:
            return False
    return metric in METRICS.values() or metric.startswith(LATENCY)


def _table(system: str, of: Cell, levels: dict[int, dict[str, Printed]]) -> PublishedTable:
    """The metrics of a system over the load levels of otherwise equal cells."""
    rows = [levels[threads] for threads in sorted(levels)]
    rate = "" if of.rate_per_s is None else f"{of.rate_per_s:g}/s"
    at = {"setting": "" if of.setting == DEFAULT else of.setting, "rate": rate}
    return PublishedTable(
        system=system,
        workload=of.workload,
        at={name: value for name, value in at.items() if value},
        threads=tuple(sorted(levels)),
        values={
            metric: tuple(row[metric] for row in rows)
            for metric in rows[0]
            if all(metric in row for row in rows)
        },
    )
