"""The steps that make every arm begin alike, each kept with its seconds and what it came to.

A step that cannot be taken is kept too, as not done: the trial still runs, and the audit says what
that means for its numbers.
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
from dbdyno.experiment import settling_postgres
from dbdyno.experiment.context import Lab
from dbdyno.experiment.engine.process import keep_on
from dbdyno.experiment.settling import PURGE, SETTLE, purge_binary_logs, settle
from dbdyno.measurement.measurement_parts import Step
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import endpoint_reference
from dbdyno.servers.base import Instance, Replicated, Server
from dbdyno.servers.foreign import container_program
from dbdyno.servers.postgres.server import PostgresServer

DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")
PAGES_AND_NAMES: Final = "3\n"
COMPARED: Final = "every file compared with the snapshot's checksum"
CATCH_UP_S: Final = 60.0
"""How long replicas may take to apply what came before."""


@dataclass
class Steps:
    """What was done since the trial before."""

    taken: list[Step] = field(default_factory=list)

    @contextmanager
    def timed(self, name: str, detail: str = "") -> Iterator[None]:
        """Keeps a step when its block has ended without an error."""
        began = time.monotonic()
        yield
        self.taken.append(Step(name=name, seconds=time.monotonic() - began, detail=detail))

    @property
    def restored(self) -> bool:
        """Whether the dataset was restored: then nothing is left of any load."""
        return any(step.name == "restore" for step in self.taken)


def lay_out(lab: Lab, instance: Instance, steps: Steps) -> None:
    """Restores the dataset and drops caches, as the plan says, before a start.

    Raises:
        ServerError: the copy failed or differs from the snapshot; no other start would go better.
    """
    label, began = instance.spec.label, time.monotonic()
    is_ours = not endpoint_reference.is_endpoint(instance.spec.reference)
    if lab.is_restored_at_start(label):
        lab.progress.stage(f"{label}: restoring the dataset")
        with steps.timed(*_restoring(instance.spec.reference)):
            instance.restore()
        lab.as_loaded.add(label)
    if lab.plan.procedure.drop_caches:
        lab.progress.stage(f"{label}: dropping the system's caches")
        steps.taken.append(drop_caches() if is_ours else _of_the_owner("drop caches"))
    lab.forecast.started(time.monotonic() - began)


def _restoring(reference: str) -> tuple[str, str]:
    """What restoring comes to for a kind of system, and how its result is known to be right."""
    if endpoint_reference.is_endpoint(reference):
        return "look at the tables", ""
    if container_program.is_container(reference):
        return "restore", "by a copy of the container's volume"
    return "restore", COMPARED


def start(lab: Lab, instance: Instance, keys: Mapping[str, OptionValue], steps: Steps) -> Server:
    """Starts the server, and keeps it off the generator's cores.

    Args:
        keys: settings of this start alone.

    Raises:
        UsageError: a key cannot be had.
        ServerError: the server did not start, or a setting is not in force.
    """
    began = time.monotonic()
    lab.progress.stage(f"{instance.spec.label}: starting the server")
    with steps.timed("start", ", ".join(f"{name}={value}" for name, value in keys.items())):
        server = instance.start(keys)
    if pin := lab.plan.procedure.pin:
        for pid in server.pids if isinstance(server, Replicated) else (server.pid,):
            if pid:
                keep_on(pid, sorted(os.sched_getaffinity(0) - set(pin)))
    lab.forecast.added(time.monotonic() - began)
    return server


def before_trial(lab: Lab, server: Server, steps: Steps) -> None:
    """Brings a running server to rest, as the plan says; steps that fail are kept as not done.

    Nothing is changed in a server that the lab did not start.
    """
    asked = lab.plan.procedure
    if asked.purge_binlogs:
        lab.progress.stage(f"{server.label}: purging the binary logs")
        steps.taken.append(_purge(server))
    if asked.settle_cap_s > 0 and not steps.restored:
        lab.progress.stage(f"{server.label}: waiting until the server is at rest")
        steps.taken.append(_settle(server, asked.settle_cap_s))


def _purge(server: Server) -> Step:
    if server.pid == 0:
        return _of_the_owner(PURGE)
    if isinstance(server, PostgresServer):
        return Step(name=PURGE, seconds=0.0, detail="PostgreSQL has none")
    return purge_binary_logs(server)


def _settle(server: Server, cap_s: float) -> Step:
    if server.pid == 0:
        return _of_the_owner(SETTLE)
    rest = settling_postgres.settle if isinstance(server, PostgresServer) else settle
    return rest(server, cap_s)


def _of_the_owner(name: str) -> Step:
    detail = "an endpoint is its owner's: dbdyno changes nothing there but its own tables"
    return Step(name=name, seconds=0.0, done=False, detail=detail)


def catch_up(server: Server, steps: Steps) -> None:
    """Lets replicas apply what came before the trial, so that none begins with a debt of theirs."""
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
    """Writes out what is unwritten and makes the kernel forget every file's pages."""
    began, cache = time.monotonic(), cache or DROP_CACHES
    try:
        os.sync()
        cache.write_text(PAGES_AND_NAMES)
    except OSError as error:
        detail = f"{cache}: {error.strerror}; it takes root, and a container may refuse it"
        return Step(name="drop caches", seconds=time.monotonic() - began, done=False, detail=detail)
    return Step(name="drop caches", seconds=time.monotonic() - began)
