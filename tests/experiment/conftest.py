"""A fake server, and the machine's speed, which over fakes need not be taken exactly."""

import pytest

from dbdyno.experiment.watch import probe
from support.fakes import FakeServer


@pytest.fixture(autouse=True)
def quick_probe(monkeypatch):
    monkeypatch.setattr(probe, "PIECES", 1)


@pytest.fixture
def server():
    started = FakeServer("a")
    yield started
    started.process.kill()
    started.process.wait()
