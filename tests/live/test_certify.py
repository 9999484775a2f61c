"""The generator passes on this machine; a patient test."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dbdyno.experiment import certify
from dbdyno.judge.uses.power import difference_seen_in_time

pytestmark = [pytest.mark.live, pytest.mark.alone]


def test_the_generator_passes_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path))
    began_s = time.monotonic()
    made = certify.certify(lambda text: None, difference_seen_in_time)
    assert made.passed, [str(one) for one in made.facts(made.machine).faults()]
    assert time.monotonic() - began_s < 180
