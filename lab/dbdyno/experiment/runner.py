"""A whole run: every system's dataset, then the blocks in their order, each trial stored at once.

A run resumes by itself: trials that the store has without failure are not run again. Whatever ends
it, servers and children are ended first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from dbdyno.errors import CellError, DbdynoError, Interrupted, LoadError
from dbdyno.experiment import dataset, disk
from dbdyno.experiment.arm import run_arm
from dbdyno.experiment.context import Makers, Progress, RunContext
from dbdyno.experiment.dataset import ensure_dataset, folder_of
from dbdyno.experiment.engine.spec import (
    dataset_hash,
    refuse_unspoken,
    refuse_unspoken_instance,
    wants_dataset_bytes,
)
from dbdyno.experiment.forecast import Forecast, pilot_s
from dbdyno.experiment.order import arms, trials_of
from dbdyno.files import locked
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.controls import control_system, directory_of
from dbdyno.plan.pilot import foreseen, next_trial, piloting, resolved
from dbdyno.plan.plan import Plan, SystemPlan
from dbdyno.plan.settings import setting_names
from dbdyno.servers.base import Instance, ServerSpec
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store

Enough = Callable[[Sequence[Measurement]], bool]
"""Whether what was measured so far answers the question, so that no further block is begun."""


def run(
    plan: Plan,
    store: Store,
    run: StoredRun,
    folder: Path,
    progress: Progress,
    makers: Makers | None = None,
    retry: bool = False,
    enough: Enough | None = None,
) -> None:
    """Runs the plan's trials that the store does not have yet, after its pilot if it needs one.

    A trial that fails (its server died, say) is stored with its reason and the run goes on; it is
    tried again when the run is resumed. One that cannot be run is stored so as well, and is tried
    again only with `retry`.

    Args:
        folder: the workspace; servers' files go to its `systems` folder.
        makers: what makes servers and the engine's child; the real ones unless a test says so.
        retry: whether cells that could not be run are tried once more.
        enough: asked before each block but the first, with all that the store holds of the run; no
            block is begun once it says yes. None: all blocks are run.

    Raises:
        UnknownSystemError: the engine does not speak to one of the systems; nothing was begun.
        Interrupted: the user pressed Ctrl-C; what was measured is stored.
        CellError: no cell of the plan can be run.
        ServerError, LoadError, ProvisionError, StoreError: the run cannot go on; so too.
    """
    for system in plan.systems:
        refuse_unspoken(system.reference)
    try:
        with store.locked(run.run_id):
            done = store.done(run.run_id, impossible=not retry)
            plan = resolved(plan, store.pilots(run.run_id))
            trials = trials_of(foreseen(plan), run.run_id)
            left = [trial for trial in trials if not _is_done(trial, done)]
            context = RunContext(
                plan, store, folder, progress, makers or Makers(), Forecast(plan), left, len(trials)
            )
            if _Blocks(context, run.run_id, enough).decided():
                context.left.clear()
            _run_blocks(context, run.run_id, enough)
            store.finish(run.run_id)
            _raise_if_nothing_ran(context, run.run_id)
    except KeyboardInterrupt:
        planned = {trial.key for trial in trials_of(foreseen(plan), run.run_id)}
        raise Interrupted(
            f"run {run.run_id} was interrupted by the user",
            wanted=f"{len(planned)} trials",
            found=f"{len(planned & store.done(run.run_id))} of them are stored",
            hint=f"to go on: dbdyno compare --resume {run.run_id}",
        ) from None


def _is_done(trial: Trial, done: set[str]) -> bool:
    """Whether it is stored; of a control also if an older dbdyno chose another cell for it."""
    if not trial.control:
        return trial.key in done
    arm = trial.key.removesuffix(trial.cell.key)
    return any(key.startswith(arm) for key in done)


class _Blocks:
    """The blocks that are left, one after the other, until no further one is wanted."""

    def __init__(self, context: RunContext, run_id: str, enough: Enough | None) -> None:
        self._context, self._enough, self._run_id = context, enough, run_id
        planned = trials_of(foreseen(context.plan), run_id)
        self._whole = Counter(trial.block for trial in planned)

    def __iter__(self) -> Iterator[list[Trial]]:
        for _, trials in groupby(tuple(self._context.left), key=lambda trial: trial.block):
            if self.decided():
                return
            yield list(trials)

    def decided(self) -> bool:
        """Whether nothing is left but whole blocks, and those before them were enough.

        A block that was begun is ended: its trials are owed by the plan.
        """
        context = self._context
        next_block = context.left[0].block if context.left else 0
        if next_block == 0 or self._enough is None:
            return False
        begun = sum(trial.block == next_block for trial in context.left) < self._whole[next_block]
        if begun or not self._enough(context.store.measurements(self._run_id)):
            return False
        most = context.plan.design.blocks
        context.progress.stage(f"decided after {next_block} of at most {most} blocks")
        return True


def _run_blocks(context: RunContext, run_id: str, enough: Enough | None) -> None:
    with _instances(context) as instances:
        for instance in instances.values():
            refuse_unspoken_instance(instance)
        disk.check_before(context.plan, instances.values())
        context.folders = [context.folder, *(instance.folder for instance in instances.values())]
        for label, instance in instances.items():
            ensure_dataset(context, instance)
            context.dataset[label] = dataset.read_digest(instance.folder)
        if context.left and wants_dataset_bytes(context.plan):
            context.dataset_bytes = instances[context.plan.systems[0].label].data_bytes()
        if context.left:
            _take_rates(context, run_pilot(context, run_id, instances), run_id)
        for trials in _Blocks(context, run_id, enough):
            for arm in arms(trials):
                run_arm(context, instances[_directory(arm[0])], arm)


def _take_rates(context: RunContext, plan: Plan, run_id: str) -> None:
    """What is left, now that the pilot has found the rates; none of those were measured before."""
    if plan is context.plan:
        return
    trials = trials_of(plan, run_id)
    context.plan, context.left, context.total = plan, trials, len(trials)


@contextmanager
def _instances(context: RunContext) -> Iterator[dict[str, Instance]]:
    """The instances of all data directories that still have trials; closed whatever happens.

    The baseline's too where a setting is a share of its dataset.
    """
    wanted = {_directory(trial) for trial in context.left}
    if wanted and wants_dataset_bytes(context.plan):
        wanted.add(context.plan.systems[0].label)
    with ExitStack() as stack:
        opened: dict[str, Instance] = {}
        for system in (*context.plan.systems, control_system(context.plan)):
            if system.label in wanted:
                opened[system.label] = stack.enter_context(_instance(context, system))
        yield opened


def _directory(trial: Trial) -> str:
    return directory_of(trial.system, trial.control)


@contextmanager
def _instance(context: RunContext, system: SystemPlan) -> Iterator[Instance]:
    """One system's instance, whose files no other run of this workspace touches meanwhile."""
    folder = folder_of(context.folder, context.plan, system)
    with locked(context.folder / "locks" / f"{folder.name}.lock", system.label):
        spec = ServerSpec(
            system.label,
            system.reference,
            system.settings,
            system.topology,
            system.password_env,
            dataset=dataset_hash(context.plan),
            network=context.plan.network,
        )
        instance = context.makers.open_instance(spec, folder, context.progress.stage)
        try:
            yield instance
        finally:
            try:
                instance.close()
            except DbdynoError as error:  # the run's own outcome counts, not this
                context.progress.stage(f"{system.label}: {error.message}")


