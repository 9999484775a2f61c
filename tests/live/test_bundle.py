"""A bundle that came from elsewhere is run again on real servers, and both runs are compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import DatasetPlan, Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.store import bundle
from dbdyno.store.reading import StoredRun
from support import making
from support.lab_process import finished, processes_of, stored
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live


def plan() -> Plan:
    crowded = {"disturbance_max": 1.0}  # other tests run meanwhile
    asked = making.plan(blocks=1, threads=(2,), window_s=1, warmup_s=0, design=crowded)
    systems = tuple(
        SystemPlan(label=label, reference="mysql:5.7.22", settings=SMALL_REDO) for label in "ab"
    )
    dataset = DatasetPlan(tables=1, rows=1000)
    return asked.model_copy(update={"systems": systems, "dataset": dataset})


def sealed(folder: Path) -> Path:
    """What somebody measured on a machine that is faster than this one."""
    run = StoredRun(
        run_id="20200101-000000-abcd",
        created_at="2020-01-01T00:00:00+00:00",
        finished_at="2020-01-01T00:01:00+00:00",
        plan=plan(),
        command="dbdyno run theirs.yaml",
        dbdyno_version="0.1.0",
        environment={"kernel": "Linux 2.6"},
        trials_planned=2,
    )
    path = folder / "theirs.dbdyno.zip"
    bundle.write(path, run, [_measured(run, label) for label in ("a", "b")])
    return path


def _measured(run: StoredRun, label: str) -> Measurement:
    made = making.measurement(label, threads=2, tps=90_000 if label == "a" else 45_000)
    return made.model_copy(update={"trial": made.trial.model_copy(update={"run_id": run.run_id})})


def test_a_bundle_is_run_again_and_compared(workspace: Path) -> None:
    path = sealed(workspace.parent)
    ended = finished(workspace, "replay", str(path), "--output", "json")
    assert ended.returncode == 0, ended.stderr
    read = json.loads(ended.stdout)
    (compared,) = read["agreements"]
    assert compared["first"]["estimate"]["ratio"] == pytest.approx(0.5)
    assert compared["second"]["estimate"]["blocks"] == 1
    assert compared["ratio"] == pytest.approx(2 * compared["second"]["estimate"]["ratio"])
    changed = {row["what"]: row for row in read["differences"]}
    assert changed["kernel"]["first"] == "Linux 2.6"
    assert changed["b: version"]["second"].startswith("5.7.22")
    assert changed["a: version"]["first"] == "a"
    assert len(stored(workspace)) == 2
    assert processes_of(workspace) == []
    newest = read["second"]["run_id"]
    ended = finished(workspace, "replay", newest, "--with", str(path))
    assert ended.returncode == 0, ended.stderr
    assert f"first: run {newest}" in ended.stdout
