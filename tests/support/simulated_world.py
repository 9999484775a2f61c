"""A world in which runs go wrong as a seed says, in no time: servers, engine, disk, user and clock.

Nothing of it is a process, and no second passes: the lab's modules get a clock that only moves
when somebody sleeps or waits for a message. Wherever the lab hands over (a message of the engine, a
start, a restore, a row stored, a word of progress) the seed may let something happen.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dbdyno.errors import LoadError, ServerError, StoreError
from dbdyno.experiment import arm, evidence, trial
from dbdyno.experiment.context import Makers
from dbdyno.experiment.data import dataset, disk
from dbdyno.experiment.engine import record
from dbdyno.experiment.engine.process import Engine, Message
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Probe
from dbdyno.servers.base import MYSQL, Credentials, Endpoint
from dbdyno.store.store import Store
from support import fake_engine
from support.fakes import blob

HANG_S = 10_000.0
RETURNS = 0.3
"""How likely a server that hangs goes on before the lab gives up."""
BLOB = blob()


class Killed(BaseException):
    """The lab's process is gone: nothing of it runs on."""


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return round(self.now_s * 1e9)

    perf_counter = thread_time = time = monotonic

    def sleep(self, seconds: float) -> None:
        self.now_s += max(0.0, seconds)


class World:
    """What the lab works on.

    Args:
        chance: of something happening at each hand-over.
    """

    def __init__(self, seed: int, chance: float) -> None:
        self.random, self.chance = random.Random(seed), chance
        self.clock = Clock()
        self.servers: list[SimulatedServer] = []
        self.happened: list[str] = []
        self.makers = Makers(
            open_instance=lambda spec, folder, report: SimulatedInstance(self, spec, folder),
            ceiling=lambda plan, first, driver: 10_000.0,
            certificate=CertificateFacts,
            engine=self.engine,
        )

    def may(self, what: str) -> bool:
        """Whether that happens now."""
        if self.random.random() >= self.chance:
            return False
        self.happened.append(what)
        return True

    def hand_over(self) -> None:
        """What may come from outside at any moment."""
        if self.may("interrupt"):
            raise KeyboardInterrupt
        if self.may("kill"):
            for server in self.servers:  # the kernel ends what a dead lab has started
                server.is_alive = False
            raise Killed
        if self.may("suspend"):
            self.clock.now_s += HANG_S

    def engine(self, do: str, spec: Mapping[str, Any], **others: object) -> Engine:
        """A load on the server whose number stands in the endpoint's port."""
        assert do == "run"
        if self.may("engine does not start"):
            raise LoadError("the engine's child cannot be started", found="no memory")
        return SimulatedEngine(self, spec, self.servers[spec["endpoint"]["port"] - 1])

    def alive(self) -> list[SimulatedServer]:
        """The servers that run."""
        return [server for server in self.servers if server.is_alive]


class SimulatedEngine(Engine):
    """Tells a second of load after the other, unless the seed lets something else happen."""

    pid = 0

    def __init__(self, world: World, spec: Mapping[str, Any], server: SimulatedServer) -> None:
        self._world, self._spec, self._server = world, spec, server
        self._told: list[dict[str, Any]] = []
        self._ended: Message | None = None
        self._hangs = self._stopped = False

    def message(self, timeout_s: float | None = None) -> Message | None:
        world = self._world
        if self._ended is not None:
            return self._ended
        world.hand_over()
        if world.may("engine dies"):
            raise record.died("it was killed by SIGKILL", "run", self._server.label, [])
        if world.may("server dies"):
            self._server.is_alive = False
        self._hangs = self._hangs or world.may("server hangs")
        if self._hangs and not self._stopped:
            patience_s = HANG_S if timeout_s is None else timeout_s
            if world.random.random() < RETURNS:
                world.happened.append("server returns")
                self._hangs, patience_s = False, patience_s / 2
            world.clock.sleep(patience_s)
            return None
        warmup, window = int(self._spec["warmup_s"]), int(self._spec["window_s"])
        second = len(self._told)
        if self._stopped or not self._server.is_alive or second == warmup + window:
            self._ended = Message("record", self._record())
            return self._ended
        if timeout_s is not None and timeout_s < 1:
            world.clock.sleep(timeout_s)
            return None
        world.clock.sleep(1.0)
        phase = "warmup" if second < warmup else "measured"
        self._told.append(fake_engine.interval(phase, second, BLOB))
        return Message("interval", fake_engine.told(self._told[-1]))

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        self._stopped = True

    def _record(self) -> dict[str, Any]:
        lost = {"code": 2013, "sqlstate": None, "message": "Lost connection", "stage": "run"}
        return {
            "engine_version": "simulated",
            "reactor": "epoll",
            "threads": 1,
            "placements": [],
            "distribution": self._spec["distribution"],
            "prepared": self._spec["prepared"],
            "intervals": self._told,
            "measured": {"cpu_s": 0.5, "cpu_share_max": 0.25},
            "failure": None if self._server.is_alive else lost,
        }


