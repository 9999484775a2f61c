"""Checks of the design over all trials: the plan was followed, and the systems took turns.
(docs/reference/findings.md)

Blocks cancel the machine's changes over hours only if the arms of a block lie next to each other.
They may lie apart in a run which was interrupted in the middle of a block, or put together from
logs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

import numpy as np

from dbdyno.judge.checks.course import UPTIME_SHORT_S
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.plan import Plan, cells, system_pairs
from dbdyno.stats.distributions import line

WINDOW_S_MIN: Final = 60.0
"""In a shorter window the noise within a trial shows beside the noise of restarts."""
NAMED_MAX: Final = 5
"""Most trials named by a finding."""


def unequal_load(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Void: systems of one block were given different requests (docs/reference/findings.md, same
    work).

    With equal seed, distribution of rows and way of sending statements the streams are equal. All
    trials of a differing group are void: there is no way to tell the right trial.
    """

    def place(measurement: Measurement) -> tuple[int, str]:
        return measurement.trial.block, measurement.trial.cell.key

    complete = sorted((m for m in measurements if m.failure is None), key=place)
    for _, members in groupby(complete, key=place):
        group = list(members)
        loads = {measurement.trial.system: _load(measurement) for measurement in group}
        if len(set(loads.values())) == 1:
            continue
        for measurement in group:
            block = measurement.trial.block + 1
            yield on_trial(measurement, "unequal-load", Level.VOID, block=block, loads=loads)


