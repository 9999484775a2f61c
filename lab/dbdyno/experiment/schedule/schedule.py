"""The trials of a run in their order: trials left, the next block, and repeats.

The list follows from the plan and the store, so a resumed run goes on where it was. It changes when
a pilot has found the rates, when the first blocks have decided the design of the others, and when a
block was disturbed or lost its machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from dbdyno.experiment.schedule.forecast import Forecast
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.schedule.timed import begun, chosen
from dbdyno.measurement.disturbance import (
    current,
    disturbed,
    lost,
    place_of,
    repeats,
    to_repeat,
)
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.plan import Plan
from dbdyno.stats.design import FIRST_BLOCKS
from dbdyno.store.reading import StoredRun
from dbdyno.store.resolved import resolved, resolved_run, with_chosen
from dbdyno.store.store import Store

Enough = Callable[[Sequence[Measurement], Plan], bool]
"""Judges the measurements so far: True if they suffice."""


class TrialQueue:
    """Trials to run one after the other.

    Attributes:
        plan: plan of these trials.
        left: trials left to run, in order; the first is the next trial.
        total: number of all trials, including those stored by an earlier lab.
        forecast: forecast of their time.
    """

    def __init__(self, plan: Plan, left: Iterable[Trial], total: int) -> None:
        self.plan, self.left, self.total = plan, list(left), total
        self.forecast = Forecast(plan)

    @property
    def number(self) -> int:
        """Number of the next trial, from 1."""
        return self.total - len(self.left) + 1

    def ended(self, trial: Trial) -> None:
        """Remove a stored trial; trials of a pilot on another machine were never in the list."""
        if trial in self.left:
            self.left.remove(trial)

    def seconds_left(self, into_s: float = 0.0, running: int = 0) -> float:
        """Seconds for the trials left, as `Forecast.seconds_left`."""
        return self.forecast.seconds_left(self.left, into_s, running)


class Schedule(TrialQueue):
    """The trials of a stored run.

    Args:
        run: the run, its plan as it was written or resolved.
        tell: takes a sentence on each change of the list.
        machines: number of machines that run blocks in parallel.
        enough: called after each whole block; True ends a run that may leave out blocks.
        retry: include cells that could not be run.
    """

    def __init__(
        self,
        run: StoredRun,
        store: Store,
        tell: Callable[[str], None],
        machines: int = 1,
        enough: Enough | None = None,
        *,
        retry: bool = False,
    ) -> None:
        self._store, self._run_id, self._tell = store, run.run_id, tell
        self._machines, self._enough = machines, enough
        plan = begun(resolved_run(store, run).plan, machines)
        self._planned = trials_of(plan, run.run_id)
        times, done = store.repeats(run.run_id), store.done(run.run_id, impossible=not retry)
        every = [_repeated(one, times.get(place_of(one), 0)) for one in self._planned]
        super().__init__(plan, [one for one in every if one.key not in done], len(every))

    def __iter__(self) -> Iterator[list[Trial]]:
        """Block after block; repeats of a disturbed block follow at once."""
        while trials := self.next():
            yield trials
            self.queue_repeats(trials[0].block)

    def next(self, running: Collection[int] = ()) -> list[Trial]:
        """The trials of the next block; empty at the end, or while the blocks in `running` must end
        first.

        The design of a run with a time waits for the first blocks.
        """
        waiting = self._waiting(running)
        if not waiting or self.is_decided(running):
            return []
        if waiting[0].block >= FIRST_BLOCKS:
            if min(running, default=FIRST_BLOCKS) < FIRST_BLOCKS and self._may_choose:
                return []
            self._choose()
            waiting = self._waiting(running)
        return [trial for trial in waiting if trial.block == waiting[0].block]

    def begin_again(self) -> None:
        """Queue repeats missing from an earlier lab's blocks; drop the rest of a decided run."""
        if self._store.run(self._run_id).finished_at is None:
            for block in reversed(range(self._store.blocks_begun(self._run_id))):
                self.queue_repeats(block)  # blocks on several machines end in any order
        if self.is_decided():
            self.left.clear()

    def needs_pilot(self) -> bool:
        """True if a pilot must find rates before the first block; stored rates enter the plan."""
        resolved_plan = resolved(self.plan, self._store.pilots(self._run_id), None)
        if resolved_plan is not self.plan:  # none of its rates were measured before
            self._replan(resolved_plan)
            self.left, self.total = list(self._planned), len(self._planned)
        return resolved_plan.load.awaits_pilot

    def repeat_block(self, block: int) -> list[Trial]:
        """Queue all trials of a block again whose machine was lost."""
        times = self._store.repeats(self._run_id)
        again = [
            _repeated(one, times.get(place_of(one), -1) + 1)
            for one in self._planned
            if one.block == block
        ]
        others = [trial for trial in self.left if trial.block != block]
        self.total += len(again) + len(others) - len(self.left)
        self.left[:] = [*again, *others]
        return again

    def queue_repeats(self, block: int) -> None:
        """Requeues the disturbed trials of a complete block ahead of the rest, and tells so."""
        if block < 0 or any(trial.block == block for trial in self.left):
            return
        stored = current(self._store.block(self._run_id, block))
        limit = self.plan.design.disturbance_max
        beyond = [(m.trial, seen) for m in stored if (seen := disturbed(m, limit))]
        gone = [m.failure for m in lost(stored)]
        if not beyond and not gone:
            return
        every = self._store.measurements(self._run_id)
        every_place = to_repeat(every, self.plan.design.blocks, limit)
        places = [place for place in every_place if place.block == block]
        reason = f"block {block + 1}: {gone[0]}" if gone else ""
        if beyond:
            trial, seen = max(beyond, key=lambda one: one[1].share)
            reason = (
                f"block {block + 1} was disturbed: others had {seen.share:.1%} of the host's CPU"
                f" beside {trial.system} (limit {(limit or 0) * 100:g} %)"
            )
        if not places:
            self._tell(f"{reason}; its repeats are used, its trial is void")
            return
        loads = ", ".join(place.load for place in places)
        self._tell(f"{reason}; measured again on all systems: {loads}")
        times = repeats(every)
        again = [
            _repeated(one, times[place_of(one)] + 1)
            for one in self._planned
            if place_of(one) in places
        ]
        self.left[:0] = again
        self.total += len(again)

    def is_decided(self, running: Collection[int] = ()) -> bool:
        """True if only whole blocks are left and the completed blocks suffice.

        A begun block is completed: the plan needs all of its trials. Blocks running elsewhere do
        not count, as half a block would.
        """
        waiting = self._waiting(running)
        next_block = waiting[0].block if waiting else 0
        design = self.plan.design
        takes_all = design.stop == "blocks" or (design.chosen and design.chosen.all_blocks)
        if next_block == 0 or self._enough is None:
            return False
        whole = sum(trial.block == next_block for trial in self._planned)
        is_begun = sum(trial.block == next_block for trial in waiting) < whole
        stored = self._store.measurements(self._run_id)
        ended = [m for m in stored if m.trial.block not in running]
        if is_begun or waiting[0].repeat > 0:
            return False
        is_enough = self._enough(ended, self.plan)  # it tells the answer of fixed blocks, too
        if takes_all or not is_enough:
            return False
        self._tell(
            f"ended after {next_block} of at most {design.blocks} blocks:"
            " more would change no verdict"
        )
        return True

    def _waiting(self, running: Collection[int]) -> list[Trial]:
        return [trial for trial in self.left if trial.block not in running]

    def _replan(self, plan: Plan) -> None:
        self.plan, self._planned = plan, trials_of(plan, self._run_id)

    @property
    def _may_choose(self) -> bool:
        return self.plan.design.time_s is not None and self.plan.design.chosen is None

    def _choose(self) -> None:
        """Chooses the design of a run with a time after its first blocks, once."""
        if not self._may_choose:
            return
        every = self._store.measurements(self._run_id)
        first = [m for m in every if m.trial.block < FIRST_BLOCKS]
        design = chosen(self.plan, current(first), self._machines)
        self._store.choose(self._run_id, design)
        self._replan(with_chosen(self.plan, design))
        run = self.total - len(self.left)
        self.left = [one for one in self._planned if one.block >= FIRST_BLOCKS]
        self.total = run + len(self.left)
        self.forecast.chosen(self.plan.trial)
        self._tell(
            f"from block {FIRST_BLOCKS + 1} on: windows of {design.window_s:g} s after"
            f" {design.warmup_s:g} s, {design.blocks} blocks at most"
        )


def _repeated(trial: Trial, repeat: int) -> Trial:
    """The trial of the plan as its repeat number `repeat`."""
    return trial.model_copy(update={"repeat": repeat}) if repeat else trial
