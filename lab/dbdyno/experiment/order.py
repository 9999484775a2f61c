"""In which order trials are run: drawn from the plan's seed, so that no one chooses it.

Drift of the machine would favour whoever always comes first. So the order of the systems is drawn
for a block, and the next block has it mirrored: AB then BA, or BA then AB (method.md 1.b, couples,
since comparisons have few blocks). Settings are drawn and mirrored in the same way around that: all
systems run one setting next to each other in time, then the next. The order of the cells is drawn
per block and is the same in each arm of one setting. The baseline's control trials are arms like
others, drawn and mirrored with them. They have one cell, on a fresh server, so that this cell comes
first in every arm of its setting: what ran before it would be a difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal, TypeVar

from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.plan.controls import KINDS, control_cell
from dbdyno.plan.plan import Plan, cells
from dbdyno.plan.settings import DEFAULT, setting_names
from dbdyno.stats.draw import draw

Arm = tuple[str, Literal["", "same", "planted"]]
"""A system's label, and which control it is, if it is one."""
T = TypeVar("T")


def trials_of(plan: Plan, run_id: str) -> list[Trial]:
    """Every trial of the plan in the order in which it is run: by block, arm and rung."""
    trials: list[Trial] = []
    for block in range(plan.design.blocks):
        whole = cell_order(plan, block)
        places = [
            (setting, arm)
            for setting in setting_order(plan, block)
            for arm in arm_order(plan, block, setting)
        ]
        for position, (setting, (label, control)) in enumerate(places):
            ladder = _ladder(plan, [cell for cell in whole if cell.setting == setting], control)
            trials += [
                Trial(
                    run_id=run_id,
                    sequence=len(trials) + rung,
                    block=block,
                    position=position,
                    system=label,
                    control=control,
                    cell=cell,
                    seed=draw(plan.seed, block, "requests", cell.key) >> 1,
                )
                for rung, cell in enumerate(ladder)
            ]
    return trials


def arms(trials: Iterable[Trial]) -> list[list[Trial]]:
    """The trials cut into arms, which follow each other: one system and setting in one block."""
    return [
        list(arm)
        for _, arm in groupby(trials, key=lambda t: (t.block, t.cell.setting, t.system, t.control))
    ]


def setting_order(plan: Plan, block: int) -> list[str]:
    """The settings' names in the order of the block: drawn in even blocks, mirrored in odd."""
    return _mirrored(plan, block, setting_names(plan.settings), "setting")


def arm_order(plan: Plan, block: int, setting: str = DEFAULT) -> list[Arm]:
    """The arms of a setting, the controls among them: drawn in even blocks, mirrored in odd."""
    about = ("system",) if setting == DEFAULT else ("system", setting)
    chosen: list[Arm] = [(system.label, "") for system in plan.systems]
    of_controls = control_cell(plan)
    if of_controls is not None and of_controls.setting == setting:
        chosen += [(plan.systems[0].label, kind) for kind in KINDS]
    return _mirrored(plan, block, chosen, *about)


def cell_order(plan: Plan, block: int) -> list[Cell]:
    """The block's ladder: every cell once, in an order drawn for the block."""
    ladder = list(enumerate(cells(plan)))
    ladder.sort(key=lambda place: draw(plan.seed, block, "cell", place[0]))
    return [cell for _, cell in ladder]


def _ladder(plan: Plan, whole: list[Cell], control: str) -> list[Cell]:
    """The cells of an arm in their order."""
    of_controls = control_cell(plan)
    if control:
        return [cell for cell in whole if cell == of_controls]
    if plan.procedure.restart == "cell":  # each has a fresh server anyway
        return whole
    return sorted(whole, key=lambda cell: cell != of_controls)


def _mirrored(plan: Plan, block: int, names: list[T], *about: str) -> list[T]:
    couple = block - block % 2
    drawn = sorted(range(len(names)), key=lambda place: draw(plan.seed, couple, *about, place))
    return [names[place] for place in (drawn if block == couple else drawn[::-1])]
