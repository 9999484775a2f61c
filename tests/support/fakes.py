"""Fakes of servers, instances and progress; the processes behind them are real."""

import base64
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import dbdyno
from dbdyno._engine import Histogram
from dbdyno.errors import ServerError
from dbdyno.experiment.context import Makers
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.servers.base import MYSQL, Credentials, Endpoint
from support import making

FAKE_ENGINE = f"""\
import sys
sys.path[:1] = [{str(Path(__file__).parent)!r}, {str(Path(dbdyno.__file__).parents[1])!r}]
import fake_engine
fake_engine.main()
"""
"""Half the time of a script: a module is compiled once, and of the packages only ours is needed."""


def blob():
    """100 events of 80 ms, as base64."""
    histogram = Histogram()
    for _ in range(100):
        histogram.record(80_000_000)
    return base64.b64encode(histogram.encode()).decode()


def command(**options):
    """The command of a fake engine that behaves as `options` say."""
    text = json.dumps({"blob": blob(), **options}, default=str)
    return (sys.executable, "-S", "-c", FAKE_ENGINE, text)


class FakeServer:
    """A sleeping process with counters that grow by 2000 a reading."""

    driver, database = MYSQL, "sbtest"
    credentials = Credentials("load", "secret-4711")

    def __init__(self, label):
        self.label = label
        self.process = subprocess.Popen(["sleep", "600"])
        self.pid = self.process.pid
        self.endpoint = Endpoint("127.0.0.1", self.pid, None)
        self.readings = 0
        self.asked = []
        self.stopped = self.killed = 0

    def version(self):
        return "8.0.15-fake"

    def settings(self):
        self._answer()
        return {"innodb_flush_log_at_trx_commit": "1"}

    def status(self):
        self._answer()
        self.readings += 1
        return {"Questions": 2000.0 * self.readings, "Uptime": 10.0 + self.readings}

    def observer(self):
        return FakeObserver(self)

    def ask(self, sql):
        self._answer()
        self.asked.append(sql)
        return [("1000", "123456789")]

    def _answer(self):
        if not self.alive():
            raise ServerError(f"{self.label}: no answer", found="connection refused")

    def alive(self):
        return self.process.poll() is None

    def last_words(self):
        return "[ERROR] got signal 9"

    def stop(self, patience_s=60.0):
        self.stopped += 1
        self.patience_s = patience_s
        clean = self.alive()
        self.process.kill()
        self.process.wait()
        if not clean:
            raise ServerError(f"{self.label}: it had died before it was asked to stop")

    def kill(self):
        self.killed += 1
        self.process.kill()
        self.process.wait()


class FakeObserver:
    """Counts its own readings, and not those of the server's edges."""

    def __init__(self, server):
        self.server, self.asked, self.closed = server, 0, False

    def read(self):
        self.server._answer()
        self.asked += 1
        return {"Questions": 10.0 * self.asked, "Threads_running": 2.0}

    def close(self):
        self.closed = True


class FakeInstance:
    """Files that are not there; what was asked of it stands in `calls`."""

    driver = MYSQL

    def __init__(self, spec, folder, calls, broken=()):
        self.spec, self.folder, self.calls, self.broken = spec, folder, calls, broken
        self.server = None
        self.started_with = []

    def note(self, what):
        self.calls.append((what, self.spec.label))

    def start(self, settings=None):
        self.note("start")
        self.started_with.append(dict(settings or {}))
        if self.spec.label in self.broken:
            raise ServerError(f"{self.spec.label}: it does not start", found="exit 1")
        assert self.server is None or not self.server.alive(), "two servers on one folder"
        self.server = FakeServer(self.spec.label)
        return self.server

    def snapshot(self):
        self.note("snapshot")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "snapshot").touch()

    def has_snapshot(self):
        return (self.folder / "snapshot").exists()

    def data_bytes(self):
        return 64 * 1024**2

    def restore(self):
        self.note("restore")
        assert self.has_snapshot()

    def close(self):
        self.note("close")
        if self.server is not None:
            with suppress(ServerError):
                self.server.stop()


class Progress:
    """Keeps all it is told; `at_interval` is called with each interval."""

    def __init__(self, at_interval=lambda trial, interval: None):
        self.stages, self.begun, self.ended, self.left = [], [], [], []
        self.at_interval = at_interval

    def stage(self, text):
        self.stages.append(text)

    def begin(self, trial, number, total, seconds_left):
        self.begun.append((number, total))
        self.left.append(seconds_left)

    def interval(self, trial, interval, seconds_left):
        self.left.append(seconds_left)
        self.at_interval(trial, interval)

    def end(self, trial, measurement, seconds_left):
        self.ended.append(measurement)
        self.left.append(seconds_left)


class SideBySide:
    """So many machines that run blocks, whose trials of 12 s are made and all begin at once."""

    def __init__(self, machines):
        self.machines = machines

    def count(self):
        return self.machines

    def run(self, context, run_id, blocks):
        while trials := blocks.next():
            for trial in trials:
                made = making.measurement(trial.system, threads=trial.cell.threads)
                context.store.append(made.model_copy(update={"trial": trial}))
                context.schedule.ended(trial)


class World:
    """Makers of fakes, and every instance they made."""

    def __init__(self, broken=(), **options):
        self.calls = []
        self.instances = []
        self.broken = broken
        self.makers = Makers(
            open_instance=self.open,
            command=command(**options),
            ceiling=lambda plan, trial, driver: 10_000.0,
            certificate=CertificateFacts,
        )

    def open(self, spec, folder, report):
        instance = FakeInstance(spec, folder, self.calls, self.broken)
        self.instances.append(instance)
        return instance

    def servers_left(self):
        return [i.server.pid for i in self.instances if i.server and i.server.alive()]
