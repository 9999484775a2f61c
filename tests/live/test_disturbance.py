"""A CPU hog beside one of two equal servers gets no winner: one real run of `validation`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from validation.disturbance import SECOND, Hogs, asked, measured, seen

from dbdyno.judge.verdict import Word
from dbdyno.measurement.disturbance import disturbed
from dbdyno.plan.plan import TrialPlan
from dbdyno.store.store import Store

pytestmark = [pytest.mark.live, pytest.mark.alone]


def test_a_hog_beside_one_of_two_equal_servers_gets_no_winner() -> None:
    plan = asked("mysql:5.7.22", blocks=1, window_s=2)
    plan = plan.model_copy(update={"trial": TrialPlan(warmup_s=0, window_s=2)})
    limit = plan.design.disturbance_max
    with tempfile.TemporaryDirectory(prefix="dbdyno-hog-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Store.open(folder) as store:
            stored = measured(store, folder, plan, Hogs(1, 1.0, 0))
    assert all(m.failure is None for m in stored)
    found = seen(stored, plan, hogs=1, chance=1.0)
    assert found.repeated == 2  # the bound: it never becomes quiet
    assert all(disturbed(m, limit) for m in stored if m.trial.system == SECOND)
    assert found.word is Word.VOID
