"""The generator passes on this machine; a patient test."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dbdyno.experiment import certify
from dbdyno.judge.uses.power import difference_seen_in_time

pytestmark = [pytest.mark.live, pytest.mark.nightly]
TRIES = 2
"""What disturbs one minute may be over in the next."""
STEAL_MAX = 0.01
"""Where others have more of the machine's CPU, a thread that is due waits until they let it go."""


def test_the_generator_passes_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path))
    for _ in range(TRIES):
        began_s = time.monotonic()
        made = certify.certify(lambda text: None, difference_seen_in_time)
        took_s = time.monotonic() - began_s
        if made.passed and took_s < 180:
            break
    facts = made.facts(made.machine)
    faults = [*facts.wrong, *facts.late]
    if made.noise.steal > STEAL_MAX and (faults or took_s >= 180):
        pytest.skip(f"others had {made.noise.steal:.1%} of this machine's CPU: {faults}")
    assert made.passed, faults
    assert took_s < 180
