"""From a time to a design: the time gives the warm-up, and the first blocks decide the rest.

The first blocks of the run measure scatter and costs, and count like all others: their windows have
another length, so their ratios are more or less uncertain but not shifted, and Student's t errs no
more for it at 5 % and below (Bakirov and Székely 2005; docs/how-it-works/time.md). The choice
depends on scatter, costs and the number of machines, never on the system ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.plan.plan import (
    BLOCKS_MIN,
    BLOCKS_TIMED,
    ChosenDesign,
    Plan,
    ProcedurePlan,
    TrialPlan,
    cells,
    comparisons,
)
from dbdyno.plan.settings import setting_names
from dbdyno.stats.design import (
    FIRST_BLOCKS,
    START_S_USUAL,
    TRIAL_S,
    Block,
    Costs,
    Question,
    Scatter,
    Windows,
    first_windows,
    narrowest,
    scatter_of,
)
from dbdyno.stats.distributions import Numbers

INTERRUPTION_S: Final = 60.0
INTERRUPTION_TIMES: Final = 10
"""A pause longer than both, in seconds and in usual gaps, is an interruption."""


def begun(plan: Plan, machines: int = 1) -> Plan:
    """The plan with the times of its first blocks; unchanged without a time or after the choice.

    Args:
        machines: number of machines that run blocks in parallel.
    """
    design, block = plan.design, _block(plan)
    if design.time_s is None or design.chosen is not None:
        return plan
    windows = first_windows(design.time_s, block, BLOCKS_MIN)
    block_s = block.seconds(windows.load_s, Costs(START_S_USUAL, TRIAL_S))
    blocks = max(BLOCKS_MIN, min(BLOCKS_TIMED, machines * int(design.time_s / block_s)))
    first = {
        "trial": TrialPlan(warmup_s=windows.warmup_s, window_s=windows.window_s),
        "design": design.model_copy(update={"blocks": blocks}),
    }
    return plan.model_copy(update=first)


def chosen(plan: Plan, first: Sequence[Measurement], machines: int = 1) -> ChosenDesign:
    """The design with the narrowest interval in the plan's time.

    Args:
        plan: plan of the first blocks, from `begun`.
        first: all measurements of the first blocks.
        machines: number of machines that run blocks in parallel.
    """
    sound = [measured for measured in first if measured.failure is None and measured.events > 0]
    arms: dict[tuple[str, str], list[Numbers]] = {}
    for measured in sound:
        whole = [i for i in measured.measured if i.end_s - i.start_s > 0.5]
        rates = np.array([i.events / (i.end_s - i.start_s) for i in whole])
        arms.setdefault((measured.trial.system, measured.trial.cell.key), []).append(rates)
    scatter, costs = scatter_of(list(arms.values())), _costs(plan.procedure, first)
    return chosen_by(plan, scatter, costs, _spent_s(first, costs), machines)


def chosen_by(
    plan: Plan, scatter: Scatter, costs: Costs, spent_s: float | None = None, machines: int = 1
) -> ChosenDesign:
    """The design with the narrowest interval, for a machine of this scatter and these costs.

    Args:
        plan: plan of the first blocks, from `begun`.
        spent_s: seconds of the first blocks; None for an estimate from `costs`.
        machines: number of machines that run blocks in parallel.
    """
    if plan.design.time_s is None:
        raise ValueError("the plan has no time")
    windows, block = Windows(plan.trial.warmup_s, plan.trial.window_s), _block(plan)
    if spent_s is None:
        rounds = math.ceil(FIRST_BLOCKS / machines)
        spent_s = rounds * block.seconds(windows.load_s, costs)
    left_s = plan.design.time_s - spent_s
    question = question_of(plan, questions_of(plan, cells(plan)))
    design = narrowest(left_s, block, windows, scatter, costs, BLOCKS_TIMED, machines, question)
    return ChosenDesign(
        warmup_s=design.windows.warmup_s,
        window_s=design.windows.window_s,
        blocks=design.blocks,
        start_noise=scatter.start,
        second_noise=scatter.second,
        block_s=design.block_s,
    )


def questions_of(plan: Plan, every: Sequence[Cell]) -> list[Question]:
    """The questions of the plan's largest comparison: its workloads in their settings, then its
    cells.

    Rates around a limit of latency are one cell together.
    """
    is_rung = plan.load.is_rung
    judged = [cell for cell in every if not is_rung(cell.rate_per_s)]
    sought = (cell for cell in every if is_rung(cell.rate_per_s))
    limits = [*dict.fromkeys(cell.model_copy(update={"rate_per_s": None}) for cell in sought)]
    families = [one.cells(family) for one in comparisons(plan) for family in (judged, limits)]
    largest = max(families, key=len, default=())
    ladders = len({cell.ladder for cell in largest})
    each_cell = Question(max(1, len(largest)))
    if 0 < ladders < each_cell.intervals and all(cell.rate_per_s is None for cell in largest):
        return [Question(ladders, round(each_cell.intervals / ladders)), each_cell]
    return [each_cell]


def question_of(plan: Plan, questions: Sequence[Question]) -> Question:
    """The question at the level at which the plan's run is to be decided."""
    is_by_workload = plan.design.asks_for_workloads(questions[-1].intervals)
    return questions[0] if is_by_workload else questions[-1]


