"""A whole run: every system's dataset, then the blocks in their order, each trial stored at once.

A run resumes by itself: trials that the store has without failure are not run again. Whatever ends
it, servers and children are ended first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from dbdyno.errors import CellError, Interrupted, LoadError
from dbdyno.experiment.arm import run_arm
from dbdyno.experiment.context import Makers, Progress, RunContext
from dbdyno.experiment.data.loads import Loads, SystemLoads, home_of
from dbdyno.experiment.engine.spec import (
    dataset_hash,
    wants_dataset_bytes,
)
from dbdyno.experiment.forecast import Forecast, pilot_s
from dbdyno.experiment.order import arms, trials_of
from dbdyno.measurement.disturbance import (
    current,
    disturbed,
    lost,
    place_of,
    repeats,
    to_repeat,
)
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.pilot import foreseen, next_trial, piloting, resolved
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import setting_names
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.timed import FIRST_BLOCKS, begun, chosen, with_chosen
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
        folder: the workspace; servers' files go to its `systems` folder, or to the cache's.
        makers: what makes servers and the engine's child; the real ones unless a test says so.
        retry: whether cells that could not be run are tried once more.
        enough: asked before each block but the first, with all that the store holds of the run; no
            block is begun once it says yes. None: all blocks are run.

    Raises:
        Interrupted: the user pressed Ctrl-C; what was measured is stored.
        CellError: no cell of the plan can be run.
        ServerError, LoadError, ProvisionError, StoreError: the run cannot go on; so too.
    """
    makers = makers or Makers()
    try:
        with store.locked(run.run_id):
            done, times = store.done(run.run_id, impossible=not retry), store.repeats(run.run_id)
            plan = _as_found(plan, store, run.run_id, makers.machines)
            trials = trials_of(foreseen(plan), run.run_id)
            now = [_again(trial, times.get(place_of(trial), 0)) for trial in trials]
            left = _left(now, done)
            context = RunContext(
                plan, store, folder, progress, makers, Forecast(plan), left, len(trials)
            )
            blocks = _Blocks(context, run.run_id, enough)
            if run.finished_at is None:  # blocks on several machines end in any order
                for block in reversed(range(store.blocks_begun(run.run_id))):
                    blocks.queue_repeats(block)
            if blocks.decided():
                context.remaining.clear()
            _run_blocks(context, run.run_id, blocks)
            store.finish(run.run_id)
            _raise_if_nothing_ran(context, run.run_id)
    except KeyboardInterrupt:
        found = _as_found(plan, store, run.run_id, makers.machines)
        planned = trials_of(foreseen(found), run.run_id)
        times, done = store.repeats(run.run_id), store.done(run.run_id)
        now = [_again(trial, times.get(place_of(trial), 0)) for trial in planned]
        stored = len(now) - len(_left(now, done))
        raise Interrupted(
            f"run {run.run_id} was interrupted by the user",
            wanted=f"{len(planned)} trials",
            found=f"{stored} of them are stored",
            hint=f"to go on: dbdyno resume {run.run_id}",
        ) from None


def _as_found(plan: Plan, store: Store, run_id: str, machines: int) -> Plan:
    """The plan with the rates that the run's pilot found, and the design that its time chose."""
    chosen_before = store.run(run_id).plan.design.chosen
    return begun(with_chosen(resolved(plan, store.pilots(run_id)), chosen_before), machines)


def _left(trials: Sequence[Trial], done: set[str]) -> list[Trial]:
    """The trials that are not stored."""
    return [trial for trial in trials if trial.key not in done]


