"""A run by any of its names: an id, `latest`, its folder, its workspace, a bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import BundleError, StoreError
from dbdyno.experiment.schedule import order
from dbdyno.experiment.schedule.pilot import foreseen
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.load import LoadPlan, PilotFound
from dbdyno.plan.plan import DesignPlan
from dbdyno.store import bundle, evidence
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store
from support import making
from support.stored_run import store_made


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    store_made(folder, (0.9, 0.9, 0.9))
    return folder


def test_all_names_lead_to_the_same_run(workspace: Path, tmp_path: Path) -> None:
    latest = evidence.load("latest", workspace)
    (workspace / latest.run.run_id).mkdir()
    for name in (latest.run.run_id, workspace, workspace / latest.run.run_id):
        assert evidence.load(name, workspace) == latest
    assert latest.folder == workspace / latest.run.run_id
    assert latest.complete
    path = tmp_path / "b.zip"
    bundle.write(path, latest.run, latest.measurements)
    opened = evidence.load(path, tmp_path / "elsewhere")
    assert (opened.run, opened.measurements) == (latest.run, latest.measurements)
    assert opened.folder.parent == tmp_path / "elsewhere" / "bundles"
    assert opened.facts == latest.facts
    assert not (tmp_path / "elsewhere").exists()


def test_a_run_that_was_decided_early_is_complete(tmp_path: Path) -> None:
    decided = making.plan(blocks=12, design={"stop": "decided"})
    run = store_made(tmp_path, (0.9, 0.9, 0.9), plan=decided, planned=24)
    assert not evidence.load("latest", tmp_path).complete
    with Store.open(tmp_path) as store:
        store.finish(run.run_id)
    kept = evidence.load("latest", tmp_path)
    assert (kept.complete, kept.facts.trials_planned) == (True, 6)


FOUND = PilotFound(
    workload="oltp_read_write",
    setting="default",
    sustained_per_s={making.A: 1000.0, making.B: 900.0},
    rates_per_s=(450.0, 720.0),
)
SHARES = LoadPlan.model_validate({"rates": ["50%", "80%"]})


@pytest.mark.parametrize(
    ("load", "blocks"),
    [
        (LoadPlan(threads=(1, 8)), 3),
        (SHARES, 3),
        (SHARES.model_copy(update={"pilot": (FOUND,)}), 6),
        (LoadPlan.model_validate({"rates": ["100"], "threads": [4]}), 6),
    ],
)
def test_a_run_has_the_trials_that_the_bench_makes(load: LoadPlan, blocks: int) -> None:
    plan = making.plan(blocks=blocks, load=load)
    made = len(order.trials_of(foreseen(plan), ""))
    run = StoredRun("run-1", "", "", plan, "", "0.1.0", {}, made)
    assert evidence.Evidence(run, (), Path()).trials_planned == made
    early = replace(run, plan=making.with_parts(plan, design={"stop": "decided"}))
    third = making.measurement(block=2)
    assert evidence.Evidence(early, (third,), Path()).trials_planned == made // blocks * 3


def test_a_run_whose_pilot_has_not_ended_is_not_complete(tmp_path: Path) -> None:
    for load, complete in ((SHARES, False), (SHARES.model_copy(update={"pilot": (FOUND,)}), True)):
        asked = making.plan(load=load, design=DesignPlan(blocks=1))
        run = StoredRun("run-1", "2026", None, asked, "", "0.1.0", {}, 4)
        cells = [Cell(workload="oltp_read_write", threads=64, rate_per_s=r) for r in (450, 720)]
        made = [making.with_trial(one, cell=cell) for one in making.pairs((0.9,)) for cell in cells]
        bundle.write(tmp_path / "b.zip", run, made)
        assert evidence.load(tmp_path / "b.zip", tmp_path).complete is complete


@pytest.mark.parametrize(
    ("failure", "impossible", "complete"),
    [(None, False, True), ("it died", False, False), ("it cannot", True, True)],
)
def test_a_run_is_judged_complete_alike_in_the_store_and_in_its_measurements(
    tmp_path: Path, failure: str | None, impossible: bool, complete: bool
) -> None:
    with Store.open(tmp_path) as store:
        run = store.create_run(making.plan(blocks=1), "dbdyno compare a b", {}, 2)
        for one in making.pairs((0.9,)):
            ended = {} if one.trial.system == making.A else {"failure": failure}
            made = one.model_copy(update={"impossible": impossible, **ended})
            store.append(making.with_trial(made, run_id=run.run_id))
        completion = evidence.completion(store, run.run_id)
        kept = evidence.of_stored(store, run, tmp_path)
        left = {m.trial.key for m in kept.measurements} - store.done(run.run_id, impossible=False)
    assert (completion.complete, completion.planned) == (kept.complete, kept.trials_planned)
    assert completion.complete is complete
    assert bool(left) is (failure is not None)
    assert completion.done == 1 + complete


def test_what_is_not_there_is_reported(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run 2026"):
        evidence.load("2026", workspace)
    with pytest.raises(StoreError, match="holds no run yet"):
        evidence.load("latest", tmp_path)
    with pytest.raises(BundleError, match=r"there is no file .*gone\.dbdyno\.zip"):
        evidence.load(tmp_path / "gone.dbdyno.zip", tmp_path)
    (tmp_path / "page.html").write_text("<html>")
    with pytest.raises(BundleError, match="is no evidence bundle"):
        evidence.load(tmp_path / "page.html", workspace)


def test_a_folder_of_that_name_elsewhere_hides_no_run(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latest").mkdir()
    assert evidence.load("latest", workspace).complete
