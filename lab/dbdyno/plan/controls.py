"""Control trials, which show that the method works: where they run, and why there may be none.

A comparison of five blocks or more runs the baseline twice more in each block, in the cell that
comes first in that block: as it is (``same``), where no difference may be found, and with a
slowdown put in on purpose (``planted``), which must be found (docs/how-it-works/controls.md). Both
use a second data directory of the baseline's, loaded by itself, as every other system of the
comparison has one of its own."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import BLOCKS_CONTROLLED, Plan, cells, comparisons
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import rests

Kind = Literal["same", "planted"]
KINDS: Final[tuple[Kind, ...]] = ("same", "planted")
SHARE: Final = 0.02
"""Of a planted trial's window the load stands still, so that its throughput is 1 - SHARE."""
TRUTH: Final = {"": 1.0, "same": 1.0, "planted": 1 - SHARE}
"""What a trial's throughput is of the baseline's, as far as its kind of control decides that."""
PERIOD_S_MAX: Final = 10.0
"""Between two standstills: each lasts 0.2 s, which no check takes for a stall of the server."""


class WhyNone(StrEnum):
    """Why a plan has no controls."""

    NOTHING = "nothing"  # is compared: one system under one setting
    TIME = "time"  # the blocks that fit into it are all wanted for the comparison
    DECLINED = "declined"
    FEW_BLOCKS = "few blocks"
    ENDPOINT = "endpoint"  # the baseline is somebody else's, and has one set of tables
    OPEN_LOOP = "open loop"  # or think times: no cell shows as much less throughput as was planted
    DATA_KEPT = "data kept"  # a directory that fewer trials ran on is no longer the same


def why_none(plan: Plan) -> WhyNone | None:
    """Why the plan has no controls; None if it has."""
    reasons = {
        WhyNone.NOTHING: not comparisons(plan),
        WhyNone.TIME: plan.design.time_s is not None,
        WhyNone.DECLINED: not plan.design.controls,
        WhyNone.FEW_BLOCKS: plan.design.blocks < BLOCKS_CONTROLLED,
        WhyNone.ENDPOINT: plan.systems[0].is_endpoint,
        WhyNone.DATA_KEPT: plan.procedure.fresh_data == "once",
        WhyNone.OPEN_LOOP: not _closed(plan),
    }
    return next((why for why, holds in reasons.items() if holds), None)


def control_cells(plan: Plan) -> list[Cell]:
    """The cells among which each block's order chooses the one of its controls: the closed loops of
    the first setting; none if the plan has no controls."""
    return [] if why_none(plan) is not None else _closed(plan)


def control_system(plan: Plan) -> SystemPlan:
    """The baseline on its second data directory; its label is none that a plan can give."""
    baseline = plan.systems[0]
    return baseline.model_copy(update={"label": directory_of(baseline.label, "same")})


def directory_of(label: str, control: str) -> str:
    """The label of the data directory that a trial runs on: both controls share the second."""
    return f"{label} (control)" if control else label


def standstill_period_s(window_s: float) -> float:
    """Seconds from one standstill to the next; a window has a whole number of them."""
    return window_s / max(1, -(-window_s // PERIOD_S_MAX))


def _closed(plan: Plan) -> list[Cell]:
    """A connection that rests loses less than the share of a standstill, or more."""
    closed = [
        cell
        for cell in cells(plan)
        if cell.rate_per_s is None and not rests(plan.workloads, cell.workload)
    ]
    return [cell for cell in closed if cell.setting == closed[0].setting]
