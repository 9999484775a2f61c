"""Load generators on other machines, together a trial's engine.

Each is the ordinary child (`experiment.engine.child`) on its node, started by a Ray actor as a
relay of its lines; results are added up like several children's of a single machine. They begin
together: each node's clock offset is measured before the load, and again after it. A loss (process,
node, answer, clock) makes the trial void with `LostError`, and the next trial gets new generators.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from dbdyno.errors import LoadError
from dbdyno.experiment import certify
from dbdyno.experiment.engine import ceiling, record
from dbdyno.experiment.engine.generators import Arriving, Child, merged, request_of, together
from dbdyno.experiment.engine.process import COMMAND, Engine, Message
from dbdyno.fleet import cluster
from dbdyno.fleet.cluster import ANSWER_S, PATIENCE_S, PLACE_S, Clock, Installed, Node
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.measurement import Trial
from dbdyno.plan.fleet import LABEL
from dbdyno.plan.plan import Plan

HEAD_START_S: Final = 0.25
"""From the word to begin until they begin; the word goes over a network."""
POLL_S: Final = 0.5
CLOCK_MS_MAX: Final = 20.0
"""A begin that may be further apart than that is none; the network stalls, or a node does."""
CLOCK_CHANGE_MS_MAX: Final = 5.0
"""Beyond what the readings leave open: a clock that did not keep time counts wrong seconds."""
CLOCK_SHARE_MAX: Final = 1e-4
"""The same as a share of a long load, in which good clocks part too: that much a rate is wrong."""
FEW_S: Final = 5.0
"""How long the cluster may have fewer nodes than there are generators, as one may come back."""
NODE_ID: Final = "ray.io/node-id"
"""The label that Ray gives each node itself."""


class GeneratorNode(NamedTuple):
    """A generator's node, its cores and its machine's certificate."""

    installed: Installed
    environment: dict[str, str]
    cores: int
    certificate: CertificateFacts


class Generator:
    """The actor on a generator's node: runs a child and relays its lines."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._cores = len(os.sched_getaffinity(0))

    def facts(self) -> GeneratorNode:
        return GeneratorNode(*cluster.node_facts(), self._cores, certify.known())

    def clock_ns(self) -> int:
        """This node's monotonic clock."""
        return time.monotonic_ns()

    def ceiling(self, plan: Plan, trial: Trial, driver: str) -> float | None:
        """Ceiling of a generator here against the null responder, in events a second.

        It runs as in a trial: a process with a thread for each core of this node, not of the plan.
        """
        load = plan.load.model_copy(update={"generators": 1})
        alone = plan.model_copy(update={"load": load})
        return ceiling.measure(alone, trial, driver, threads=self._cores, cores=())

    def start(self, request: str) -> None:
        """Start a child with its request and password, after ending the previous child."""
        self.end()
        self._lines = queue.SimpleQueue()
        self._child = Child(request, self._lines.put)

    def lines(self, timeout_s: float) -> list[str]:
        """Wait for lines since the last call; an empty line is the end."""
        lines: list[str] = []
        with suppress(queue.Empty):
            lines.append(self._lines.get(timeout=timeout_s))
            while True:
                lines.append(self._lines.get_nowait())
        return lines

    def say(self, line: str) -> None:
        if self._child is not None:
            self._child.say(line)

    def end(self) -> None:
        """Kills the child if it still runs."""
        if self._child is not None:
            self._child.end()


