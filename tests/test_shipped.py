"""Plans and workloads that come with dbdyno are found by their names in a folder without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.__main__ import main
from dbdyno.cli.plan import read_file
from dbdyno.plan.template import take_script
from support.source import LAB

PLANS, WORKLOADS = LAB / "plans", LAB / "workloads"
OWN = "title: own\nsystems: [mysql:5.7.22, mysql:8.0.15]\nworkloads: oltp_read_only\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("typed", ["plans/versions.yaml", "versions.yaml", "versions"])
def test_a_plan_is_found_by_name(typed: str) -> None:
    assert read_file(Path(typed), "", None) == read_file(PLANS / "versions.yaml", "", None)


@pytest.mark.parametrize("typed", ["queue.yaml", "workloads/queue.yaml", "tpcc.lua"])
def test_a_workload_is_found_by_name(typed: str, folder: Path) -> None:
    workload, whole = {"name": typed}, {"name": str(WORKLOADS / Path(typed).name)}
    assert take_script(workload, folder) is None
    assert take_script(whole, folder) is None
    assert workload == whole


def test_a_file_of_the_folder_wins(folder: Path) -> None:
    (folder / "versions.yaml").write_text(OWN)
    (folder / "tpcc.lua").write_text("-- own\n")
    (folder / "versions").mkdir()
    workload = {"name": "tpcc.lua"}
    assert take_script(workload, folder) is None
    assert workload["script"] == "-- own\n"
    assert read_file(Path("versions.yaml"), "", None).title == "own"
    assert read_file(Path("versions"), "", None).title != "own"


@pytest.mark.parametrize(("kind", "files"), [("plan", PLANS), ("workload", WORKLOADS)])
def test_they_are_listed_with_their_folder(
    kind: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([kind, "list"]) == 0
    said = capsys.readouterr()
    assert {path.name for path in files.iterdir()} <= set(said.out.splitlines())
    assert said.err == f"the files are in {files}\n"


def test_a_template_is_checked_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", "check", "shop.yaml"]) == 0
    assert capsys.readouterr().out.startswith("tables: ")
