"""As many blocks as fit into a budget of time.

Only whole blocks are dropped: each of them compares all systems in all cells, so a plan of fewer is
the same experiment with wider intervals, and what is given up for time is not chosen by its result.
"""

from __future__ import annotations

from bisect import bisect_right

from dbdyno.errors import UsageError
from dbdyno.experiment.forecast import seconds_expected
from dbdyno.plan.plan import Plan


def blocks_that_fit(plan: Plan, budget_s: float) -> int:
    """The plan's blocks that fit into so many seconds, from 0 to all of them."""
    return bisect_right(
        range(1, plan.design.blocks + 1),
        budget_s,
        key=lambda blocks: seconds_expected(_with_blocks(plan, blocks)),
    )


def fitted(plan: Plan) -> Plan:
    """The plan with the blocks that its budget has time for; without a budget, the plan itself.

    Raises:
        UsageError: not one block fits.
    """
    budget_s = plan.design.budget_s
    if budget_s is None:
        return plan
    blocks = blocks_that_fit(plan, budget_s)
    if blocks == 0:
        raise UsageError(
            "the budget is too short for a single block",
            wanted=f"{seconds_expected(_with_blocks(plan, 1)) / 60:.1f} min for one block of all"
            " systems and cells, their datasets included",
            found=f"{budget_s / 60:.1f} min",
            hint="ask for fewer cells or a shorter window, or use a smaller scale of the plan",
        )
    return _with_blocks(plan, blocks)


def _with_blocks(plan: Plan, blocks: int) -> Plan:
    return plan.model_copy(update={"design": plan.design.model_copy(update={"blocks": blocks})})
