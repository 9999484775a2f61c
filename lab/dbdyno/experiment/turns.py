"""What is asked of a run to see whether twice the generator's threads are faster; pure.

Between two starts of a server more than 2 % change by themselves, so it takes one server: slices of
one load over equal connections, by turns with the generator's usual threads and with twice as many,
mirrored so that what drifts cancels. The highest load is nearest to the generator's limit, so each
workload is asked for in that alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import Plan, cells

ROUND: Final = (1, 2, 2, 1)
"""How many times the usual threads each slice has; two that follow each other are a pair."""
ROUNDS_MAX: Final = 4
SLICE_S_MAX: Final = 3.0
WINDOW_S_MIN: Final = 20.0
"""Slices of a shorter window are too short and too few to see 2 %; none are asked for."""
WARMUP_SHARE: Final = 0.2
"""Of a slice's length, before it: connections log in, and the first requests are slow."""
LOGINS_S: Final = 0.1
"""What a slice takes besides."""
CHILDREN_S: Final = 0.4
"""Starting and ending the engine's child twice."""


def slice_s(plan: Plan) -> float:
    """Seconds of one slice."""
    return min(SLICE_S_MAX, plan.trial.window_s / (2 * len(ROUND)))


def turns(plan: Plan) -> tuple[int, ...]:
    """What each slice has: two rounds or more, which together last a window at most."""
    rounds = int(plan.trial.window_s / (len(ROUND) * slice_s(plan)))
    return ROUND * min(ROUNDS_MAX, rounds)


def highest_loads(
    plan: Plan, setting: str | None = None, without: Iterable[str] = ()
) -> list[Cell]:
    """Of each workload the closed loop with the most connections, if there are two or more.

    Args:
        setting: only its cells; None for any.
        without: keys of cells that cannot be run.
    """
    if plan.trial.window_s < WINDOW_S_MIN:
        return []
    refused, highest = set(without), dict[str, Cell]()
    for cell in sorted(cells(plan), key=lambda one: one.threads):
        is_asked = setting in (None, cell.setting) and cell.key not in refused
        if is_asked and cell.rate_per_s is None and cell.threads > 1:
            highest[cell.workload] = cell
    return list(highest.values())


def seconds_of_turns(plan: Plan) -> float:
    """How long it takes for all workloads; before the turns each has a slice that warms up."""
    slices_s = (1 + len(turns(plan))) * (slice_s(plan) * (1 + WARMUP_SHARE) + LOGINS_S)
    return len(highest_loads(plan)) * (slices_s + CHILDREN_S)