class Remote:
    """A generator as a `Part`, seen from the lab; the first has the number 0."""

    def __init__(self, actor: Any, number: int, count: int) -> None:  # noqa: ANN401 - Ray's proxy
        self._actor, self.number, self._count = actor, number, count
        self._clock = Clock(0, 0)
        facts = self._asked(actor.facts.remote(), object, timeout_s=PATIENCE_S)
        cluster.check_equal(self.name, getattr(facts, "installed", None))
        self.node: GeneratorNode = facts

    @property
    def name(self) -> str:
        """As messages have it."""
        return f"generator {self.number + 1} of {self._count}"

    def lives(self) -> bool:
        """Test for an answer."""
        try:
            self._asked(self._actor.clock_ns.remote(), int)
        except LoadError:
            return False
        return True

    def read_clock(self) -> Clock:
        """Measure its clock offset by the fastest of several round trips; LostError if lost."""
        return cluster.read_clock(lambda: self._asked(self._actor.clock_ns.remote(), int))

    def ceiling(self, plan: Plan, trial: Trial, driver: str) -> Callable[[], float | None]:
        """Start `Generator.ceiling`; returns a function waiting for its result.

        A lost generator gives None and is reported by the load.
        """
        pending = self._actor.ceiling.remote(plan, trial, driver)

        def reached() -> float | None:
            try:
                rate: float | None = self._asked(pending, float, type(None), timeout_s=PATIENCE_S)
            except LoadError:
                return None
            return rate

        return reached

    def start(self, request: str, clock: Clock, arriving: Arriving) -> None:
        """Start its child; its lines arrive from now on."""
        self._clock = clock
        self._asked(self._actor.start.remote(request), type(None), timeout_s=PATIENCE_S)
        threading.Thread(target=self._read, args=(arriving,), daemon=True).start()

    def begin(self, monotonic_ns: int) -> None:
        """As `Part.begin`: told in its own clock."""
        self.say(f"begin {monotonic_ns + self._clock.ahead_ns}")

    def say(self, line: str) -> None:
        """As `Part.say`."""
        with suppress(RayError):  # it is lost, which whoever reads its lines says
            self._actor.say.remote(line)

    def end(self) -> None:
        """Ends its child."""
        with suppress(RayError):
            self._actor.end.remote()

    def kill(self) -> None:
        """Ends the actor, and its child with it."""
        with suppress(RayError):
            ray.kill(self._actor)

    def _read(self, arriving: Arriving) -> None:
        while True:
            try:
                lines = self._asked(self._actor.lines.remote(POLL_S), list)
            except LoadError as error:
                arriving.put((self.number, _lost(error.found or error.message)))
                return
            for line in map(str, lines):
                if not line:
                    arriving.put((self.number, _lost(f"{self.name}: its process ended")))
                    return
                arriving.put((self.number, line))
                if '"interval"' not in line[:12] and '"open"' not in line[:12]:
                    return

    def _asked(self, answer: Any, *kinds: type, timeout_s: float = ANSWER_S) -> Any:  # noqa: ANN401 - Ray's
        return cluster.answer(answer, self.name, *kinds, timeout_s=timeout_s)


def _lost(message: str) -> str:
    return json.dumps({"error": {"kind": record.LOST, "message": message}})


