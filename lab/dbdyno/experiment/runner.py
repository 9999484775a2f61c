"""A whole run: every system's dataset, then the blocks in their order, each trial stored at once.

A run resumes by itself: trials stored without failure are not run again. However it ends, servers
and children are ended first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from dbdyno.errors import CellError, LoadError
from dbdyno.experiment.arm import run_arm
from dbdyno.experiment.context import Makers, Progress, RunContext
from dbdyno.experiment.data.loads import Loads, SystemLoads, home_of, keep_limit
from dbdyno.experiment.engine.spec import (
    dataset_hash,
    wants_dataset_bytes,
)
from dbdyno.experiment.schedule.forecast import pilot_s
from dbdyno.experiment.schedule.order import arms
from dbdyno.experiment.schedule.pilot import next_trial, piloting
from dbdyno.experiment.schedule.schedule import Enough, Schedule, TrialQueue
from dbdyno.measurement.measurement import Trial
from dbdyno.plan.settings import setting_names
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.base import Instance, ServerSpec
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store


def run(
    store: Store,
    run: StoredRun,
    folder: Path,
    progress: Progress,
    makers: Makers | None = None,
    retry: bool = False,
    enough: Enough | None = None,
) -> None:
    """Run the trials missing in the store, after the plan's pilot if it needs one.

    A failed trial (its server died, say) is stored with its reason and the run goes on; a resumed
    run tries it again. A trial that cannot be run is stored in the same way, and is tried again
    only with `retry`.

    Args:
        folder: the workspace; servers' files go to its `systems` folder, or to the cache's.
        makers: makers of servers and of the engine's child; the real makers by default.
        retry: try cells that could not be run once more.
        enough: called after each whole block with the stored measurements of the run; True ends a
            run that may leave out blocks. None: all blocks are run.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C; all completed trials are stored.
        CellError: no cell of the plan can be run.
        ServerError, LoadError, ProvisionError, StoreError: the run cannot go on; all completed
            trials are stored.
    """
    makers = makers or Makers()
    with store.locked(run.run_id):
        schedule = Schedule(run, store, progress.note, makers.machines, enough, retry=retry)
        context = RunContext(run.run_id, schedule, store, folder, progress, makers)
        schedule.begin_again()
        _run_blocks(context, schedule)
        store.finish(run.run_id)
        _raise_if_nothing_ran(context)


def _run_blocks(context: RunContext, schedule: Schedule) -> None:
    if context.makers.hosts is not None:
        context.makers.hosts.run(context, schedule)
        return
    with machine(context) as here:
        if schedule.left and schedule.needs_pilot():
            here.find_rates()
            schedule.needs_pilot()
        for trials in schedule:
            here.run(trials)


class Machine:
    """A machine with a run's systems open, ready to run blocks."""

    def __init__(self, context: RunContext, loads: Loads) -> None:
        self._context, self._loads = context, loads

    def find_rates(self) -> None:
        """Run the rest of the plan's pilot; raises as `run_pilot`."""
        self._turn_to(self._context.schedule.left[0].block)
        run_pilot(self._context, self._loads.instances)

    def run(self, trials: Sequence[Trial]) -> None:
        """Run trials of one block from the schedule's `left`.

        Raises:
            KeyboardInterrupt, LoadError, ServerError: as `run_arm`.
        """
        self._turn_to(trials[0].block)
        for arm in arms(trials):
            run_arm(self._context, self._loads.instances[arm[0].system], arm)

    def _turn_to(self, block: int) -> None:
        context = self._context
        self._loads.turn_to(block)
        if context.dataset_bytes is None and wants_dataset_bytes(context.plan.settings):
            baseline = self._loads.instances[context.plan.systems[0].label]
            context.dataset_bytes = baseline.data_bytes()


@contextmanager
def machine(context: RunContext) -> Iterator[Machine]:
    """This machine with the loads of all systems that have trials left; closed whatever happens.

    The baseline is opened too if a setting is a share of its dataset. All systems are opened if a
    block may be measured again, if other machines run blocks, or if no trial is left: an earlier
    lab may have died while it closed them.
    """
    plan, wanted = context.plan, {trial.system for trial in context.schedule.left}
    if wants_dataset_bytes(plan.settings):
        wanted.add(plan.systems[0].label)
    is_open = plan.design.disturbance_max < 1 or plan.fleet.is_wanted
    if is_open or not context.schedule.left:
        wanted |= {system.label for system in plan.systems}
    with ExitStack() as stack:
        held = [
            stack.enter_context(_system_loads(context, system).held())
            for system in plan.systems
            if system.label in wanted
        ]
        yield Machine(context, Loads(context, held))
    keep_limit(context)


def _system_loads(context: RunContext, system: SystemPlan) -> SystemLoads:
    def open_in(place: Path) -> Instance:
        return context.makers.open_instance(spec, place, context.progress.stage)

    spec = ServerSpec(
        system.label,
        system.reference,
        system.settings,
        topology=system.topology,
        password_env=system.password_env,
        after_start=system.after_start,
        dataset=dataset_hash(context.plan),
        replica_ms=context.plan.network.replica_ms,
        has_scripts=any(one.script is not None for one in context.plan.workloads),
        address=context.makers.address,
    )
    return SystemLoads(context, system, home_of(context, system), open_in)


def _raise_if_nothing_ran(context: RunContext) -> None:
    """Raise CellError for a plan without a single runnable cell."""
    if context.store.done(context.run_id, impossible=False):
        return
    reasons = [m.failure for m in context.store.measurements(context.run_id) if m.impossible]
    if reasons:
        raise CellError(
            "no cell of the plan can be run",
            found=reasons[-1],
            hint="correct the plan; its trials are stored with their reasons",
        )


# The pilot: before the first block, each system once, to find the rates of an open loop.
#
# The next trial follows from the store (`experiment/schedule/pilot.py`), so that an
# interrupted pilot goes on where it was. Its trials are stored as any others, and are no part of
# the comparison.


def run_pilot(context: RunContext, instances: Mapping[str, Instance]) -> None:
    """Run the rest of the plan's pilot.

    Raises:
        LoadError: a trial of the pilot failed; earlier trials are stored.
        KeyboardInterrupt: the user stopped it.
    """
    plan, rest_s = context.plan, context.schedule.seconds_left()
    piloted = plan.model_copy(update={"trial": piloting(plan.trial)})
    short = TrialQueue(piloted, (), 1)
    pilot = replace(context, schedule=short)
    for setting in setting_names(plan.settings):
        for system in plan.systems:
            trials = _trials(pilot, system.label, setting, rest_s)
            run_arm(pilot, instances[system.label], trials)


def _trials(context: RunContext, system: str, setting: str, rest_s: float) -> Iterator[Trial]:
    """Trials of the pilot, each decided by the stored results of the trials before it.

    Args:
        rest_s: seconds of the run after its pilot.
    """
    while True:
        pilots = context.store.pilots(context.run_id)
        trial = next_trial(context.plan, context.run_id, pilots, system, setting)
        if trial is None:
            return
        context.schedule.left.append(trial)
        context.forecast.later_s = rest_s + pilot_s(context.plan, len(pilots) + 1)
        yield trial
        (*_, last) = context.store.pilots(context.run_id)
        if last.failure is not None and not last.impossible:
            raise LoadError(
                "the pilot failed, so there are no rates to measure",
                wanted=f"a trial of {system} in {trial.cell.key}",
                found=last.failure,
                hint="look at the server's log; a resumed run repeats this trial, and rates given"
                " in events a second need no pilot",
            )
