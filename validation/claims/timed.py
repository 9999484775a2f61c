"""Claims about runs with a time: the first blocks choose the design and count like the others.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.stopping import OTHER
from validation.claims.verdict import MARGIN
from validation.noise import Numbers

from dbdyno.experiment.schedule.timed import begun, chosen_by
from dbdyno.judge.interval import interval
from dbdyno.judge.verdict import Word, word_of
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import BLOCKS_MIN, ChosenDesign, DesignPlan, Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.stats.design import FIRST_BLOCKS, Costs, scatter_of
from dbdyno.store.resolved import with_chosen

COSTS: Final = Costs(4.0, 1.5)
"""Seconds of a start, and of a trial on a running server, as small tables take them."""


@dataclass(frozen=True)
class Machine:
    """How much it scatters: from start to start, and from second to second."""

    start: float
    second: float

    def trials(self, random: np.random.Generator, change: float, window_s: float) -> Numbers:
        """Rates of the seconds of a block's two trials, the baseline's first."""
        starts = random.normal(((0.0,), (change,)), self.start)
        made: Numbers = np.exp(starts + random.normal(0, self.second, (2, round(window_s))))
        return made


QUIET: Final = Machine(0.015, 0.06)
SHARED: Final = Machine(0.044, 0.13)
"""As measured on a virtual machine with two cores."""


def plan_of(time_s: float) -> Plan:
    """Two systems under one load, to be compared in that time."""
    systems = tuple(SystemPlan(label=name, reference=name) for name in ("a", "b"))
    return Plan(
        systems=systems,
        workloads=(WorkloadPlan(name="oltp_read_write"),),
        load=LoadPlan(threads=(8,)),
        design=DesignPlan.model_validate({"time_s": time_s, "margin": MARGIN}),
    )


def run(
    random: np.random.Generator, machine: Machine, time_s: float, change: float
) -> tuple[Word, float, int]:
    """One run: its word, the half width of its last interval, and its blocks."""
    plan = begun(plan_of(time_s))
    first = [
        machine.trials(random, change, plan.trial.window_s).round(6) for _ in range(FIRST_BLOCKS)
    ]
    arms = [[block[arm] for block in first] for arm in (0, 1)]
    plan = with_chosen(plan, chosen_by(plan, scatter_of(arms), COSTS))
    logs = [_log_ratio(block) for block in first]
    while len(logs) < plan.design.blocks:
        logs.append(_log_ratio(machine.trials(random, change, plan.trial.window_s)))
        if len(logs) < BLOCKS_MIN:
            continue
        found = interval(logs, plan.design)
        mean, half = float(found.mean), float(found.half)
        word, _ = word_of(math.exp(mean - half), math.exp(min(mean + half, 700)), MARGIN)
        if word is not Word.UNDECIDED:
            break
    return word, half, len(logs)


def _log_ratio(block: Numbers) -> float:
    return float(np.log(block[1].mean() / block[0].mean()))


def ends_as(
    words: tuple[Word, ...], machine: Machine, time_s: float, change: float, experiments: int
) -> Seen:
    """How often a run of that time ends with one of those words."""
    random = np.random.default_rng([11, round(time_s), round(abs(change) * 1000)])
    truth = math.log1p(change)
    return share_of([run(random, machine, time_s, truth)[0] in words for _ in range(experiments)])


def held_with_additions(additions: int, experiments: int) -> Seen:
    """How often all intervals of a run and of so many additions, each twice as long, hold."""
    plan = plan_of(300)
    ends = [8 * 3**stage for stage in range(additions + 1)]
    samples = np.random.default_rng(13).standard_normal((experiments, ends[-1]))
    held, looked = np.ones(experiments, dtype=bool), BLOCKS_MIN
    for stage, end in enumerate(ends):
        chosen = ChosenDesign(
            warmup_s=4,
            window_s=6,
            blocks=end,
            start_noise=0.03,
            second_noise=0.1,
            block_s=30,
            additions=stage,
        )
        design = with_chosen(plan, chosen).design
        for blocks in range(looked, end + 1):
            found = interval(samples[:, :blocks], design)
            held &= np.abs(found.mean) <= found.half
        looked = end + 1
    return share_of(held)


CLAIMS: Final = (
    *(
        Claim(
            f"with `--time`, the intervals of all looks contain the truth: {additions} additions",
            *(0.945, None, 100_000, partial(held_with_additions, additions)),
        )
        for additions in (0, 2)
    ),
    *(
        Claim(
            f"with `--time`, equal systems are called different: {minutes} min, {name} machine",
            *(None, 0.055, 2000, partial(ends_as, OTHER, machine, 60.0 * minutes, 0.0)),
        )
        for name, machine in (("quiet", QUIET), ("shared", SHARED))
        for minutes in (2, 10)
    ),
    Claim(
        "with `--time`, a true difference of 5 % is detected: 10 min, quiet machine",
        *(0.8, None, 2000, partial(ends_as, (Word.WORSE,), QUIET, 600.0, -0.05)),
    ),
)
