"""Blocks on other machines: a block runs whole on a host, several hosts at a time.

A host runs the lab's own code on its node: it fetches programs, loads rows and runs the trials of a
block as a lab alone would, in a folder of its cache. Its measurements are sent here at once and
stored here only. A lost host (process, node, answers) loses its current block: the trial is stored
as void, and the whole block is measured again on a single machine, so its comparisons hold.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.queue import Empty, Queue

from dbdyno.errors import DbdynoError, LoadError, LostError
from dbdyno.experiment.arm import never_begun
from dbdyno.experiment.context import Makers, RunContext
from dbdyno.experiment.runner import Machine, machine
from dbdyno.experiment.schedule.schedule import Schedule, TrialQueue
from dbdyno.files import private, remove_left, temporary_folder
from dbdyno.fleet import cluster
from dbdyno.fleet.cluster import PATIENCE_S, SILENT_S, Installed, Node
from dbdyno.fleet.generators import Generators
from dbdyno.measurement.disturbance import current
from dbdyno.measurement.measurement import NO_BLOCK, Measurement, Trial
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.plan import Plan
from dbdyno.servers import open
from dbdyno.servers.programs import places
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store

TAKE_S: Final = 0.2
"""How long messages wait at most."""
TAKEN_MAX: Final = 1000
"""So many messages at most before the hosts are looked at again."""
NAME_BYTES: Final = 4
NAME: Final = re.compile("[0-9a-f]{4,8}")
LOSSES_MAX: Final = 3
"""After so many losses of one block the run ends; it can be resumed with other machines."""


class HostFacts(NamedTuple):
    """A host's description of itself; `name` is stored with its loaded data.

    Attributes:
        programs: digests of programs in folders of its node, by reference.
    """

    name: str
    programs: dict[str, str]
    installed: Installed
    environment: dict[str, str]


class Event(NamedTuple):
    """A host's message: `alive`, `stage`, `note`, `begin`, `interval` or `end`."""

    host: str
    kind: str
    trial: Trial | None = None
    value: Any = None

    def is_whole(self) -> bool:
        """True if its kind has what it needs."""
        needed = {"stage": str, "note": str, "interval": dict, "end": Measurement}
        is_of_trial = self.kind not in {"begin", "interval", "end"} or isinstance(self.trial, Trial)
        is_same = self.kind != "end" or getattr(self.value, "trial", None) == self.trial
        return is_of_trial and is_same and isinstance(self.value, needed.get(self.kind, object))


class Host:
    """The actor on a host.

    Calls run one at a time in the main thread of its process; servers must start there, since they
    end with their starting thread.

    Args:
        away: nodes of all hosts, excluded for generators.
    """

    def __init__(self, events: Queue, away: Sequence[Node]) -> None:
        self._events, self._away = events, away
        self._stack = ExitStack()
        self._folder = cluster.slot(self._stack, places.FLEET)
        remove_left(self._folder)
        self.name = _name_in(self._folder / "name")
        self._context: RunContext | None = None
        self._machine: Machine | None = None
        cluster.tell_alive(lambda: events.put(Event(self.name, "alive")))

    def facts(self, references: Sequence[str]) -> HostFacts:
        """This host, and the digests of the plan's references here."""
        digests = {one: open.digest_here(one) for one in references}
        programs = {one: digest for one, digest in digests.items() if digest}
        return HostFacts(self.name, programs, *cluster.node_facts())

    def run_block(
        self, run: StoredRun, plan: Plan, trials: Sequence[Trial], later: Sequence[Trial]
    ) -> None:
        """Run trials of a block; each is reported at its end.

        Args:
            plan: the run's, with the pilot's rates and the chosen design so far.
            later: trials left of later blocks, any of which this host may be given.
        """
        self._opened(run, plan, [*trials, *later]).run(trials)

    def find_rates(
        self, run: StoredRun, plan: Plan, trials: Sequence[Trial], pilots: Sequence[Measurement]
    ) -> None:
        """Run the remaining trials of the plan's pilot."""
        here = self._opened(run, plan, trials)
        assert self._context is not None
        for pilot in pilots:
            self._context.store.append(pilot)
        here.find_rates()

    def close(self) -> None:
        """End the lab and its servers."""
        self._stack.close()

    def _opened(self, run: StoredRun, plan: Plan, left: Sequence[Trial]) -> Machine:
        if self._context is None or self._machine is None:
            parts = self._stack.enter_context(temporary_folder(self._folder))
            store = self._stack.enter_context(Store.open(parts))
            store.begin(run)
            self._context = RunContext(
                run.run_id,
                TrialQueue(plan, left, len(left)),
                store,
                self._folder,
                Sender(self._events, self.name),
                makers_of(generators_of(plan.fleet, self._away, self._stack)),
            )
            self._machine = self._stack.enter_context(machine(self._context))
        self._context.schedule.plan = plan
        self._context.schedule.left[:] = left
        return self._machine