def imported_run(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: another tool measured it, so the grounds of a verdict were not observed."""
    yield Finding(check="imported-run", level=Level.DOUBTFUL)


def incomplete_run(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: planned trials are missing, so the run did not end as planned.

    In a run until decided, blocks which were not begun are not missing.
    """
    ended = (m.trial for m in measurements if m.failure is None or m.impossible)
    done = {(trial.block, trial.system, trial.cell) for trial in ended}
    may_stop = plan.design.stop == "decided" and measurements
    begun = max((measurement.trial.block for measurement in measurements), default=-1) + 1
    planned = [
        (block, system.label, cell)
        for block in range(begun if may_stop else plan.design.blocks)
        for system in plan.systems
        for cell in cells(plan)
    ]
    missing = [place for place in planned if place not in done]
    if not missing:
        return
    named = [
        {"block": block + 1, "system": label, "cell": cell.model_dump()}
        for block, label, cell in missing[: NAMED_MAX + 1]
    ]
    yield Finding(check="incomplete-run", level=Level.DOUBTFUL, values={"trials": named})


def uncontrolled_server(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a system's servers are somebody else's, an endpoint."""
    for system in known_of(plan)[Fact.OTHERS]:
        own = [m for m in measurements if m.trial.system == system]
        if not own:
            continue
        values = {
            "blocks": len({m.trial.block for m in own}),
            "is_seen": all(m.server.pid for m in own if m.failure is None),
            "balanced": sorted({address for m in own for address in m.server.balanced}),
        }
        yield Finding(
            check="uncontrolled-server", level=Level.DOUBTFUL, values=values, system=system
        )


def lacks_control(plan: Plan) -> bool:
    """True if several systems are compared and all differ: a baseline named twice is a control."""
    kinds = {(s.reference, tuple(sorted(s.settings.items()))) for s in plan.systems}
    return len(plan.systems) > 1 and len(kinds) == len(plan.systems)


def _load(measurement: Measurement) -> tuple[int, str, bool]:
    """Seed, distribution of rows, and whether statements are prepared."""
    engine = measurement.engine
    return measurement.trial.seed, engine.distribution, engine.prepared_statements


BLOCKS_MIN_OF_ORDER: Final = 2
PAUSE_S_MIN: Final = 1800.0
PAUSE_FACTOR: Final = 10.0
"""A finding from this length of a pause within a block on, if so much longer than usual."""
TRIALS_MIN: Final = 8
DRIFT_MIN: Final = 0.02
DRIFT_P_MAX: Final = 0.01


def sequential_design(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: all trials of a system came before, or after, all of the baseline's."""
    places: dict[str, list[int]] = {}
    for m in measurements:
        if m.failure is None:
            places.setdefault(m.trial.system, []).append(m.trial.sequence)
    for baseline, system in system_pairs(plan):
        blocks = {m.trial.block for m in measurements if m.trial.system == system}
        if not {baseline, system} <= places.keys() or len(blocks) < BLOCKS_MIN_OF_ORDER:
            continue
        own, its = places[system], places[baseline]
        if max(own) > min(its) and max(its) > min(own):
            continue
        yield Finding(
            check="sequential-design",
            level=Level.DOUBTFUL,
            values={"system": system, "baseline": baseline},
            system=system,
        )


def split_block(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a block was broken off, by a pause or by a server restart."""
    yield from _paused(measurements)
    known = known_of(plan)
    for system in known[Fact.OTHERS]:
        yield from _restarted([m for m in measurements if m.trial.system == system])
    if plan.procedure.restart == "block":
        yield from _started_again([m for m in measurements if m.trial.system in known[Fact.OURS]])


def _started_again(measurements: Sequence[Measurement]) -> Iterator[Finding]:
    """Arms with their cells of a block on several servers, while another arm's ran on one."""
    servers: dict[tuple[int, str], dict[str, set[int]]] = {}
    for m in measurements:
        if m.failure is None and m.server.pid:
            of_block = servers.setdefault((m.trial.block, m.trial.cell.setting), {})
            of_block.setdefault(m.trial.system, set()).add(m.server.pid)
    for (block, _), of_block in servers.items():
        least = min(map(len, of_block.values()))
        for arm, pids in of_block.items():
            if len(pids) > least:
                yield Finding(
                    check="split-block",
                    level=Level.DOUBTFUL,
                    values={"case": "started-again", "arm": arm, "block": block + 1},
                )


def _restarted(measurements: Sequence[Measurement]) -> Iterator[Finding]:
    """Blocks of an endpoint whose server is younger than the time since the trial before.

    An uptime that never moves proves nothing.
    """
    timed = [(began_s, m) for m in measurements if (began_s := m.started_s) is not None]
    timed.sort(key=lambda one: one[0])
    for (first_s, before), (began_s, after) in pairwise(timed):
        uptime_s, since_s = after.server.uptime_s, began_s + after.load_s - first_s
        if before.trial.block != after.trial.block or not after.server.status.get("Uptime"):
            continue
        if uptime_s is not None and uptime_s < since_s - UPTIME_SHORT_S:
            yield Finding(
                check="split-block",
                level=Level.DOUBTFUL,
                values={
                    "case": "restarted",
                    "system": after.trial.system,
                    "block": after.trial.block + 1,
                    "uptime_s": uptime_s,
                    "since_s": since_s,
                },
                system=after.trial.system,
            )


def _paused(measurements: Sequence[Measurement]) -> Iterator[Finding]:
    """Blocks with a long pause between their trials."""
    pauses: dict[int, list[float]] = {}
    for block in dict.fromkeys(m.trial.block for m in measurements):
        own = [m for m in measurements if m.trial.block == block and m.failure is None]
        pauses[block] = _pauses(own)
    known = [pause for block_pauses in pauses.values() for pause in block_pauses]
    usual_s = statistics.median(known) if known else 0.0
    limit_s = max(PAUSE_S_MIN, PAUSE_FACTOR * usual_s)
    for block, block_pauses in pauses.items():
        if block_pauses and max(block_pauses) > limit_s:
            yield Finding(
                check="split-block",
                level=Level.DOUBTFUL,
                values={
                    "case": "paused",
                    "hours": max(block_pauses) / 3600,
                    "block": block + 1,
                    "usual_s": usual_s,
                },
            )


def machine_drift(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note: the rates of all systems rose or fell together over the run; blocks cancel it."""
    points = _off_their_means(measurements)
    if len(points) < TRIALS_MIN:
        return
    places, rates = np.array(points).T
    if np.ptp(places) == 0:
        return
    fit = line(places, rates)
    change = math.expm1(fit.slope * float(np.ptp(places)))
    if abs(change) <= DRIFT_MIN or fit.chance >= DRIFT_P_MAX:
        return
    values = {"change": change, "trials": len(points), "chance": fit.chance}
    yield Finding(check="machine-drift", level=Level.NOTE, values=values)


def _off_their_means(measurements: Sequence[Measurement]) -> list[tuple[float, float]]:
    """Place in the run, and logarithm of the rate against the mean of its system, cell, machine."""
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for m in measurements:
        if m.failure is None and m.events and m.window_s > 0:
            point = (float(m.trial.sequence), math.log(m.events / m.window_s))
            of = (m.trial.system, m.trial.cell.key, m.machine)
            groups.setdefault(of, []).append(point)
    return [
        (place, rate - statistics.fmean(r for _, r in group))
        for group in groups.values()
        for place, rate in group
    ]


def _pauses(trials: Sequence[Measurement]) -> list[float]:
    """Seconds from the end of each trial to the start of the next, where both have a time."""
    spans = sorted(
        (began_s, began_s + m.load_s) for m in trials if (began_s := m.started_s) is not None
    )
    return [later[0] - earlier[1] for earlier, later in pairwise(spans)]


def sampled_stacks(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: the servers' stacks were sampled, which took CPU and time from them."""
    sampled = sum(m.profile is not None or m.states is not None for m in measurements)
    if sampled:
        yield Finding(check="sampled-stacks", level=Level.DOUBTFUL, values={"sampled": sampled})
