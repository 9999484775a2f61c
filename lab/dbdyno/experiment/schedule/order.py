"""Order of trials, drawn from the plan's seed, so nobody chooses it.

Drift of the machine would favour a system that always comes first. So the order of the systems is
drawn for a block and mirrored in the next: AB then BA, or BA then AB
(docs/how-it-works/procedure.md), as comparisons have few blocks. The order of settings is drawn and
mirrored in the same way: all systems run one setting close in time, then the next. The order of the
cells is drawn per block and is the same in each arm of a setting.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from dbdyno.experiment.schedule.pilot import foreseen
from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.plan.plan import Plan, cells
from dbdyno.plan.settings import DEFAULT, setting_names
from dbdyno.stats.draw import draw


def trials_of(plan: Plan, run_id: str) -> list[Trial]:
    """Every trial of the plan in the order in which it is run: by block, arm and rung.

    Before a pilot, its rates are made up.
    """
    plan, trials = foreseen(plan), list[Trial]()
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
    """Consecutive trials grouped into arms: a system and setting in a block."""
    arm_of = attrgetter("block", "cell.setting", "system")
    return [list(arm) for _, arm in groupby(trials, key=arm_of)]


def setting_order(plan: Plan, block: int) -> list[str]:
    """The settings' names in the order of the block: drawn in even blocks, mirrored in odd."""
    return _mirrored(plan.seed, block, setting_names(plan.settings), "setting")


def system_order(plan: Plan, block: int, setting: str = DEFAULT) -> list[str]:
    """The systems' labels under a setting: drawn in even blocks, mirrored in odd."""
    about = ("system",) if setting == DEFAULT else ("system", setting)
    return _mirrored(plan.seed, block, [system.label for system in plan.systems], *about)


def cell_order(plan: Plan, block: int) -> list[Cell]:
    """The block's ladder: every cell once, in an order drawn for the block."""
    ladder = list(enumerate(cells(plan)))
    ladder.sort(key=lambda place: draw(plan.seed, block, "cell", place[0]))
    return [cell for _, cell in ladder]


def _mirrored(seed: int, block: int, names: list[str], *about: str) -> list[str]:
    couple = block - block % 2
    drawn = sorted(range(len(names)), key=lambda place: draw(seed, couple, *about, place))
    return [names[place] for place in (drawn if block == couple else drawn[::-1])]
