"""Equality of the systems' work: same rows and state before it, and the right rows after it.
(docs/reference/findings.md)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.checks.counts import Left, leaves
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan, system_pairs

RETRIES_SHARE_MAX: Final = 0.001
NAMED_MAX: Final = 3


def retries(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful above 0.1 % of the events, else a note: events were begun again (deadlocks)."""
    again = sum(interval.restarts for interval in measurement.measured)
    if again == 0:
        return None
    share = again / (again + measurement.events)
    return on_trial(
        measurement,
        "retries",
        Level.DOUBTFUL if share > RETRIES_SHARE_MAX else Level.NOTE,
        events=again,
        share=share,
        limit=RETRIES_SHARE_MAX,
    )


def unequal_plans(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note: a system answers a kind of statement by another way than the baseline."""
    ways = {
        m.trial.system: m.evidence.query_plans
        for m in measurements
        if m.failure is None and m.evidence.query_plans
    }
    for baseline, system in system_pairs(plan):
        wanted, seen = ways.get(baseline, {}), ways.get(system, {})
        other = [kind for kind in wanted if kind in seen and seen[kind] != wanted[kind]]
        if not other:
            continue
        named = {kind: {baseline: wanted[kind], system: seen[kind]} for kind in other[:NAMED_MAX]}
        yield Finding(
            check="unequal-plans",
            level=Level.NOTE,
            values={"differing": len(other), "kinds": len(wanted), "plans": named},
            system=system,
        )


def rows_not_kept(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Void: after its last trial a system held other rows than its workloads can leave."""
    for measurement in measurements:
        evidence = measurement.evidence
        if not evidence.rows_after:
            continue
        left = leaves(plan)
        wrong = {
            table: rows
            for table, rows in evidence.rows_after.items()
            if left is not Left.UNKNOWN and rows != plan.dataset.rows
        }
        changed = left is Left.ALL_ROWS and evidence.dataset_after != measurement.dataset
        if not wrong and not changed:
            continue
        seen = dict(list(wrong.items())[:NAMED_MAX])
        yield Finding(
            check="rows-not-kept",
            level=Level.VOID,
            values={"rows": plan.dataset.rows, "tables": seen},
            system=measurement.trial.system,
        )


def script_check(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the script's check found rows against its rules. Doubtful: it could not be asked."""
    said = measurement.evidence.script_check
    if said in ("", "holds"):
        return None
    is_broken = said == "broken"
    return on_trial(
        measurement,
        "script-check",
        Level.VOID if is_broken else Level.DOUBTFUL,
        reason=said,
    )


def cell_cannot_run(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: this system cannot have the setting, or cannot bear the load; it was not measured."""
    if not measurement.impossible:
        return None
    return on_trial(
        measurement,
        "cell-cannot-run",
        Level.VOID,
        reason=measurement.failure,
    )


def step_undone(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: a step of the procedure could not be taken, or not to its end."""
    undone = [step for step in measurement.procedure if not step.done]
    if not undone:
        return None
    return on_trial(
        measurement,
        "step-undone",
        Level.DOUBTFUL,
        steps={step.name: step.detail for step in undone},
    )


def unequal_dataset(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Void: a system held other rows than were sent to it, or than the first that has all of them
    (docs/reference/findings.md, dataset equality).

    Digests were taken after the rows had been loaded; a system without a digest is not judged.
    """
    held: dict[str, set[str]] = {}
    short: dict[str, dict[str, int]] = {}
    for measurement in measurements:
        if measurement.failure is None and measurement.dataset:
            label = measurement.trial.system
            held.setdefault(label, set()).add(measurement.dataset)
            short.setdefault(label, {}).update(measurement.rows_short)
    digests = {digest for rows in held.values() for digest in rows}
    if len(digests) <= 1 or plan.systems[0].label not in held:
        return
    labels = (system.label for system in plan.systems)
    baseline = next((one for one in labels if one in held and not short[one]), "")
    wanted = held.get(baseline, set())
    for system, rows in held.items():
        if not short[system] and rows == wanted and len(rows) == 1:
            continue
        of_digest = {"baseline": baseline, "digests_of_baseline": sorted(wanted)}
        seen = dict(list(short[system].items())[:NAMED_MAX])
        about = (
            {"case": "short", "tables": seen, "sent": plan.dataset.rows}
            if seen
            else {"case": "digest", "digests": sorted(rows), **of_digest}
        )
        yield Finding(
            check="unequal-dataset",
            level=Level.VOID,
            values={"system": system, **about},
            system=system,
        )
