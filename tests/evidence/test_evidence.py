"""A run by any of its names: an id, `latest`, its folder, its workspace, a bundle."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import making
from tests.stored_run import store_made

from dbdyno import evidence
from dbdyno.errors import BundleError, StoreError
from dbdyno.evidence import bundle
from dbdyno.store import Store


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


def test_a_run_that_lacks_trials_is_not_complete(tmp_path: Path) -> None:
    store_made(tmp_path, (0.9,), planned=4)
    kept = evidence.load("latest", tmp_path)
    assert not kept.complete
    assert (kept.facts.complete, kept.facts.trials_planned) == (False, 4)


def test_a_run_that_was_decided_early_is_complete(tmp_path: Path) -> None:
    plan = making.plan(blocks=12)
    decided = plan.model_copy(update={"design": plan.design.model_copy(update={"stop": "decided"})})
    run = store_made(tmp_path, (0.9, 0.9, 0.9), plan=decided, planned=24)
    assert not evidence.load("latest", tmp_path).complete
    with Store.open(tmp_path) as store:
        store.finish(run.run_id)
    kept = evidence.load("latest", tmp_path)
    assert (kept.complete, kept.facts.trials_planned) == (True, 6)


def test_what_is_not_there_is_told(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run 2026"):
        evidence.load("2026", workspace)
    with pytest.raises(StoreError, match="holds no run yet"):
        evidence.load("latest", tmp_path)
    (tmp_path / "page.html").write_text("<html>")
    with pytest.raises(BundleError, match="is no evidence bundle"):
        evidence.load(tmp_path / "page.html", workspace)


def test_a_folder_of_that_name_elsewhere_hides_no_run(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latest").mkdir()
    assert evidence.load("latest", workspace).complete
