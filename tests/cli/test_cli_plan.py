"""`dbdyno plan` and the budget of `dbdyno run`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.__main__ import main
from dbdyno.cli import flow
from dbdyno.cli.plan import read
from dbdyno.errors import UsageError
from dbdyno.plan.plan import Plan
from dbdyno.plan.schema import schema

TEXT = """
systems: ["mysql:5.7.22", "mysql:8.0.15"]
workloads: [oltp_read_only]
design: {blocks: 10}
scales:
  small: {dataset: {rows: 1000}, load: {threads: 1}, trial: {warmup: 1s, window: 5s}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "plan.yaml"
    file.write_text(TEXT)
    return file


def test_show_is_data_on_stdout(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "show", str(path), "--scale", "small"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("untitled plan (scale small)\n\nsystems      mysql:5.7.22, the base")
    assert said.out.endswith("cells\n  oltp_read_only, 1 thread\n")
    assert said.err == ""


def test_schema_is_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--scale", "smal"], "there is no scale 'smal' in this plan; did you mean small?"),
        (["--budget", "soon"], "--budget soon is no time"),
        (["--budget", "999999999h"], "a year at most"),
        (["--budget", "10s"], "the budget is too short for a single block"),
    ],
)
@pytest.mark.parametrize("command", [["plan", "show"], ["run"]])
def test_a_mistake_is_status_2_and_begins_nothing(
    command: list[str],
    typed: list[str],
    told: str,
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(path.parent)
    assert main([*command, str(path), *typed]) == 2
    said = capsys.readouterr()
    assert (said.out, told in said.err) == ("", True)
    assert [file.name for file in path.parent.iterdir()] == ["plan.yaml"]


def test_run_measures_the_scale_and_the_blocks_that_fit(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Plan] = []
    monkeypatch.setattr(flow, "begin", lambda plan, *rest, **more: begun.append(plan))
    resumed: list[Plan] = []
    monkeypatch.setattr(flow, "resume_plan", lambda plan, *rest, **more: resumed.append(plan))
    typed = ["run", str(path), "--scale", "small", "--budget", "4m"]
    assert main(typed) == 0
    assert main([*typed, "--resume"]) == 0
    said = capsys.readouterr().err
    (plan,) = begun
    assert (plan.scale, plan.dataset.rows, plan.design.budget_s) == ("small", 1000, 240)
    assert 1 <= plan.design.blocks < 10
    assert f"budget 4 min 00 s: {plan.design.blocks} of 10 blocks fit" in said
    assert [plan.hash() for plan in resumed] == [plan.hash()]


def test_a_budget_on_the_command_line_takes_the_place_of_the_plan_s(path: Path) -> None:
    path.write_text(TEXT.replace("blocks: 10", "blocks: 10, budget: 3h"))
    assert read(path, "", None).design.budget_s == 10_800
    assert read(path, "", "90m").design.budget_s == 5400
    with pytest.raises(UsageError, match="is no time"):
        read(path, "", "0s")