def _raise_if_nothing_ran(context: RunContext, run_id: str) -> None:
    """A plan of which no cell at all can be run is a mistake of the plan, and is said as one."""
    if context.store.done(run_id, impossible=False):
        return
    reasons = [m.failure for m in context.store.measurements(run_id) if m.impossible]
    if reasons:
        raise CellError(
            "no cell of the plan can be run",
            found=reasons[-1],
            hint="correct the plan; its trials are stored with their reasons",
        )


# The pilot: before the first block, each system once, to find the rates of an open loop.
#
# What is measured next follows from what the store holds (`plan/pilot.py`), so that an interrupted
# pilot goes on where it was. Its trials are stored as any others, and are no part of the
# comparison.


def run_pilot(context: RunContext, run_id: str, instances: Mapping[str, Instance]) -> Plan:
    """The plan with the rates that its pilot found, after measuring what the pilot still lacks.

    Raises:
        LoadError: a trial of the pilot failed; what was measured before is stored.
        KeyboardInterrupt: the user stopped it.
    """
    plan = resolved(context.plan, context.store.pilots(run_id))
    if not plan.load.needs_pilot or plan.load.pilot:
        return plan
    short = piloting(context.plan)
    pilot = replace(context, plan=short, left=[], forecast=Forecast(short))
    rest_s = context.forecast.seconds_left(context.left)
    for setting in setting_names(plan.settings):
        for system in plan.systems:
            trials = _trials(pilot, run_id, system.label, setting, rest_s)
            if next_trial(plan, run_id, context.store.pilots(run_id), system.label, setting):
                run_arm(pilot, instances[system.label], trials)
    return resolved(context.plan, context.store.pilots(run_id))


def _trials(
    context: RunContext, run_id: str, system: str, setting: str, rest_s: float
) -> Iterator[Trial]:
    """Each trial once that before it is stored, since what it saw decides.

    Args:
        rest_s: what the run takes after its pilot.
    """
    while True:
        pilots = context.store.pilots(run_id)
        trial = next_trial(context.plan, run_id, pilots, system, setting)
        if trial is None:
            return
        context.left.append(trial)
        context.forecast.later_s = rest_s + pilot_s(context.plan, len(pilots) + 1)
        yield trial
        (*_, last) = context.store.pilots(run_id)
        if last.failure is not None and not last.impossible:
            raise LoadError(
                "the pilot failed, so there are no rates to measure",
                wanted=f"a trial of {system} in {trial.cell.title}",
                found=last.failure,
                hint="look at the server's log; a resumed run repeats this trial, and rates given"
                " in events a second need no pilot",
            )
