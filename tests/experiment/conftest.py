"""Runs over fakes take the machine's speed before each arm; here it need not be exact."""

import pytest

from dbdyno.experiment.watch import probe


@pytest.fixture(autouse=True)
def quick_probe(monkeypatch):
    monkeypatch.setattr(probe, "PIECES", 1)
