"""From a time to a design: it decides the warm-up, and what the first blocks show decides the rest.

A block's ratio scatters from start to start of the servers and from second to second of a window,
and each start costs time. Short windows give more blocks, long ones steadier ones; which gives the
narrowest interval depends on the machine, so the first blocks of the run measure it. They count
like all others: their windows are of another length, which makes their ratios more or less
uncertain but shifts none, and Student's t errs no more for it at 5 % and below (Bakirov and Székely
2005; docs/how-it-works/time.md). What is chosen depends on scatter, costs and the number of
machines, never on which system was ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import (
    BLOCKS_MIN,
    BLOCKS_TIMED,
    ChosenDesign,
    Plan,
    TrialPlan,
    cells,
)
from dbdyno.plan.settings import setting_names
from dbdyno.stats.distributions import student_quantile

Rates = npt.NDArray[np.float64]

FIRST_BLOCKS: Final = 2
"""The least that show how much starts scatter; their orders of systems mirror each other."""
FIRST_WARMUP_S: Final = 4.0
FIRST_WINDOW_S: Final = 10.0
"""Servers begin unevenly for some seconds, and how that ends shows in no shorter window: with 4 s
more blocks fit, but the intervals, which allow for warm-ups, are wider (docs/how-it-works/time.md).
"""
WINDOW_STEP: Final = 1.25
"""From one length that is considered to the next; nearer ones differ by nothing that matters."""
START_NOISE_USUAL: Final = 0.03
START_NOISE_WEIGHT: Final = 2
"""Two blocks say little about starts, so what is usual counts like so many differences more."""
START_NOISE_MIN: Final = 0.005
START_S_USUAL: Final = 5.0
TRIAL_S: Final = 1.5
"""What a start and a trial take beyond their load, before any was measured."""
INTERRUPTION_S: Final = 60.0
INTERRUPTION_TIMES: Final = 10
"""A pause between trials is an interruption beyond both: that long, so often what is usual."""


def begun(plan: Plan, machines: int = 1) -> Plan:
    """The plan with what its first blocks run; as it is where it has no time or has chosen.

    Args:
        machines: how many run blocks beside each other.
    """
    if plan.design.time_s is None or plan.design.chosen is not None:
        return plan
    # A short time is for the three blocks that a verdict takes, and theirs are the trials' shares.
    share_s = plan.design.time_s / ((BLOCKS_MIN + 1) * _trials_a_block(plan))
    guess = ChosenDesign(
        warmup_s=round(max(1.0, min(FIRST_WARMUP_S, 0.25 * share_s)), 1),
        window_s=round(max(2.0, min(FIRST_WINDOW_S, 0.4 * share_s)), 1),
        blocks=BLOCKS_MIN,
        start_noise=START_NOISE_USUAL,
        second_noise=0.0,
        block_s=0.0,
    )
    costs = Costs(START_S_USUAL, TRIAL_S)
    block_s = _block_s(plan, guess.warmup_s + guess.window_s, costs)
    blocks = max(BLOCKS_MIN, min(BLOCKS_TIMED, machines * int(plan.design.time_s / block_s)))
    whole = with_chosen(plan, guess.model_copy(update={"blocks": blocks}))
    design = whole.design.model_copy(update={"chosen": None})
    return whole.model_copy(update={"design": design})


def with_chosen(plan: Plan, chosen: ChosenDesign | None) -> Plan:
    """The plan with the warm-up, window and blocks that its run chose; as it is without them."""
    if chosen is None:
        return plan
    trial = TrialPlan(warmup_s=chosen.warmup_s, window_s=chosen.window_s)
    design = plan.design.model_copy(update={"chosen": chosen, "blocks": chosen.blocks})
    return plan.model_copy(update={"trial": trial, "design": design})


class Costs(NamedTuple):
    """Seconds that a trial takes beyond its load.

    Attributes:
        start_s, trial_s: of a trial after a start of the server, and of one on a running server.
    """

    start_s: float
    trial_s: float


class Scatter(NamedTuple):
    """What the first blocks showed, as standard deviations of ln throughput.

    Attributes:
        start: from start to start, beyond what the seconds of a window explain.
        second: of one second, as it counts in the mean of many.
    """

    start: float
    second: float

    def variance(self, window_s: float) -> float:
        """Of one system's ln throughput in one trial."""
        return self.start**2 + self.second**2 / window_s


def chosen(plan: Plan, first: Sequence[Measurement], machines: int = 1) -> ChosenDesign:
    """The design with the narrowest interval in the plan's time.

    Args:
        plan: as `begun` gives it.
        first: all that the first blocks measured.
        machines: how many run blocks beside each other.
    """
    sound = [one for one in first if one.failure is None and one.events > 0]
    arms: dict[tuple[str, str], list[Rates]] = {}
    for one in sound:
        whole = [i for i in one.measured if i.end_s - i.start_s > 0.5]
        rates = np.array([i.events / (i.end_s - i.start_s) for i in whole])
        arms.setdefault((one.trial.system, one.trial.cell.key), []).append(rates)
    scatter, costs = scatter_of(list(arms.values())), _costs(plan, first)
    return narrowest(plan, scatter, costs, _spent_s(first, costs), machines)