class Generators:
    """Generators on nodes of their own, started on first use.

    Args:
        count: number of generators, each on another node.
        role: label of their nodes; empty for any.
        away: nodes of servers, excluded for generators.
    """

    def __init__(self, count: int, role: str = "", away: Sequence[Node] = ()) -> None:
        self.count, self._role = count, role
        self._wanted = {LABEL: role} if role else {}
        if away:
            self._wanted[NODE_ID] = f"!in({','.join(node.node_id for node in away)})"
        self._group: PlacementGroup | None = None
        self._remotes: list[Remote] = []
        self._nodes: list[GeneratorNode] = []

    def there(self) -> list[Remote]:
        """All generators alive, lost ones placed anew; LoadError for too few or unlike nodes."""
        if self._remotes and all(one.lives() for one in self._remotes):
            return self._remotes
        self.close()
        self._group = group = placement_group(
            [{"CPU": 1.0}] * self.count,
            strategy="STRICT_SPREAD",
            bundle_label_selector=[self._wanted] * self.count if self._wanted else None,
        )
        if not self._is_placed(group):
            self.close()
            labelled = f" with the label {LABEL}={self._role}" if self._role else ""
            raise LoadError(
                "the cluster has too few nodes for the generators",
                wanted=f"{self.count} nodes{labelled} beside the servers', each with a free CPU",
                found=cluster.in_words(cluster.nodes()),
                hint="start more nodes, or ask for fewer generators",
            )
        make = ray.remote(Generator)
        actors = [
            make.options(
                num_cpus=1,
                max_concurrency=4,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=number
                ),
            ).remote()
            for number in range(self.count)
        ]
        self._remotes = [Remote(one, number, self.count) for number, one in enumerate(actors)]
        self._nodes = [remote.node for remote in self._remotes]
        return self._remotes

    def _is_placed(self, group: PlacementGroup) -> bool:
        """Test for enough nodes in time; too few nodes shorten the wait."""
        began_s = time.monotonic()
        while (waited_s := time.monotonic() - began_s) < PLACE_S:
            if group.wait(1):
                return True
            there = [node for node in cluster.nodes() if node.cpus >= 1]
            meant = [node for node in there if self._role in {"", node.role}]
            if len(meant) < self.count and waited_s > FEW_S:
                return False
        return False

    def close(self) -> None:
        """Ends them all."""
        for remote in self._remotes:
            remote.kill()
        self._remotes = []
        if self._group is not None:
            with suppress(RayError):
                remove_placement_group(self._group)
            self._group = None

    def environment(self) -> dict[str, str]:
        """Descriptions of their machines for the report."""
        return {
            f"generator {remote.number + 1}": cluster.in_short(remote.node.environment)
            for remote in self.there()
        }

    def engine(
        self,
        do: str,
        spec: Mapping[str, Any],
        *,
        system: str = "",
        cores: Sequence[int] = (),
        command: Sequence[str] = COMMAND,
    ) -> Engine:
        """A load of all generators, in place of an `EngineProcess`."""
        del cores, command  # of this machine
        return FleetEngine(self, do, spec, system)

    def ceiling(self, plan: Plan, trial: Trial, driver: str) -> float | None:
        """Ceiling of all generators together, by the slowest; as `ceiling.measure`."""
        pending = [one.ceiling(plan, trial, driver) for one in self.there()]
        reached = [wait() for wait in pending]
        known = [rate for rate in reached if rate is not None]
        return self.count * min(known) if len(known) == self.count else None

    def certificate(self) -> CertificateFacts:
        """Worst certificate of the current generators, with their common rate.

        A failed certificate is worse than a missing one, which is worse than the slowest machine's.
        """
        every = [node.certificate for node in self._nodes or [one.node for one in self.there()]]
        worst = min(
            every,
            key=lambda one: (not one.failed, bool(one.digest), not one.changed, one.queries_per_s),
        )
        together = {
            "queries_per_s": worst.queries_per_s * self.count,
            "pgsql_queries_per_s": worst.pgsql_queries_per_s * self.count,
        }
        return worst.model_copy(update=together)


