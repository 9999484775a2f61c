"""For the commands: a machine without servers, and reports whose charts nobody looks at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.cli import machines
from support import blank_charts, making
from support.world import World


@pytest.fixture(autouse=True)
def _blank_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    blank_charts.patch(monkeypatch)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Here the second system does 30 % less than the first one."""
    made = World(tps=lambda system, number: (1000.0 if system == making.A else 700.0) + number)
    makers = replace(made.makers, shares_loads=True)
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machines, "HERE", machines.Machines(makers))
    with made.lab():
        yield made