def _block(plan: Plan) -> Block:
    trials = len(plan.systems) * len(cells(plan))
    if plan.procedure.restart == "block":
        return Block(trials, len(plan.systems) * len(setting_names(plan.settings)))
    return Block(trials, trials)


class _Span(NamedTuple):
    """A trial's load on the clock, the place of its arm in the block, and its machine."""

    block: int
    begin_s: float
    end_s: float
    position: int
    machine: str


def _spans(first: Iterable[Measurement]) -> list[_Span]:
    """Block by block, as they ran: on several machines blocks run beside each other."""
    return sorted(
        _Span(one.trial.block, begin_s, begin_s + one.load_s, one.trial.position, one.machine)
        for one in first
        if (begin_s := one.started_s) is not None
    )


def _costs(procedure: ProcedurePlan, first: Sequence[Measurement]) -> Costs:
    """Seconds of a start and of a trial beyond its load, from gaps within blocks.

    Gaps between blocks may hold a load or a pause. The shortest gap counts: the first restores wait
    for a disk still busy with earlier writes (21 s instead of 2 s later), and must not make all
    blocks look so dear.
    """
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for before, after in pairwise(_spans(one for one in first if one.window_s > 0)):
        if before.block != after.block:
            continue
        same = before.position == after.position
        gap_s = max(0.0, after.begin_s - before.end_s)
        gaps[same and procedure.restart == "block"].append(gap_s)
    start_s = min(gaps[False], default=START_S_USUAL)
    trial_s = min(gaps[True], default=min(start_s, TRIAL_S))
    return Costs(start_s, trial_s)


def _spent_s(first: Sequence[Measurement], costs: Costs) -> float | None:
    """Seconds from the beginning of the first trial to the end of the last; None without trials.

    A run may have been interrupted and resumed the next day: a pause far longer than the usual gap
    between trials here counts as a usual gap. A pause before a machine's first trial is its set-up,
    which comes on top of the time.
    """
    spans = sorted(_spans(first), key=lambda span: span.begin_s)
    usual_s = costs.start_s
    spent_s, until_s = 0.0, spans[0].begin_s if spans else 0.0
    set_up: set[str] = set()
    for span in spans:
        pause_s = max(0.0, span.begin_s - until_s) if span.machine in set_up else 0.0
        if pause_s > max(INTERRUPTION_S, INTERRUPTION_TIMES * usual_s):
            pause_s = usual_s
        spent_s += pause_s + max(0.0, span.end_s - max(span.begin_s, until_s))
        until_s = max(until_s, span.end_s)
        set_up.add(span.machine)
    return spent_s if spans else None
