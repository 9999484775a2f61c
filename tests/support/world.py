"""One world for runs without servers: servers, engine, disk, machine, user and clock.

Nothing of it is a process and no second passes: within `World.lab` the lab's modules have a clock
that moves when somebody sleeps or waits for a message. Servers and engine keep their books as real
ones do: events obey Little's law, counters grow by what was sent. A test says what goes wrong; or a
seed does, with a chance, wherever the lab hands over: a message of the engine, a start, a restore,
a row stored, a word of progress.
"""

from __future__ import annotations

import base64
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from dbdyno._engine import Histogram
from dbdyno.errors import LoadError, ServerError, StoreError
from dbdyno.experiment import evidence, trial
from dbdyno.experiment.context import Makers
from dbdyno.experiment.data import dataset, disk
from dbdyno.experiment.engine import ceiling, record
from dbdyno.experiment.engine.child import FINAL
from dbdyno.experiment.engine.process import Engine, Message
from dbdyno.experiment.watch import environment
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Probe, WatchSample
from dbdyno.plan.plan import DatasetPlan
from dbdyno.servers.base import MYSQL, Credentials, Endpoint
from dbdyno.store.store import Store
from support import fake_engine, making

HANG_S = 10_000.0
RETURNS = 0.3
"""How likely a server that hangs goes on before the lab gives up."""
NO_PID = 1 << 22
"""Above every process: Linux numbers no higher."""
SAMPLES_MAX = 20
"""More are not taken, since a suspended machine takes none."""
CAPACITY = 100
"""Events a second that a server can do where they fall due at a rate."""
LOST = {"code": 2013, "sqlstate": None, "message": "Lost connection", "stage": "run"}


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


@dataclass
class World:
    """The surroundings of a lab, and all that was asked of them.

    Attributes:
        seed, chance: of something happening at each hand-over.
        broken: labels of systems that do not start.
        kills: numbers of loads in whose first measured second their server is killed.
        at: what the user or a server does at a start or load of that number: ("run", 3) or
            ("start", 0), both counted from 0.
        fail: errors that the engine answers, by request.
        connections_max: of a system's server; a load of more is refused.
        tps: a system's events a second in its load of that number.
        service_ms: of an event at a rate, while nobody else uses the server.
        silent: events run and nothing is answered.
        dies: the engine does, after two intervals.
        deaf: the engine does not hear "stop".
        hangs: it says nothing.
        rows: of each table, as servers count them.
    """

    seed: int = 0
    chance: float = 0.0
    broken: Collection[str] = ()
    kills: Collection[int] = ()
    at: dict[tuple[str, int], BaseException] = field(default_factory=dict)
    fail: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    connections_max: Mapping[str, int] = field(default_factory=dict)
    tps: Callable[[str, int], float] = lambda system, number: 100.0
    service_ms: float = 10.0
    cpu_share_max: float = 0.25
    silent: bool = False
    dies: bool = False
    deaf: bool = False
    rows: int = DatasetPlan().rows
    hangs: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.clock = Clock()
        self.servers: list[FakeServer] = []
        self.instances: list[FakeInstance] = []
        self.calls: list[tuple[str, str]] = []
        self.requests: list[dict[str, Any]] = []
        self.happened: list[str] = []
        self.counts: Counter[str] = Counter()
        self.makers = Makers(
            open_instance=self.open,
            ceiling=lambda plan, first, driver: 10_000.0,
            certificate=CertificateFacts,
            engine=self.engine,
        )

    def open(self, spec: Any, folder: Path, report: object) -> FakeInstance:
        self.instances.append(FakeInstance(self, spec, folder))
        return self.instances[-1]

    def engine(
        self, do: str, spec: Mapping[str, Any], system: str = "", **others: object
    ) -> FakeEngine:
        """Answers a request, or puts a load on the server whose number is the endpoint's port."""
        if do == "run" and self.may("engine does not start"):
            raise LoadError("the engine's child cannot be started", found="no memory")
        self.requests.append({"do": do, **spec, **others, "password": None})
        return FakeEngine(self, do, spec, system)

    def running(self) -> list[FakeServer]:
        """The servers that run."""
        return [server for server in self.servers if server.is_alive]

    def next(self, kind: str) -> int:
        """The number of this start, load or probe, after what `at` has in store for it."""
        number = self.counts[kind]
        self.counts[kind] += 1
        if (happens := self.at.get((kind, number))) is not None:
            raise happens
        return number

    def may(self, what: str) -> bool:
        """Whether that happens now."""
        if not self.chance or self.random.random() >= self.chance:
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

    @contextmanager
    def lab(self) -> Iterator[None]:
        """The lab in this world, for the length of the block."""
        with pytest.MonkeyPatch.context() as patch:
            for name, module in list(sys.modules.items()):
                if name.startswith("dbdyno.experiment.") and hasattr(module, "time"):
                    patch.setattr(module, "time", self.clock)
            for room in (dataset, evidence, ceiling):
                patch.setattr(room, "EngineProcess", self.engine)
            patch.setattr(trial, "Watch", partial(FakeWatch, self))
            patch.setattr(trial, "StatusWatch", partial(FakeStatusWatch, self))
            patch.setattr(evidence, "probe_speed", self._probe)
            patch.setattr(environment, "describe", lambda workspace: {"kernel": "6.2"})
            patch.setattr(disk, "check_during", self._checking(disk.check_during))
            if self.chance:
                patch.setattr(Store, "append", self._appending(Store.append))
            yield

    def _probe(self, folder: Path | None) -> Probe:
        return Probe(cpu_ms=10.0 + self.next("probe") / 1e3, sync_ms=1.0)

    def _checking(self, check: Callable[[Sequence[Path]], None]) -> Any:
        def checked(folders: Sequence[Path]) -> None:
            if self.may("disk fills"):
                raise LoadError("the disk is nearly full", found="1 MB free")
            check(folders)

        return checked

    def _appending(self, append: Callable[[Store, Measurement], None]) -> Any:
        """A kill may come before or after the row is on the disk, a full disk only before."""

        def appended(store: Store, measurement: Measurement) -> None:
            if self.may("no room for a row"):
                raise StoreError("the disk takes no more", found="ENOSPC")
            self.hand_over()
            append(store, measurement)
            self.hand_over()

        return appended


