"""Steps before a trial that give every arm the same start, each stored with time and outcome.

A failed step is stored as not done; the trial runs, and the audit judges the consequence.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.engine.process import set_affinity
from dbdyno.experiment.settle import PURGE, SETTLE, purge_binary_logs, settle
from dbdyno.measurement.parts import Step
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import Instance, Replicated, Server, pids_of
from dbdyno.servers.foreign.endpoint import EndpointServer
from dbdyno.servers.reference import ImageReference, is_endpoint, parse

DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")
PAGES_AND_NAMES: Final = "3\n"
COMPARED: Final = "every file compared with the snapshot's checksum"
CATCH_UP_S: Final = 60.0
"""Longest wait for replicas to apply earlier changes."""


@dataclass
class Steps:
    """Steps since the previous trial."""

    taken: list[Step] = field(default_factory=list)

    @contextmanager
    def timed(self, name: str, detail: str = "") -> Iterator[None]:
        """Keeps a step when its block has ended without an error."""
        began = time.monotonic()
        yield
        self.taken.append(Step(name=name, seconds=time.monotonic() - began, detail=detail))

    @property
    def restored(self) -> bool:
        """True if the dataset was restored: no effect of a load is left."""
        return any(step.name == "restore" for step in self.taken)


def before_start(context: RunContext, instance: Instance, steps: Steps) -> None:
    """Restores the dataset and drops caches, as the plan says, before a start.

    Raises:
        ServerError: the copy failed or differs from the snapshot; no other start would go better.
    """
    label, began = instance.spec.label, time.monotonic()
    is_ours = not is_endpoint(instance.spec.reference)
    if context.is_restored_at_start(label):
        doing = "restoring the dataset" if is_ours else "looking at the tables"
        context.progress.stage(f"{label}: {doing}")
        with steps.timed(*_restoring(instance.spec.reference)):
            instance.restore()
        context.as_loaded.add(label)
    if context.plan.procedure.drop_caches:
        if is_ours:
            context.progress.stage(f"{label}: dropping the system's caches")
        steps.taken.append(drop_caches() if is_ours else _of_the_owner("drop caches"))
    context.forecast.started(time.monotonic() - began)


def _restoring(reference: str) -> tuple[str, str]:
    """Name and detail of the restoring step for a kind of system."""
    if is_endpoint(reference):
        return "look at the tables", ""
    if isinstance(parse(reference), ImageReference):
        return "restore", "by a copy of the container's volume"
    return "restore", COMPARED


def start(
    context: RunContext, instance: Instance, keys: Mapping[str, SettingValue], steps: Steps
) -> Server:
    """Starts the server, and keeps it off the generator's cores.

    Args:
        keys: settings of this start alone.

    Raises:
        UsageError: a key cannot be had.
        ServerError: the server did not start, a setting is not in force, or SQL after the start
            was refused; no server is left.
    """
    began = time.monotonic()
    is_ours = not is_endpoint(instance.spec.reference)
    doing, step = ("starting the server", "start") if is_ours else ("logging in", "connect")
    context.progress.stage(f"{instance.spec.label}: {doing}")
    with steps.timed(step, ", ".join(f"{name}={value}" for name, value in keys.items())):
        server = instance.start(keys)
    try:
        for sql in instance.spec.after_start:
            with steps.timed("SQL after the start", sql):
                (server.ask_all if isinstance(server, EndpointServer) else server.ask)(sql)
        pin = context.plan.procedure.pin
        if pin and is_ours:
            for pid in pids_of(server):
                if pid:
                    set_affinity(pid, sorted(os.sched_getaffinity(0) - set(pin)))
    except BaseException:
        server.kill()
        raise
    context.forecast.added(time.monotonic() - began)
    return server


def before_trial(context: RunContext, instance: Instance, server: Server, steps: Steps) -> None:
    """Bring a running server to rest by the plan's procedure; failed steps are kept as not done.

    An endpoint's server is left unchanged.
    """
    procedure, cap_s = context.plan.procedure, context.plan.procedure.settle_cap_s
    settles = cap_s > 0 and not steps.restored
    if is_endpoint(instance.spec.reference):
        names = {PURGE: procedure.purge_binlogs, SETTLE: settles}
        steps.taken.extend(_of_the_owner(name) for name, is_wanted in names.items() if is_wanted)
        return
    if procedure.purge_binlogs:
        context.progress.stage(f"{server.label}: purging the binary logs")
        steps.taken.append(purge_binary_logs(server))
    if settles:
        context.progress.stage(f"{server.label}: waiting until the server is at rest")
        steps.taken.append(settle(server, cap_s))


def _of_the_owner(name: str) -> Step:
    detail = "an endpoint is its owner's: dbdyno changes nothing there but its own tables"
    return Step(name=name, seconds=0.0, done=False, detail=detail)


def catch_up(server: Server, steps: Steps) -> None:
    """Let replicas apply their backlog, so that no trial begins with replication lag."""
    if not isinstance(server, Replicated):
        return
    name = "replicas catch up"
    try:
        took_s = server.catch_up(CATCH_UP_S)
    except ServerError as error:
        detail = error.found or error.message
        steps.taken.append(Step(name=name, seconds=0.0, done=False, detail=detail))
    else:
        steps.taken.append(Step(name=name, seconds=took_s, done=took_s < CATCH_UP_S))


def drop_caches(cache: Path | None = None) -> Step:
    """Writes out dirty pages and drops the kernel's page cache."""
    began, cache = time.monotonic(), cache or DROP_CACHES
    try:
        os.sync()
        cache.write_text(PAGES_AND_NAMES)
    except OSError as error:
        detail = f"{cache}: {error.strerror}; it takes root, and a container may refuse it"
        return Step(name="drop caches", seconds=time.monotonic() - began, done=False, detail=detail)
    return Step(name="drop caches", seconds=time.monotonic() - began)