class _Blocks:
    """The blocks that are left, until no further one is wanted."""

    def __init__(self, context: RunContext, run_id: str, enough: Enough | None) -> None:
        self._context, self._enough, self._run_id = context, enough, run_id

    def __iter__(self) -> Iterator[list[Trial]]:
        """One after the other; of one that was disturbed, these loads come again at once."""
        while trials := self.next():
            yield trials
            self.queue_repeats(trials[0].block)

    def next(self, running: Collection[int] = ()) -> list[Trial]:
        """As `Blocks.next`; the design of a run with a time waits for the first blocks."""
        context = self._context
        waiting = [trial for trial in context.remaining if trial.block not in running]
        if not waiting or self.decided(running):
            return []
        if waiting[0].block >= FIRST_BLOCKS:
            if min(running, default=FIRST_BLOCKS) < FIRST_BLOCKS and _may_choose(context.plan):
                return []
            _choose(context, self._run_id)
            waiting = [trial for trial in context.remaining if trial.block not in running]
        return [trial for trial in waiting if trial.block == waiting[0].block]

    def repeat_block(self, block: int) -> list[Trial]:
        """As `Blocks.repeat_block`."""
        context = self._context
        times = context.store.repeats(self._run_id)
        planned = [t for t in trials_of(foreseen(context.plan), self._run_id) if t.block == block]
        again = [_again(trial, times.get(place_of(trial), -1) + 1) for trial in planned]
        others = [trial for trial in context.remaining if trial.block != block]
        context.total += len(again) + len(others) - len(context.remaining)
        context.remaining[:] = [*again, *others]
        return again

    def needs_pilot(self) -> bool:
        """As `Blocks.needs_pilot`."""
        context = self._context
        plan = resolved(context.plan, context.store.pilots(self._run_id))
        _take_rates(context, plan, self._run_id)
        return plan.load.needs_pilot and not plan.load.pilot

    def queue_repeats(self, block: int) -> None:
        """Puts what was disturbed in a complete block back before what is left, and tells so."""
        context, design = self._context, self._context.plan.design
        if block < 0 or any(trial.block == block for trial in context.remaining):
            return
        stored = current(context.store.block(self._run_id, block))
        limit = design.disturbance_max
        found = [(m.trial, seen) for m in stored if (seen := disturbed(m, limit))]
        gone = [m.failure for m in lost(stored)]
        if not found and not gone:
            return
        every = context.store.measurements(self._run_id)
        every_place = to_repeat(every, design.blocks, limit)
        places = [place for place in every_place if place.block == block]
        told = f"block {block + 1}: {gone[0]}" if gone else ""
        if found:
            trial, seen = max(found, key=lambda one: one[1].share)
            told = (
                f"block {block + 1} was disturbed: others had {seen.share:.1%} of the host's CPU"
                f" beside {trial.arm} (limit {(limit or 0) * 100:g} %)"
            )
        if not places:
            context.progress.stage(f"{told}; its repeats are used, its trial is void")
            return
        loads = ", ".join(place.load for place in places)
        context.progress.stage(f"{told}; measured again on all systems: {loads}")
        trials, times = trials_of(foreseen(context.plan), self._run_id), repeats(every)
        again = [_again(one, times[place_of(one)] + 1) for one in trials if place_of(one) in places]
        context.remaining[:0] = again
        context.total += len(again)

    def decided(self, running: Collection[int] = ()) -> bool:
        """Whether nothing is left but whole blocks, and those before them were enough.

        A block that was begun is ended: the plan wants all of its trials. Of those that are running
        elsewhere nothing is looked at, as half a block would be.
        """
        context = self._context
        waiting = [trial for trial in context.remaining if trial.block not in running]
        next_block = waiting[0].block if waiting else 0
        if next_block == 0 or self._enough is None:
            return False
        planned = trials_of(foreseen(context.plan), self._run_id)
        whole = sum(trial.block == next_block for trial in planned)
        is_begun = sum(trial.block == next_block for trial in waiting) < whole
        stored = context.store.measurements(self._run_id)
        ended = [m for m in stored if m.trial.block not in running]
        if is_begun or waiting[0].repeat > 0 or not self._enough(ended):
            return False
        most = context.plan.design.blocks
        context.progress.stage(
            f"ended after {next_block} of at most {most} blocks: more would change no verdict"
        )
        return True


def _again(trial: Trial, repeat: int) -> Trial:
    """The same trial of the plan, in that repeat of it."""
    return trial.model_copy(update={"repeat": repeat}) if repeat else trial