class FakeEngine(Engine):
    """Tells a second of load after the other, or answers at once what is no load."""

    pid = 0

    def __init__(self, world: World, do: str, spec: Mapping[str, Any], system: str) -> None:
        self._world, self._do, self._spec, self._system = world, do, spec, system
        self._answers = fake_engine.answers(do, spec)
        self._told: list[dict[str, Any]] = []
        self._final: Message | None = None
        self._hangs = self._stopped = False
        if do == "run":
            self._number = world.next("run")
            self._of_system = world.next(f"run {system}")
            self._server = world.servers[spec["endpoint"]["port"] - 1]
            self._began_s = world.clock.now_s

    def message(self, timeout_s: float | None = None) -> Message | None:
        if self._final is not None:
            return self._final
        self._world.hand_over()
        if self._world.hangs:
            self._world.clock.sleep(HANG_S if timeout_s is None else timeout_s)
            return None
        if (error := self._refusal()) is not None:
            raise record.refused(error, self._do, self._system)
        if self._do != "run":
            message: Message | None = Message(*next(self._answers))
        else:
            message = self._driven(timeout_s)
        if message is not None and message.kind in FINAL:
            self._final = message
        return message

    def _refusal(self) -> Mapping[str, Any] | None:
        asked, limit = self._spec.get("connections", 0), self._world.connections_max
        if self._do == "run" and asked > limit.get(self._system, asked):
            message = f"max_connections is {limit[self._system]}, {asked} are wanted"
            return {"kind": "refused", "stage": "connect", "code": 1040, "message": message}
        return self._world.fail.get(self._do)

    def _driven(self, timeout_s: float | None) -> Message | None:
        world, second = self._world, len(self._told)
        if world.may("engine dies") or (world.dies and second == 2):
            last = ["thread panicked: index out of bounds"]
            raise record.died("it was killed by SIGKILL", "run", self._system, last)
        if world.may("server dies"):
            self._server.is_alive = False
        self._hangs = self._hangs or world.may("server hangs")
        if self._hangs and not self._stopped:
            patience_s = HANG_S if timeout_s is None else timeout_s
            if world.random.random() < RETURNS:
                world.happened.append("server returns")
                self._hangs, patience_s = False, patience_s / 2
                self._began_s += patience_s
            world.clock.sleep(patience_s)
            return None
        warmup, window = int(self._spec["warmup_s"]), int(self._spec["window_s"])
        if self._stopped or not self._server.is_alive or second == warmup + window:
            return Message("record", self._record())
        left_s = self._began_s + second + 1 - world.clock.now_s
        if timeout_s is not None and timeout_s < left_s:
            world.clock.sleep(timeout_s)
            return None
        world.clock.sleep(left_s)
        self._told.append(self._interval("warmup" if second < warmup else "measured", second))
        if second == warmup and self._number in world.kills:
            self._server.is_alive = False
        told = fake_engine.message(self._told[-1])
        if self._spec.get("tell_records"):
            told["record"] = self._told[-1]
        self._server.questions += told["queries"]
        return Message("interval", told)

    def _interval(self, phase: str, second: int) -> dict[str, Any]:
        """What a server did in a second: all that was sent, or what it can of what fell due."""
        world, spec = self._world, self._spec
        events_per_s, due = world.tps(self._system, self._of_system), {}
        latency_s = spec["connections"] / events_per_s
        if rate := spec.get("rate_per_s"):
            events_per_s = min(rate, CAPACITY)
            latency_s = world.service_ms / 1e3 / max(1 - rate / CAPACITY, 0.001)
            backlog = round((rate - events_per_s) * (second + 1))
            due = {"arrivals": _in_second(rate, second), "backlog": backlog}
        events, latency_ns = _in_second(events_per_s, second), round(latency_s * 1e9)
        if world.silent:
            events, due = 0, {"in_flight": spec["connections"]}
        blob = histogram(events, latency_ns)
        workload = spec["workload"]["name"]
        return fake_engine.interval(phase, second, events, latency_ns, workload, blob, **due)

    def stop(self) -> None:
        self._stopped = not self._world.deaf

    def close(self) -> None:
        self._stopped = True

    def _record(self) -> dict[str, Any]:
        measured = {"cpu_s": 0.5, "cpu_share_max": self._world.cpu_share_max}
        failure = None if self._server.is_alive else LOST
        return fake_engine.record(self._spec, self._told, measured=measured, failure=failure)


