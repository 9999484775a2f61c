"""`dbdyno export` as it is typed: tables in a folder, their paths on stdout."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from dbdyno import __main__
from dbdyno.experiment.order import trials_of
from dbdyno.export.tables import TABLES
from dbdyno.store.store import Store
from support import making


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    plan = making.plan(blocks=1)
    with Store.open(tmp_path / "runs") as store:
        run = store.create_run(plan, "dbdyno compare a b", {}, 2)
        for trial in trials_of(plan, run.run_id):
            store.append(making.measurement(trial.system).model_copy(update={"trial": trial}))
    return tmp_path / "runs"


def test_a_stored_run_becomes_tables(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet, comma = tmp_path / "tables", tmp_path / "comma"
    arguments = ["export", "latest", "--workspace", str(workspace)]
    status = __main__.main([*arguments, "--parquet", str(parquet), "--csv", str(comma)])
    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    wanted = [parquet / f"{table.name}.parquet" for table in TABLES]
    wanted += [comma / f"{table.name}.csv" for table in TABLES]
    assert [Path(line) for line in said.out.splitlines()] == wanted
    trials = polars.read_parquet(parquet / "trials.parquet")
    assert trials["system"].sort().to_list() == [making.A, making.B]
    status_rows = polars.read_csv(comma / "status.csv")
    assert set(status_rows["name"]) == {"Questions", "Threads_running"}


def test_without_a_folder_nothing_is_exported(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["export", "latest", "--workspace", str(workspace)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--parquet DIR, --csv DIR or both" in said.err


def test_a_run_that_is_not_there_is_told(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", "20200101-000000-0000", "--parquet", str(tmp_path / "tables")]
    assert __main__.main([*arguments, "--workspace", str(workspace)]) == 1
    assert "no run 20200101-000000-0000 in this workspace" in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()
