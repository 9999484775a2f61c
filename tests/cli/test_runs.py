"""`dbdyno runs`: what is kept is listed and shown, and goes only when somebody says so."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno import __main__
from dbdyno.experiment.data import loads
from dbdyno.files import TEMPORARY_FOLDER, locked
from dbdyno.store.store import Store
from support.stored_run import store_made


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    store_made(tmp_path, (0.9, 0.9, 0.9))
    store_made(tmp_path, (0.7, 0.7, 0.7))
    data = tmp_path / "systems" / "mysql-1234"
    data.mkdir(parents=True)
    (data / "ibdata1").write_bytes(b"x" * 3 * 1024**2)
    return tmp_path


def runs(workspace: Path, *typed: str) -> int:
    return __main__.main(["runs", *typed, "--workspace", str(workspace)])


def ids(workspace: Path) -> list[str]:
    with Store.open(workspace) as store:
        return store.run_ids()


def test_runs_are_listed_with_what_they_take(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs(workspace, "list") == 0
    said = capsys.readouterr().out
    newest, oldest = ids(workspace)
    assert said.index(newest) < said.index(oldest)
    assert said.count("6 of 6 trials") == 2
    assert "servers' data: 3 MiB (dbdyno runs clean)" in said
    assert runs(workspace, "list", "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["run_id"] for one in document["runs"]] == [newest, oldest]
    assert document["runs"][0]["bytes"] > 10_000


def test_a_damaged_run_is_listed_beside_the_others(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest, _ = ids(workspace)
    with closing(sqlite3.connect(workspace / "dbdyno.sqlite")) as file:
        file.execute("DROP TRIGGER runs_stay_as_they_are")
        file.execute("UPDATE runs SET plan = '{' WHERE run_id = ?", (newest,))
        file.commit()
    assert runs(workspace, "list") == 0
    said = capsys.readouterr().out
    assert "cannot be read: " in said
    assert "6 of 6 trials" in said


def test_one_run_is_shown(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs(workspace, "show") == 0
    said = capsys.readouterr().out
    assert ids(workspace)[0] in said
    assert "mysql:5.7.22, mysql:8.0.15" in said
    assert "6 of 6 trials" in said


def test_a_run_goes_when_it_is_said_so(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest, oldest = ids(workspace)
    (workspace / newest).mkdir(exist_ok=True)
    (workspace / newest / "report.html").write_text("page")
    assert runs(workspace, "rm", newest) == 2
    assert "nothing was removed" in capsys.readouterr().err
    assert ids(workspace) == [newest, oldest]
    assert runs(workspace, "rm", newest, "--yes") == 0
    assert ids(workspace) == [oldest]
    assert not (workspace / newest).exists()
    with Store.open(workspace) as store:
        assert len(store.measurements(oldest)) == 6
        assert len(store.verified(oldest)) == 64
    with closing(sqlite3.connect(workspace / "dbdyno.sqlite")) as file:
        file.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
            file.execute("DELETE FROM measurements")
        (left,) = file.execute("SELECT count(*) FROM histograms").fetchone()
        (ours,) = file.execute(
            "SELECT count(*) FROM histograms JOIN measurements ON id = measurement_id"
        ).fetchone()
        assert left == ours > 0


def test_an_unknown_run_and_one_that_is_worked_on_stay(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest, _ = ids(workspace)
    assert runs(workspace, "rm", newest, "nonsense", "--yes") == 1
    assert "no run nonsense" in capsys.readouterr().err
    with Store.open(workspace) as store, store.locked(newest):
        assert runs(workspace, "rm", newest, "--yes") == 1
        assert "is being worked on" in capsys.readouterr().err
    assert len(ids(workspace)) == 2


def test_data_of_servers_go_but_not_those_in_use(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs(workspace, "clean") == 2
    assert "mysql-1234  3 MiB\n3 MiB in all\n" in capsys.readouterr().err
    (workspace / "systems" / "busy").mkdir()
    with locked(workspace / "locks" / "busy.lock", "busy"):
        assert runs(workspace, "clean", "--yes") == 0
    said = capsys.readouterr().err
    assert "busy stays: busy is being worked on" in said
    assert "3 MiB freed" in said
    assert [one.name for one in (workspace / "systems").iterdir()] == ["busy"]
    assert len(ids(workspace)) == 2


def test_data_of_a_fleets_hosts_here_go_too(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = workspace / "cache" / "fleet" / "1" / "systems" / "mysql-5678" / "1"
    load.mkdir(parents=True)
    (load / "ibdata1").write_bytes(b"x" * 2 * 1024**2)
    assert runs(workspace, "clean", "--yes") == 0
    assert "5 MiB freed" in capsys.readouterr().err
    assert not load.parent.exists()


def test_whatever_command_is_next_clears_what_killed_ones_left(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = workspace / "cache"
    parents = [
        workspace / "tmp",
        *(cache / each for each in ("", "servers", "pristine", "fleet/1")),
    ]
    monkeypatch.setattr(tempfile, "tempdir", str(workspace / "tmp"))
    left = [parent / f"{TEMPORARY_FOLDER}12345678" for parent in parents]
    for folder in left:
        (folder / "server").mkdir(parents=True)
    assert runs(workspace, "list") == 0
    assert not [folder for folder in left if folder.exists()]


def test_data_that_workspaces_share_go_too_but_not_beside_those_in_use(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = workspace / "cache"
    for load in ("mysql-5678/1", "mysql-5678/2", "mysql-9abc/1"):
        data = cache / "systems" / load / "snapshot" / "data"
        data.mkdir(parents=True)
        (data / "ibdata1").write_bytes(b"x" * 2 * 1024**2)
    assert runs(workspace, "list") == 0
    assert "servers' data: 9 MiB (dbdyno runs clean)" in capsys.readouterr().out
    with locked(loads.lock_of(cache, "mysql-9abc", "1"), "another lab's"):
        assert runs(workspace, "clean", "--yes") == 0
    said = capsys.readouterr().err
    assert f"{cache / 'systems' / 'mysql-5678'}  4 MiB" in said
    assert "mysql-9abc stays: mysql-9abc is being worked on" in said
    assert "7 MiB freed" in said
    assert [one.name for one in (cache / "systems").iterdir()] == ["mysql-9abc"]
