"""Plans, workloads and docs that come with dbdyno are found from a folder without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno import shipped
from dbdyno.__main__ import main
from dbdyno.cli.plan import read_file
from dbdyno.plan.template import take_script
from support.source import LAB, ROOT

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
    assert main(["workload", "check", "tpcc.lua"]) == 2
    assert "tpcc.lua is a Lua script, not a template" in capsys.readouterr().err


def test_an_error_names_pages_of_the_docs_by_their_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["servers", "get", "greatsql:8.0.32-26"]) == 2
    (page,) = re.findall(r"\S+/docs/\S+\.md", capsys.readouterr().err)
    assert Path(page) == ROOT / "docs" / "reference" / "servers.md"
    package = tmp_path / "site-packages" / "dbdyno"
    monkeypatch.setattr(shipped, "__file__", str(package / "shipped.py"))
    named = "see docs/how-to/gate.md and notes/docs/how-to/gate.md"
    assert shipped.with_pages(named) == named
    (package / "docs").mkdir(parents=True)
    assert shipped.with_pages(named) == named.replace("see ", f"see {package}/")