def narrowest(
    plan: Plan, scatter: Scatter, costs: Costs, spent_s: float | None = None, machines: int = 1
) -> ChosenDesign:
    """The window, and the blocks that then fit into the time, with the narrowest interval.

    Args:
        plan: as `begun` gives it.
        spent_s: what the first blocks took; what they should take by `costs` if it is not known.
        machines: how many run blocks beside each other; each of them has the time that is left.
    """
    if plan.design.time_s is None:
        raise ValueError("the plan has no time")
    window_s, warmup_s = plan.trial.window_s, plan.trial.warmup_s
    if spent_s is None:
        rounds = math.ceil(FIRST_BLOCKS / machines)
        spent_s = rounds * _block_s(plan, warmup_s + window_s, costs)
    left_s = plan.design.time_s - spent_s

    def blocks_of(length_s: float) -> int:
        each = int(left_s / _block_s(plan, warmup_s + length_s, costs))
        return min(BLOCKS_TIMED, FIRST_BLOCKS + machines * max(1, each))

    def half_width(length_s: float) -> float:
        blocks = blocks_of(length_s)
        later = (blocks - FIRST_BLOCKS) * scatter.variance(length_s)
        deviation = math.sqrt(2 * (FIRST_BLOCKS * scatter.variance(window_s) + later)) / blocks
        return student_quantile(0.975, blocks - 1) * deviation

    lengths = [window_s]  # a shorter one would hide from the check for warm-ups what the first show
    while _block_s(plan, warmup_s + lengths[-1] * WINDOW_STEP, costs) <= left_s:
        lengths.append(float(f"{lengths[-1] * WINDOW_STEP:.2g}"))
    length_s = min(lengths, key=half_width)
    return ChosenDesign(
        warmup_s=warmup_s,
        window_s=length_s,
        blocks=blocks_of(length_s),
        start_noise=scatter.start,
        second_noise=scatter.second,
        block_s=_block_s(plan, warmup_s + length_s, costs),
    )


def scatter_of(arms: Sequence[Sequence[Rates]]) -> Scatter:
    """The scatter that trials show.

    Args:
        arms: of each system and cell the rates of the whole seconds of each trial.
    """
    second = _second_noise([rates for arm in arms for rates in arm])
    logs = [[math.log(rates.mean()) for rates in arm if rates.any()] for arm in arms]
    between = [float(np.var(arm, ddof=1)) for arm in logs if len(arm) > 1]
    if not between:
        return Scatter(START_NOISE_USUAL, second)
    length_s = fmean(len(rates) for arm in arms for rates in arm)
    seen = max(0.0, fmean(between) - second**2 / length_s)
    weight = START_NOISE_WEIGHT + len(between)
    start = math.sqrt((START_NOISE_WEIGHT * START_NOISE_USUAL**2 + len(between) * seen) / weight)
    return Scatter(max(START_NOISE_MIN, start), second)


def _second_noise(trials: Sequence[Rates]) -> float:
    """Relative standard deviation of a second.

    Neighbouring seconds are alike, so the variance grows by twice their correlation, which is taken
    over all trials at once; that of few seconds is too low by about one over their number.
    """
    known = [rates / rates.mean() - 1 for rates in trials if len(rates) > 2 and rates.any()]
    squares = math.fsum(float(off @ off) for off in known)
    if not squares:
        return 0.0
    products = math.fsum(float(off[1:] @ off[:-1]) for off in known)
    correlation = products / squares + fmean(1 / len(off) for off in known)
    variance = squares / sum(len(off) - 1 for off in known)
    return math.sqrt(variance * max(1.0, 1 + 2 * correlation))


class _Span(NamedTuple):
    """One trial's load on the clock, the place of its arm in the block, and where it ran."""

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


def _costs(plan: Plan, first: Sequence[Measurement]) -> Costs:
    """What a start and a trial take here; gaps between blocks may hold a load or a pause.

    The shortest gap counts: the first restores wait for a disk that still works on what was
    written before them (21 s where later ones take 2), and must not make all blocks look so dear.
    """
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for before, after in pairwise(_spans(one for one in first if one.window_s > 0)):
        if before.block != after.block:
            continue
        same = before.position == after.position
        gap_s = max(0.0, after.begin_s - before.end_s)
        gaps[same and plan.procedure.restart == "block"].append(gap_s)
    start_s = min(gaps[False], default=START_S_USUAL)
    trial_s = min(gaps[True], default=min(start_s, TRIAL_S))
    return Costs(start_s, trial_s)


def _spent_s(first: Sequence[Measurement], costs: Costs) -> float | None:
    """From the first trial's beginning to the last one's end; None without any.

    A run may have been interrupted and gone on the next day: a pause that is far longer than what
    lies between trials here counts as if it were as long as that. A pause before a machine's first
    trial is its set-up, which comes on top of the time.
    """
    spans = sorted(_spans(first), key=lambda one: one.begin_s)
    usual_s = costs.start_s
    spent_s, until_s = 0.0, spans[0].begin_s if spans else 0.0
    set_up: set[str] = set()
    for one in spans:
        pause_s = max(0.0, one.begin_s - until_s) if one.machine in set_up else 0.0
        if pause_s > max(INTERRUPTION_S, INTERRUPTION_TIMES * usual_s):
            pause_s = usual_s
        spent_s += pause_s + max(0.0, one.end_s - max(one.begin_s, until_s))
        until_s = max(until_s, one.end_s)
        set_up.add(one.machine)
    return spent_s if spans else None


def _block_s(plan: Plan, load_s: float, costs: Costs) -> float:
    """Seconds of a block whose trials run for so long."""
    trials = _trials_a_block(plan)
    starts = trials
    if plan.procedure.restart == "block":
        starts = len(plan.systems) * len(setting_names(plan.settings))
    return trials * load_s + starts * costs.start_s + (trials - starts) * costs.trial_s


def _trials_a_block(plan: Plan) -> int:
    return len(plan.systems) * len(cells(plan))
