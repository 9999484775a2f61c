"""In which order trials are run: drawn from the plan's seed, so that no one chooses it.

Drift of the machine would favour whoever always comes first. So the order of the systems is drawn
for a block, and the next block has it mirrored: AB then BA, or BA then AB
(docs/how-it-works/procedure.md), as comparisons have few blocks. Settings are drawn and mirrored in
the same way around that: all systems run one setting next to each other in time, then the next. The
order of the cells is drawn per block and is the same in each arm of one setting."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Final

from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.plan.plan import Plan, cells
from dbdyno.plan.settings import DEFAULT, setting_names
from dbdyno.stats.draw import draw


def trials_of(plan: Plan, run_id: str) -> list[Trial]:
    """Every trial of the plan in the order in which it is run: by block, arm and rung."""
    trials: list[Trial] = []
    for block in range(plan.design.blocks):
        whole = cell_order(plan, block)
        places = [
            (setting, label)
            for setting in setting_order(plan, block)
            for label in system_order(plan, block, setting)
        ]
        for position, (setting, label) in enumerate(places):
            ladder = [cell for cell in whole if cell.setting == setting]
            trials += [
                Trial(
                    run_id=run_id,
                    sequence=len(trials) + rung,
                    block=block,
                    position=position,
                    system=label,
                    cell=cell,
                    seed=draw(plan.seed, block, "requests", cell.key) >> 1,
                )
                for rung, cell in enumerate(ladder)
            ]
    return trials


def arms(trials: Iterable[Trial]) -> list[list[Trial]]:
    """The trials cut into arms, which follow each other: one system and setting in one block."""
    arm_of = attrgetter("block", "cell.setting", "system")
    return [list(arm) for _, arm in groupby(trials, key=arm_of)]


def setting_order(plan: Plan, block: int) -> list[str]:
    """The settings' names in the order of the block: drawn in even blocks, mirrored in odd."""
    return _mirrored(plan, block, setting_names(plan.settings), "setting")


def system_order(plan: Plan, block: int, setting: str = DEFAULT) -> list[str]:
    """The systems' labels under a setting: drawn in even blocks, mirrored in odd."""
    about = ("system",) if setting == DEFAULT else ("system", setting)
    return _mirrored(plan, block, [system.label for system in plan.systems], *about)


def cell_order(plan: Plan, block: int) -> list[Cell]:
    """The block's ladder: every cell once, in an order drawn for the block."""
    ladder = list(enumerate(cells(plan)))
    ladder.sort(key=lambda place: draw(plan.seed, block, "cell", place[0]))
    return [cell for _, cell in ladder]


def _mirrored(plan: Plan, block: int, names: list[str], *about: str) -> list[str]:
    couple = block - block % 2
    drawn = sorted(range(len(names)), key=lambda place: draw(plan.seed, couple, *about, place))
    return [names[place] for place in (drawn if block == couple else drawn[::-1])]


# Slices of load that show whether twice the generator's threads are faster; pure.
#
# Between two starts of a server more than 2 % change by themselves, so it takes one server:
# slices of one load over equal connections, by turns with the generator's usual threads and with
# twice as many, mirrored so that what drifts cancels. The highest load is nearest to the
# generator's limit, so each workload is asked for in that alone.


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