class FleetEngine(Engine):
    """The generators' common load, from their common begin to their added-up record."""

    pid = 0

    def __init__(
        self, generators: Generators, do: str, spec: Mapping[str, Any], system: str = ""
    ) -> None:
        """Begins it in a thread; raises LoadError if there are no generators to do it."""
        if "socket" in spec["endpoint"]:
            raise LoadError(
                f"{system}: the server listens on a socket of its own machine only",
                wanted="a port, as the generators are on other machines",
                hint="leave skip_networking out, or generators in the plan's fleet",
            )
        self._do, self._system = do, system
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._ended: Message | None = None
        self._stop = threading.Event()
        self._remotes = generators.there()
        self._thread = threading.Thread(target=self._run, args=(spec,), daemon=True)
        self._thread.start()

    def message(self, timeout_s: float | None = None) -> Message | None:
        """As `Engine.message`."""
        if self._ended is not None:
            return self._ended
        try:
            message = self._messages.get(timeout=None if timeout_s is None else max(0.0, timeout_s))
        except queue.Empty:
            return None
        if message.kind == "error":
            raise record.refused(message.value, self._do, self._system)
        if message.kind == "record":
            self._ended = message
        return message

    def stop(self) -> None:
        """As `Engine.stop`."""
        self._stop.set()

    def close(self) -> None:
        """As `Engine.close`."""
        self._stop.set()
        for remote in self._remotes:
            remote.end()
        self._thread.join(ANSWER_S)

    def _run(self, spec: Mapping[str, Any]) -> None:
        try:
            self._messages.put(self._driven(spec))
        except (LoadError, RayError) as error:
            fault = error.found if isinstance(error, LoadError) else cluster.reason(error)
            self._messages.put(_error(fault or str(error)))
        except Exception as error:  # whoever waits for a message would wait for ever
            nonsense = f"a generator sent nonsense: {cluster.reason(error)}"
            self._messages.put(_error(nonsense))

    def _driven(self, spec: Mapping[str, Any]) -> Message:
        """Run the load from the first clock reading to the record or its error."""
        count, arriving, began_s = len(self._remotes), Arriving(), time.monotonic()
        before = [one.read_clock() for one in self._remotes]
        if late := fault_of(before):
            return late
        for remote, clock in zip(self._remotes, before, strict=True):
            own = {**spec, "threads": spec["threads"] or remote.node.cores * count}
            remote.start(request_of(own, remote.number, count), clock, arriving)
        ended = together(self._remotes, arriving, spec, self._tell, self._stop, HEAD_START_S)
        if isinstance(ended, tuple):
            return Message(*ended)
        after = [one.read_clock() for one in self._remotes]
        changed = change_of(before, after, time.monotonic() - began_s)
        return changed or Message("record", _record(ended, before, after))

    def _tell(self, kind: str, value: Any) -> None:  # noqa: ANN401 - an interval of the engine
        self._messages.put(Message(kind, value))


def _error(message: str) -> Message:
    return Message("error", {"kind": record.LOST, "message": message})


def fault_of(clocks: Sequence[Clock]) -> Message | None:
    """The error if the clocks are not known well enough to begin together."""
    for number, clock in enumerate(clocks):
        if clock.within_ns > CLOCK_MS_MAX * 1e6:
            return _error(
                f"generator {number + 1} of {len(clocks)} answers so late that its clock is known"
                f" to ±{clock.within_ns / 1e6:.1f} ms only (limit {CLOCK_MS_MAX:g} ms)"
            )
    return None


def change_of(before: Sequence[Clock], after: Sequence[Clock], load_s: float) -> Message | None:
    """The error if a clock did not keep time with this one's during a load of so many seconds."""
    limit_ms = max(CLOCK_CHANGE_MS_MAX, CLOCK_SHARE_MAX * load_s * 1e3)
    for number, (first, last) in enumerate(zip(before, after, strict=True)):
        change_ns = abs(last.ahead_ns - first.ahead_ns)
        unknown_ns = first.within_ns + last.within_ns
        if change_ns > unknown_ns + limit_ms * 1e6:
            return _error(
                f"the clock of generator {number + 1} of {len(before)} changed by"
                f" {change_ns / 1e6:.1f} ms during the trial (limit {limit_ms:.1f} ms)"
            )
    return None


def _record(
    records: Sequence[Mapping[str, Any]], before: Sequence[Clock], after: Sequence[Clock]
) -> dict[str, Any]:
    apart = [
        {
            "machine": number,
            "connections": one["connections"],
            "threads": one["threads"],
            "cpu_s": one["measured"]["cpu_s"],
            "cpu_share_max": one["measured"]["cpu_share_max"],
            "clock_ms": first.within_ns / 1e6,
            "clock_change_ms": (last.ahead_ns - first.ahead_ns) / 1e6,
        }
        for number, (one, first, last) in enumerate(zip(records, before, after, strict=True), 1)
    ]
    return {**merged(records), "apart": apart}
