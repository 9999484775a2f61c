"""Forecast of a run's time: before it from the plan, while it goes on from measured times."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.experiment.schedule.order import arms, trials_of
from dbdyno.experiment.schedule.pilot import piloting, trials_expected
from dbdyno.experiment.schedule.timed import begun
from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.plan.plan import DatasetPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.settings import setting_names
from dbdyno.stats.design import TRIAL_S

START_S: Final = 10.0
"""Restoring a dataset, starting the server on it and stopping it, before any was measured."""
ROWS_PER_S: Final = 40_000.0
"""Loading rows with their indexes, in four streams."""
DATASET_S: Final = 20.0
"""Initialising a server and copying its data aside."""
PURGE_S: Final = 0.2
SETTLE_S: Final = 5.0


@dataclass(frozen=True)
class Outlook:
    """The whole run of a plan as foreseen before its first trial.

    Attributes:
        plan: with the times of its first blocks.
        trials: every trial, in order; before a pilot, its rates are made up.
        pilot_trials: number of the pilot's trials.
        seconds: time on ordinary machines; downloads of servers come on top.
    """

    plan: Plan
    trials: tuple[Trial, ...]
    pilot_trials: int
    seconds: float

    @property
    def cells(self) -> list[Cell]:
        """Every cell, with made-up rates before a pilot."""
        return list(dict.fromkeys(trial.cell for trial in self.trials))

    @property
    def block_s(self) -> float:
        """Seconds of a block."""
        design = self.plan.design
        if design.time_s is not None:
            return design.time_s / design.blocks
        first = [trial for trial in self.trials if trial.block == 0]
        return Forecast(self.plan).seconds_left(first)


def outlook_of(plan: Plan, machines: int = 1) -> Outlook:
    """Foresee the run of a plan.

    Args:
        machines: number of machines that run blocks in parallel.
    """
    plan = begun(plan)
    forecast, trials, blocks = Forecast(plan), trials_of(plan, ""), plan.design.blocks
    share = math.ceil(blocks / machines) / blocks
    whole_s = plan.design.time_s or share * forecast.seconds_left(trials)
    seconds = forecast.loads_s + pilot_s(plan) + whole_s
    return Outlook(plan, tuple(trials), trials_expected(plan), seconds)


def load_s(dataset: DatasetPlan) -> float:
    """Seconds to load a system once on an ordinary machine, its copy included."""
    return DATASET_S + dataset.tables * dataset.rows / ROWS_PER_S


def pilot_s(plan: Plan, done: int = 0) -> float:
    """Seconds for the pilot after `done` of its trials; each server starts once per setting."""
    whole, trial = trials_expected(plan), piloting(plan.trial)
    if whole == 0:
        return 0.0
    starts = len(plan.systems) * len(setting_names(plan.settings))
    each_s = starts * START_S / whole + trial.warmup_s + trial.window_s + TRIAL_S
    return max(0, whole - done) * each_s


class Forecast:
    """Forecast that learns the time of starts, and of the steps between a start and a trial's load.

    Attributes:
        later_s: seconds of the run after the trials in question.
        loads_s: seconds to load every system once more.
    """

    def __init__(self, plan: Plan) -> None:
        self.chosen(plan.trial)
        self._per_cell = plan.procedure.restart == "cell"
        self._starts = 0
        self._starts_s = 0.0
        self._before_s = _before_trial_s(plan.procedure)
        self._prepared = 0
        self.later_s = 0.0
        self.loads_s = len(plan.systems) * load_s(plan.dataset)
        self._loads = plan.dataset.loads

    def chosen(self, trial: TrialPlan) -> None:
        """Take these times for the trials left."""
        self._trial_s = trial.warmup_s + trial.window_s + TRIAL_S

    def started(self, seconds: float) -> None:
        """Count a start, with the seconds for restoring before it."""
        self._starts += 1
        self._starts_s += seconds

    def added(self, seconds: float) -> None:
        """Add seconds for another part of a counted start, such as its stop."""
        self._starts_s += seconds

    def prepared(self, seconds: float) -> None:
        """Count the seconds for purging, settling and warming up before one trial's load."""
        self._prepared += 1
        known_s = self._before_s if self._prepared > 1 else seconds
        self._before_s = known_s + (seconds - known_s) / self._prepared

    def seconds_left(self, trials: Sequence[Trial], into_s: float = 0.0, running: int = 0) -> float:
        """Seconds for these trials, when the first of them is `into_s` seconds into its load.

        Args:
            running: 1 if the first trial's server has been started already.
        """
        starts = len(trials) if self._per_cell else len(arms(trials))
        start_s = self._starts_s / self._starts if self._starts else START_S
        waiting = max(0, starts - running)
        each_s = self._before_s + self._trial_s
        trials_s = max(0.0, len(trials) * each_s + waiting * start_s - into_s)
        later = sorted({trial.block for trial in trials})[1:]
        loads_s = self.loads_s * sum(0 < block < self._loads for block in later)
        return trials_s + loads_s + self.later_s


def _before_trial_s(procedure: ProcedurePlan) -> float:
    """Estimated seconds of the procedure before a trial's load."""
    purging_s = PURGE_S if procedure.purge_binlogs else 0.0
    return purging_s + min(procedure.settle_cap_s, SETTLE_S)


# A budget of time drops whole blocks only: each compares all systems in all cells, so fewer blocks
# are the same experiment with wider intervals.


def blocks_that_fit(plan: Plan, budget_s: float, machines: int = 1) -> int:
    """Number of the plan's blocks that fit into the budget, from 0 to all.

    Args:
        machines: number of machines that run blocks in parallel.
    """
    return bisect_right(
        range(1, plan.design.blocks + 1),
        budget_s,
        key=lambda blocks: outlook_of(with_blocks(plan, blocks), machines).seconds,
    )


def fitted(plan: Plan, machines: int = 1) -> Plan:
    """The plan with the blocks that fit into its budget; without a budget, the plan itself.

    Args:
        machines: number of machines that run blocks in parallel.

    Raises:
        UsageError: not one block fits.
    """
    budget_s = plan.design.budget_s
    if budget_s is None:
        return plan
    blocks = blocks_that_fit(plan, budget_s, machines)
    if blocks == 0:
        raise UsageError(
            "the budget is too short for a single block",
            wanted=f"{outlook_of(with_blocks(plan, 1)).seconds / 60:.1f} min for one block of all"
            " systems and cells, their datasets included",
            found=f"{budget_s / 60:.1f} min",
            hint="ask for fewer cells or a shorter window, or use a smaller scale of the plan",
        )
    return with_blocks(plan, blocks)


def with_blocks(plan: Plan, blocks: int) -> Plan:
    """The plan with so many blocks, and otherwise the same."""
    return plan.model_copy(update={"design": plan.design.model_copy(update={"blocks": blocks})})