def _name_in(file: Path) -> str:
    """A host's name, drawn and written when it is first asked for."""
    with suppress(OSError, UnicodeDecodeError):
        if NAME.fullmatch(name := file.read_text()):
            return name
    return private(file, secrets.token_hex(NAME_BYTES)).read_text()


def generators_of(wanted: FleetPlan, away: Sequence[Node], held: ExitStack) -> Generators | None:
    """The plan's separate generators, if any; they end with `held`.

    Args:
        away: nodes of servers, excluded for generators.
    """
    if not wanted.generators:
        return None
    generators = Generators(wanted.generators, wanted.place.generators, away)
    held.callback(generators.close)
    return generators


def makers_of(generators: Generators | None) -> Makers:
    """Makers of a lab with separate generators, if any.

    Servers then listen on this node's address in the cluster.
    """
    makers = Makers()
    if generators is None:
        return makers
    address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    return replace(
        makers,
        address=address,
        engine=generators.engine,
        ceiling=generators.ceiling,
        certificate=generators.certificate,
    )


class Sender:
    """A host's `Progress`: sends it on."""

    def __init__(self, events: Queue, host: str) -> None:
        self._events, self._host = events, host

    def stage(self, text: str) -> None:
        self._events.put(Event(self._host, "stage", value=text))

    def note(self, text: str) -> None:
        self._events.put(Event(self._host, "note", value=text))

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Report a trial's begin; only the run's own machine knows their number."""
        self._events.put(Event(self._host, "begin", trial))

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The current speed."""
        self._events.put(Event(self._host, "interval", trial, dict(interval)))

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The measurement."""
        self._events.put(Event(self._host, "end", trial, measurement))


@dataclass
class _Running:
    """The lab's view of a host.

    Attributes:
        work: Ray's promise of its current block; None while idle.
        trial: its trial in progress.
    """

    node: Node
    actor: Any
    facts: HostFacts
    work: Any = None
    block: int = NO_BLOCK
    trial: Trial | None = None
    heard_s: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        return self.facts.name


class Hosts:
    """The hosts of a run, alive from before its begin to its end.

    Args:
        role: label of their nodes; empty for any.
        count: most hosts; None for all nodes.
        host: the class of the actors; tests have their own.
        references: the plan's systems; their programs must be equal on all hosts.
    """

    def __init__(
        self,
        role: str,
        count: int | None = None,
        host: Callable[..., object] = Host,
        references: Sequence[str] = (),
    ) -> None:
        self._host, self._references = host, list(references)
        self._programs: dict[str, str] = {}
        self._role, there = role, len(cluster.with_role(role))
        self._count = min(count or there, there)
        self._events = Queue(actor_options={"num_cpus": 0})
        self._hosts: list[_Running] = []
        self._losses: dict[int, int] = {}
        self._fill()

    def count(self) -> int:
        """As `BlockRunner.count`."""
        return len(self._hosts)

    def nodes(self) -> list[Node]:
        return [host.node for host in self._hosts]

    def environment(self) -> dict[str, str]:
        """Descriptions of their machines for the report."""
        return {f"machine {h.name}": cluster.in_short(h.facts.environment) for h in self._hosts}

    def close(self) -> None:
        """End all hosts and their processes."""
        for host in self._hosts:
            with suppress(RayError):
                if host.work is None:
                    ray.get(host.actor.close.remote(), timeout=PATIENCE_S)
            with suppress(RayError):
                ray.kill(host.actor)
        self._hosts = []
        self._events.shutdown(force=True)

    def run(self, context: RunContext, schedule: Schedule) -> None:
        """As `BlockRunner.run`.

        Raises:
            LostError: all hosts are lost, a block lost its machine again and again, or the cluster
                is gone.
            LoadError, ServerError: the block cannot run, as on a single machine.
        """
        try:
            self._run(context, schedule)
        except RayError as error:
            raise LostError(
                "the cluster cannot be reached any more",
                found=cluster.reason(error),
                hint="start it again, then resume the run; nothing stored is measured again",
            ) from error

    def _run(self, context: RunContext, schedule: Schedule) -> None:
        if schedule.needs_pilot():
            host, pilots = self._hosts[0], context.store.pilots(context.run_id)
            host.work = host.actor.find_rates.remote(
                context.store.run(context.run_id), context.plan, context.schedule.left, pilots
            )
            self._wait(context, schedule)
            if schedule.needs_pilot():
                raise LostError("the machine that ran the pilot was lost", hint="resume the run")
        while True:
            self._fill()
            while idle := [host for host in self._hosts if host.work is None]:
                running = [host.block for host in self._hosts if host.work is not None]
                if not self._give(context, schedule, idle, running):
                    break
            if all(host.work is None for host in self._hosts):
                return
            self._wait(context, schedule)

    def _fill(self) -> None:
        """Start hosts on free nodes up to the wanted number."""
        taken = {host.node.node_id for host in self._hosts}
        every = cluster.with_role(self._role)
        missing = [node for node in every if node.node_id not in taken]
        for node in missing[: max(0, self._count - len(self._hosts))]:
            make: Any = ray.remote(self._host)
            placed = make.options(num_cpus=1, scheduling_strategy=cluster.on(node))
            actor = placed.remote(self._events, every[: self._count])
            try:
                facts = ray.get(actor.facts.remote(self._references), timeout=PATIENCE_S)
            except RayTaskError as error:
                raise _cause(error) from error
            except RayError:
                ray.kill(actor)
                continue
            cluster.check_equal(f"machine {node.address}", getattr(facts, "installed", None))
            where = f"machine {facts.name} ({node.address})"
            if facts.name in {host.name for host in self._hosts}:
                raise LoadError(
                    f"{where} has the name of another machine",
                    wanted="a name for each, which dbdyno draws and keeps in its cache",
                    found="the cache of one is a copy of the other's",
                    hint=f"remove {places.FLEET}/*/name from the cache of one",
                )
            self._programs = self._programs or facts.programs
            cluster.check_programs(where, self._programs, facts.programs)
            self._hosts.append(_Running(node, actor, facts))
        if not self._hosts:
            raise LostError(
                "no machine is left to run blocks on",
                found=cluster.in_words(cluster.nodes()),
                hint="start nodes, then resume the run; nothing stored is measured again",
            )

    def _give(
        self,
        context: RunContext,
        schedule: Schedule,
        idle: Sequence[_Running],
        running: Collection[int],
    ) -> bool:
        """Give the next block to a host; False without a block."""
        trials = schedule.next(running)
        if not trials:
            return False
        block = trials[0].block
        machines = {m.machine for m in current(context.store.block(context.run_id, block))}
        host = next((one for one in idle if one.name in machines), idle[0])
        if machines - {host.name}:
            context.progress.note(
                f"block {block + 1} was begun on another machine; all of it is measured again"
            )
            trials = schedule.repeat_block(block)
        host.block, host.heard_s = block, time.monotonic()
        later = [trial for trial in schedule.left if trial.block > block]
        run = context.store.run(context.run_id)
        host.work = host.actor.run_block.remote(run, context.plan, trials, later)
        return True

    def _wait(self, context: RunContext, schedule: Schedule) -> None:
        """Store the hosts' messages until a host has finished its block or is lost."""
        while True:
            working = [host for host in self._hosts if host.work is not None]
            ready, _ = ray.wait([host.work for host in working], timeout=TAKE_S)
            self._take(context)
            for host in working:
                silent_s = time.monotonic() - host.heard_s
                if host.work in ready:
                    self._ended(context, host, schedule)
                    return
                if silent_s > SILENT_S:
                    self._lose(context, host, f"it said nothing for {SILENT_S:.0f} s", schedule)
                    return

    def _ended(self, context: RunContext, host: _Running, schedule: Schedule) -> None:
        try:
            ray.get(host.work)
        except RayTaskError as error:
            raise _cause(error) from error
        except RayError as error:
            self._lose(context, host, type(error).__name__, schedule)
            return
        host.work, host.trial = None, None
        if host.block != NO_BLOCK:
            schedule.queue_repeats(host.block)

    def _lose(self, context: RunContext, host: _Running, why: str, schedule: Schedule) -> None:
        """Takes a host out; its trial is stored as void, its block is left again."""
        self._hosts.remove(host)
        with suppress(RayError):
            ray.kill(host.actor)
        context.progress.note(f"machine {host.name} was lost: {why}")
        if host.trial is not None:
            void = never_begun(
                context.plan, host.trial, f"machine {host.name} was lost: {why}", impossible=False
            )
            context.store.append(void.model_copy(update={"machine": host.name, "lost": True}))
        if host.block == NO_BLOCK:
            return
        self._losses[host.block] = self._losses.get(host.block, 0) + 1
        if self._losses[host.block] >= LOSSES_MAX:
            raise LostError(
                f"block {host.block + 1} lost its machine {LOSSES_MAX} times",
                found=why,
                hint="look at the machines, then resume the run: it goes on with those there are",
            )
        if any(one.block == host.block for one in schedule.left):
            schedule.repeat_block(host.block)
        else:  # it had ended, but for its last server
            schedule.queue_repeats(host.block)

    def _take(self, context: RunContext) -> None:
        """Store and show some of the hosts' messages."""
        by_name = {host.name: host for host in self._hosts}
        for _ in range(TAKEN_MAX):
            try:
                event = self._events.get(block=False)
            except Empty:
                return
            if not isinstance(event, Event) or not event.is_whole():
                continue
            if (host := by_name.get(event.host)) is not None:
                host.heard_s = time.monotonic()
                self._tell(context, host, event)

    def _tell(self, context: RunContext, host: _Running, event: Event) -> None:
        schedule = context.schedule
        left_s = schedule.seconds_left() / len(self._hosts)
        alone = sum(one.work is not None for one in self._hosts) == 1
        if event.kind in ("stage", "note"):
            show = getattr(context.progress, event.kind)
            show(event.value if alone else f"{host.name}: {event.value}")
        elif event.trial is None:
            return
        elif event.kind == "begin":
            host.trial = event.trial
            context.progress.begin(event.trial, schedule.number, schedule.total, left_s)
        elif event.kind == "interval" and alone:
            with suppress(LookupError, TypeError, ValueError):  # nobody checked it
                context.progress.interval(event.trial, event.value, left_s)
        elif event.kind == "end":
            measurement = event.value.model_copy(update={"machine": host.name})
            context.store.append(measurement)
            host.trial = None
            schedule.ended(event.trial)
            context.progress.end(event.trial, measurement, left_s)


def _cause(error: RayTaskError) -> DbdynoError:
    """The error of a host's work, as raised there."""
    if isinstance(error.cause, DbdynoError):
        return error.cause
    return LoadError(
        "a machine of the fleet could not go on",
        found=cluster.reason(error),
        hint="report this with the log of that node",
    )