class SimulatedServer:
    """A server without a process of its own."""

    driver, database = MYSQL, "sbtest"
    credentials = Credentials("load", "secret")

    def __init__(self, world: World, label: str) -> None:
        self._world, self.label, self.is_alive = world, label, True
        world.servers.append(self)
        self.pid = os.getpid()
        self.endpoint = Endpoint("127.0.0.1", len(world.servers), None)
        self._readings = 0

    def alive(self) -> bool:
        return self.is_alive

    def last_words(self) -> str:
        return "[ERROR] got signal 9"

    def version(self) -> str:
        return self._answered("8.0.15")

    def settings(self) -> dict[str, str]:
        return self._answered({"innodb_flush_log_at_trx_commit": "1"})

    def status(self) -> dict[str, float]:
        self._readings += 1
        return self._answered({"Questions": 2000.0 * self._readings})

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        return self._answered([("1000", "123456789")])

    def stop(self, patience_s: float = 60.0) -> None:
        was_alive, self.is_alive = self.is_alive, False
        if not was_alive:
            raise ServerError(f"{self.label}: it had died before it was asked to stop")

    def kill(self) -> None:
        self.is_alive = False

    def _answered(self, answer: Any) -> Any:
        if self.is_alive and self._world.may("server dies"):
            self.is_alive = False
        if not self.is_alive:
            raise ServerError(f"{self.label}: no answer", found="connection refused")
        return answer


class SimulatedInstance:
    """Files that are always there."""

    driver = MYSQL

    def __init__(self, world: World, spec: Any, folder: Path) -> None:
        self._world, self.spec, self.folder = world, spec, folder
        self.server: SimulatedServer | None = None

    def start(self, settings: Mapping[str, Any] | None = None) -> SimulatedServer:
        self._world.hand_over()
        assert self.server is None or not self.server.is_alive, "two servers on one folder"
        if self._world.may("server does not start"):
            raise ServerError(f"{self.spec.label}: it does not start", found="exit 1")
        self.server = SimulatedServer(self._world, self.spec.label)
        return self.server

    def restore(self) -> None:
        self._world.hand_over()
        if self._world.may("restore fails"):
            raise ServerError(f"{self.spec.label}: the copy differs", found="a page")

    def snapshot(self) -> None:
        (self.folder / "snapshot").touch()

    def has_snapshot(self) -> bool:
        return (self.folder / "snapshot").exists()

    def data_bytes(self) -> int:
        return 1 << 20

    def close(self) -> None:
        if self.server is not None:
            self.server.is_alive = False


class SimulatedProgress:
    """Every word of it is a moment at which something may happen."""

    def __init__(self, world: World) -> None:
        self._world = world

    def stage(self, text: str) -> None:
        self._world.hand_over()

    def begin(self, *others: object) -> None:
        self._world.hand_over()

    def interval(self, *others: object) -> None:
        self._world.hand_over()

    def end(self, *others: object) -> None:
        self._world.hand_over()


class _Nothing:
    """In place of what watches with threads and real seconds."""

    def __init__(self, *others: object) -> None:
        pass

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def samples(self, origin_s: float) -> tuple[()]:
        return ()

    def series(self, origin_s: float) -> None:
        return None


@contextmanager
def patched(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The lab in that world, for the length of the block."""
    with monkeypatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("dbdyno.experiment.") and hasattr(module, "time"):
                patch.setattr(module, "time", world.clock)
        patch.setattr(trial, "Watch", _Nothing)
        patch.setattr(trial, "StatusWatch", _Nothing)
        probe = Probe(cpu_ms=10.0, sync_ms=1.0)
        patch.setattr(evidence, "probe_speed", lambda folder: probe)
        patch.setattr(dataset, "_load", lambda context, server: world.hand_over())
        patch.setattr(disk, "check_during", _filling(world))
        patch.setattr(arm.disk, "check_during", _filling(world))
        patch.setattr(Store, "append", _appending(world, Store.append))
        yield


def _filling(world: World) -> Any:
    def check(folders: Sequence[Path]) -> None:
        if world.may("disk fills"):
            raise LoadError("the disk is nearly full", found="1 MB free")

    return check


def _appending(world: World, append: Any) -> Any:
    """A kill may come before or after the row is on the disk, a full disk only before."""

    def appended(store: Store, measurement: Measurement) -> None:
        if world.may("no room for a row"):
            raise StoreError("the disk takes no more", found="ENOSPC")
        world.hand_over()
        append(store, measurement)
        world.hand_over()

    return appended
