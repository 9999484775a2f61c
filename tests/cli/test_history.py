"""`dbdyno history` and `dbdyno export` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_at_rates

from dbdyno import __main__
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.export.tables import TABLES
from dbdyno.store.store import Store
from support import making
from support.stored_run import store_made, store_trials


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for ratio in (0.95, 0.90, 0.80):
        store_made(folder, (ratio, ratio + 0.001, ratio - 0.001))
    store_made(folder, (), plan=making.plan(systems=(making.A,)), planned=3)
    return folder


def history(workspace: Path, *arguments: str) -> int:
    return __main__.main(["history", *arguments, "--workspace", str(workspace)])


def test_the_newest_comes_first(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history(workspace, making.B, "--output", "json") == 0
    ratios = [
        entry["verdict"]["estimate"]["ratio"]
        for entry in json.loads(capsys.readouterr().out)["verdicts"]
    ]
    assert ratios == pytest.approx([0.8, 0.9, 0.95], rel=1e-3)


def test_all_labels_and_the_newest_only(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert history(workspace, "--last", "2") == 0
    said = capsys.readouterr()
    assert said.out.count(" slower ") == 2
    assert said.err == "2 of 3 runs; for more: --last 3\n"
    assert history(workspace, "--output", "markdown") == 0
    assert capsys.readouterr().out.count("| slower |") == 3


def test_rates_within_a_latency_limit_have_a_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for limit in (1100.0, 1000.0):
        limits = {making.A: [1000.0] * 3, making.B: [limit] * 3}
        store_trials(tmp_path, plan_of(3), trials_at_rates(limits))
    assert history(tmp_path, making.B, "--output", "json") == 0
    newest, oldest = json.loads(capsys.readouterr().out)["verdicts"]
    assert (newest["verdict"]["word"], oldest["verdict"]["word"]) == ("equivalent", "better")


def test_a_label_that_was_never_compared_is_told(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert history(workspace, making.A) == 2
    said = capsys.readouterr().err
    assert "no run here compares mysql:5.7.22 with a baseline" in said
    assert "wanted: mysql:8.0.15" in said
    assert history(tmp_path) == 1


def test_a_history_can_be_chinese(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history(workspace, making.B, "--lang", "zh") == 0
    caption, heads, *rows = capsys.readouterr().out.splitlines()
    assert caption == "mysql:8.0.15 对 mysql:5.7.22"
    assert heads.split() == [*("单元", "时间", "测试", "版本", "判定", "变化", "[95", "%]", "区组")]
    assert [row.count("更慢") for row in rows] == [1, 1, 1]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    plan = making.plan(blocks=1)
    with Store.open(tmp_path / "runs") as store:
        run = store.create_run(plan, "dbdyno compare a b", {}, 2)
        for trial in trials_of(plan, run.run_id):
            store.append(making.measurement(trial.system).model_copy(update={"trial": trial}))
    return tmp_path / "runs"


def test_a_stored_run_becomes_tables(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet, comma = tmp_path / "tables", tmp_path / "comma"
    arguments = ["export", "latest", "--workspace", str(exported)]
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
    exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["export", "latest", "--workspace", str(exported)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--parquet DIR, --csv DIR or both" in said.err


def test_a_run_that_is_not_there_is_told(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", "20200101-000000-0000", "--parquet", str(tmp_path / "tables")]
    assert __main__.main([*arguments, "--workspace", str(exported)]) == 1
    assert "no run 20200101-000000-0000 in this workspace" in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()


def test_a_run_with_sampled_stacks_is_no_part_of_a_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_made(tmp_path, (0.9, 0.901, 0.899))
    sampling = making.plan(blocks=3, procedure={"sample_stacks": True})
    run = store_made(tmp_path, (0.5, 0.501, 0.499), plan=sampling)
    assert history(tmp_path, "--output", "json") == 0
    said = capsys.readouterr()
    (entry,) = json.loads(said.out)["verdicts"]
    assert entry["verdict"]["estimate"]["ratio"] == pytest.approx(0.9, rel=1e-3)
    assert f"run {run.run_id} is left out, as sampling stacks slowed its servers" in said.err