def _run_blocks(context: RunContext, run_id: str, blocks: _Blocks) -> None:
    if context.makers.hosts is not None:
        context.makers.hosts.run(context, run_id, blocks)
        return
    with machine(context, run_id) as here:
        if context.remaining:
            _take_rates(context, here.find_rates(), run_id)
        for trials in blocks:
            here.run(trials)


class Machine:
    """A machine on which a run's systems are open, so that blocks can be run on it."""

    def __init__(self, context: RunContext, run_id: str, loads: Loads) -> None:
        self._context, self._run_id, self._loads = context, run_id, loads

    def find_rates(self) -> Plan:
        """The plan with the rates that its pilot finds, if it needs one; as `run_pilot`."""
        self._turn_to(self._context.remaining[0].block)
        return run_pilot(self._context, self._run_id, self._loads.instances)

    def run(self, trials: Sequence[Trial]) -> None:
        """Runs trials of one block; `left` of the context holds them.

        Raises:
            KeyboardInterrupt, LoadError, ServerError: as `run_arm`.
        """
        self._turn_to(trials[0].block)
        for arm in arms(trials):
            run_arm(self._context, self._loads.instances[arm[0].system], arm)

    def _turn_to(self, block: int) -> None:
        context = self._context
        self._loads.turn_to(block)
        if context.dataset_bytes is None and wants_dataset_bytes(context.plan):
            baseline = self._loads.instances[context.plan.systems[0].label]
            context.dataset_bytes = baseline.data_bytes()


@contextmanager
def machine(context: RunContext, run_id: str) -> Iterator[Machine]:
    """This machine with the systems open that the context's trials need, and closed at the end."""
    with _loads(context) as loads:
        yield Machine(context, run_id, loads)


def _take_rates(context: RunContext, plan: Plan, run_id: str) -> None:
    """What is left, now that the pilot has found the rates; none of those were measured before."""
    if plan is context.plan:
        return
    trials = trials_of(plan, run_id)
    context.plan, context.remaining, context.total = plan, trials, len(trials)


def _may_choose(plan: Plan) -> bool:
    return plan.design.time_s is not None and plan.design.chosen is None


def _choose(context: RunContext, run_id: str) -> None:
    """After its first blocks a run with a time chooses the design of the others, once."""
    plan = context.plan
    if not _may_choose(plan):
        return
    first = [m for m in context.store.measurements(run_id) if m.trial.block < FIRST_BLOCKS]
    design = chosen(plan, current(first), context.makers.machines)
    context.store.choose(run_id, design)
    context.plan = with_chosen(plan, design)
    context.remaining = [t for t in trials_of(context.plan, run_id) if t.block >= FIRST_BLOCKS]
    context.total = len(trials_of(context.plan, run_id))
    context.forecast.chosen(context.plan)
    context.progress.stage(
        f"from block {FIRST_BLOCKS + 1} on: windows of {design.window_s:g} s after"
        f" {design.warmup_s:g} s, {design.blocks} blocks at most"
    )


@contextmanager
def _loads(context: RunContext) -> Iterator[Loads]:
    """The loads of all data directories that still have trials; closed whatever happens.

    The baseline's too where a setting is a share of its dataset, and all where a block with an
    arm that has ended may be measured again, or where the other blocks' trials are not known. All
    as well where none has trials: a lab may have died as it closed them.
    """
    plan, wanted = context.plan, {trial.system for trial in context.remaining}
    if wants_dataset_bytes(plan):
        wanted.add(plan.systems[0].label)
    is_open = plan.design.disturbance_max < 1 or plan.fleet.is_wanted
    if is_open or not context.remaining:
        wanted |= {system.label for system in plan.systems}
    with ExitStack() as stack:
        held = [
            stack.enter_context(_system_loads(context, system).held())
            for system in plan.systems
            if system.label in wanted
        ]
        yield Loads(context, held)


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
    pilot = replace(context, plan=short, remaining=[], forecast=Forecast(short))
    rest_s = context.forecast.seconds_left(context.remaining)
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
        context.remaining.append(trial)
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