def _in_second(rate: float, second: int) -> int:
    return round(rate * (second + 1)) - round(rate * second)


@cache
def histogram(events: int, latency_ns: int) -> str:
    histogram = Histogram()
    for _ in range(events):
        histogram.record(latency_ns)
    return base64.b64encode(histogram.encode()).decode()


class FakeServer:
    """A server without a process of its own; it counts what it is sent."""

    driver, database = MYSQL, "sbtest"
    credentials = Credentials("load", "secret-4711")

    def __init__(self, world: World, label: str) -> None:
        world.servers.append(self)
        self.world, self.label, self.is_alive = world, label, True
        number = len(world.servers)
        self.pid = NO_PID + number
        self.endpoint = Endpoint("127.0.0.1", number, None)
        self.began_s = world.clock.now_s
        self.questions = self.readings = self.stopped = self.killed = 0
        self.patience_s = 0.0
        self.asked: list[str] = []

    def alive(self) -> bool:
        return self.is_alive

    def last_words(self) -> str:
        return "[ERROR] got signal 9"

    def version(self) -> str:
        self._answer()
        return "8.0.15-fake"

    def settings(self) -> dict[str, str]:
        self._answer()
        return dict(making.SETTINGS)

    def status(self) -> dict[str, float]:
        self._answer()
        self.readings += 1
        uptime_s = self.world.clock.now_s - self.began_s
        return {"Questions": float(self.questions), "Uptime": uptime_s}

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        self._answer()
        self.asked.append(sql)
        return [(str(self.world.rows), "123456789")]

    def _answer(self) -> None:
        if self.is_alive and self.world.may("server dies"):
            self.is_alive = False
        if not self.is_alive:
            raise ServerError(f"{self.label}: no answer", found="connection refused")

    def stop(self, patience_s: float = 60.0) -> None:
        self.stopped += 1
        self.patience_s = patience_s
        was_alive, self.is_alive = self.is_alive, False
        if not was_alive:
            raise ServerError(f"{self.label}: it had died before it was asked to stop")

    def kill(self) -> None:
        self.killed += 1
        self.is_alive = False


class FakeInstance:
    """Files that are not there, but for the mark of a snapshot."""

    driver = MYSQL

    def __init__(self, world: World, spec: Any, folder: Path) -> None:
        self.world, self.spec, self.folder = world, spec, folder
        self.server: FakeServer | None = None
        self.started_with: list[dict[str, Any]] = []

    def _do(self, what: str) -> None:
        self.world.hand_over()
        self.world.calls.append((what, self.spec.label))

    def start(self, settings: Mapping[str, Any] | None = None) -> FakeServer:
        self._do("start")
        self.world.next("start")
        self.started_with.append(dict(settings or {}))
        if self.spec.label in self.world.broken or self.world.may("server does not start"):
            raise ServerError(f"{self.spec.label}: it does not start", found="exit 1")
        assert self.server is None or not self.server.is_alive, "two servers on one folder"
        self.server = FakeServer(self.world, self.spec.label)
        return self.server

    def restore(self) -> None:
        self._do("restore")
        assert self.has_snapshot()
        if self.world.may("restore fails"):
            raise ServerError(f"{self.spec.label}: the copy differs", found="a page")

    def snapshot(self) -> None:
        self._do("snapshot")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "snapshot").touch()

    def has_snapshot(self) -> bool:
        return (self.folder / "snapshot").exists()

    def data_bytes(self) -> int:
        return 64 << 20

    def close(self) -> None:
        self.world.calls.append(("close", self.spec.label))
        if self.server is not None:
            self.server.is_alive = False


class FakeWatch:
    """Has seen the host at rest in each second of a trial; counters were read at its edges only."""

    latest: Any = None

    def __init__(self, world: World, *others: object) -> None:
        self._world, self._began_s = world, world.clock.now_s

    def __enter__(self) -> FakeWatch:
        return self

    def __exit__(self, *error: object) -> None:
        self._ended_s = self._world.clock.now_s

    def samples(self, origin_s: float) -> tuple[WatchSample, ...]:
        seconds = range(min(int(self._ended_s - origin_s), SAMPLES_MAX))
        return tuple(making.watch_sample(second, 4, 1.0, 0.25, 0.0, 0.0) for second in seconds)

    def series(self, origin_s: float) -> None:
        return None


class FakeStatusWatch(FakeWatch):
    """Has read a counter of the server, besides."""

    latest = {"Threads_running": 4.0}
