"""Did all systems do the same work, and leave the rows that it must leave? (method.md 1.g)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.checks.invariant import Left, leaves
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan

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
        say(
            "{again} events were begun again after a deadlock or a lock wait, {share:.3%} of all "
            "(limit {limit:.1%}); the rate counts those that succeeded",
            again=again,
            share=share,
            limit=RETRIES_SHARE_MAX,
        ),
        say("use more rows or fewer connections, unless contention is what is compared"),
    )


def unequal_plans(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note: a system answers a kind of statement by another way than the baseline."""
    baseline = plan.systems[0].label
    ways = {
        m.trial.system: m.evidence.query_plans
        for m in measurements
        if m.failure is None and m.evidence.query_plans
    }
    wanted = ways.get(baseline, {})
    for system, found in ways.items():
        other = [kind for kind in wanted if kind in found and found[kind] != wanted[kind]]
        if not other:
            continue
        parts = [
            say(
                "{kind}: {baseline} {wanted}; {system} {found}",
                kind=kind,
                baseline=baseline,
                wanted=wanted[kind],
                system=system,
                found=found[kind],
            )
            for kind in other[:NAMED_MAX]
        ]
        yield Finding(
            check="unequal-plans",
            level=Level.NOTE,
            evidence=say(
                "{count} of {total} kinds of statements take another way: {parts}",
                count=len(other),
                total=len(wanted),
                parts=listed(parts, " | "),
            ),
            advice=say("part of the difference may be the optimizer's choice, not the engine's"),
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
        seen = (
            listed(
                say("{table} has {rows}", table=table, rows=rows)
                for table, rows in list(wrong.items())[:NAMED_MAX]
            )
            if wrong
            else say("as many, but others")
        )
        yield Finding(
            check="rows-not-kept",
            level=Level.VOID,
            evidence=say(
                "its workloads leave {wanted} rows in each table; at the run's end: {seen}",
                wanted=plan.dataset.rows,
                seen=seen,
            ),
            advice=say("the system lost, kept or changed rows that it should not: report that"),
            system=measurement.trial.system,
        )
