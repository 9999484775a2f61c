"""The machine's speed is taken in a moment, and a disk that cannot be asked is none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dbdyno.experiment import witness


def test_arithmetic_and_syncs_take_some_time(tmp_path: Path) -> None:
    began_s = time.monotonic()
    taken = witness.probe_speed(tmp_path)
    assert 0.1 < taken.cpu_ms < 1000
    assert taken.sync_ms is not None
    assert 0 < taken.sync_ms < 5000
    assert time.monotonic() - began_s < 10
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_slow_is_asked_fewer_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def slow(descriptor: int) -> None:
        asked.append(descriptor)
        time.sleep(0.04)

    monkeypatch.setattr(witness.os, "fdatasync", slow)
    taken = witness.probe_speed(tmp_path)
    assert len(asked) == 3
    assert taken.sync_ms is not None
    assert taken.sync_ms >= 40


def test_without_a_folder_only_the_arithmetic_is_told(tmp_path: Path) -> None:
    assert witness.probe_speed(None).sync_ms is None
    assert witness.probe_speed(tmp_path / "missing").sync_ms is None
