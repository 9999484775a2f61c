"""What `plan show` says (golden text, then each warning), and how plans and budgets are typed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dbdyno.__main__ import main
from dbdyno.cli import flow
from dbdyno.cli import plan as plan_command
from dbdyno.cli.plan import described, in_budget, read_file
from dbdyno.errors import UsageError
from dbdyno.experiment.data import disk
from dbdyno.experiment.schedule import forecast
from dbdyno.experiment.schedule.forecast import Forecast, fitted, outlook_of
from dbdyno.judge.uses import power
from dbdyno.judge.uses.noise import BlockNoise
from dbdyno.measurement.measurement import Trial
from dbdyno.plan import file
from dbdyno.plan.file import schema
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.stats.design import Question
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import FILE_NAME
from support import making
from support.made_workspace import stored_run
from support.source import ROOT

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture
def known_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts are others' business: an hour for each block and 4.2 GB."""

    def hours(_: Forecast, trials: Sequence[Trial]) -> float:
        return 3600.0 * len({trial.block for trial in trials})

    monkeypatch.setattr(Forecast, "seconds_left", hours)
    monkeypatch.setattr(forecast, "load_s", lambda plan: 0.0)
    monkeypatch.setattr(disk, "need", lambda plan: "about 4.2 GB on the workspace's disk")


def read(scale: str = "") -> Plan:
    path = GOLDEN / "plan_show.yaml"
    return file.read(path, lambda reference: None, scale)


@pytest.mark.usefixtures("known_costs")
@pytest.mark.parametrize("scale", ["", "small"])
def test_a_plan_in_words(scale):
    golden = GOLDEN / f"plan_show{scale and '_'}{scale}.txt"
    assert described(read(scale)) == golden.read_text()


def with_design(plan, **values):
    return plan.model_copy(update={"design": plan.design.model_copy(update=values)})


@pytest.mark.usefixtures("known_costs")
def test_a_budget_says_how_many_blocks_fit():
    plan = with_design(making.plan(blocks=8, window_s=60), budget_s=5 * 3600 + 60)
    fit = in_budget(plan, outlook_of(fitted(plan)))
    assert fit == "budget 5 h 01 min: 5 of 8 blocks fit"
    assert "trials       10 = 5 blocks × 2 systems × cells" in described(plan).splitlines()


@pytest.mark.usefixtures("known_costs")
def test_a_budget_too_short_for_a_verdict_says_so():
    plan = with_design(making.plan(blocks=8), budget_s=2.5 * 3600)
    fit = in_budget(plan, outlook_of(fitted(plan)))
    assert fit == "budget 2 h 30 min: 2 of 8 blocks fit, too few for a verdict (3 are the least)"
    assert "2 blocks: no verdict, 3 blocks are the least" in described(plan)


@pytest.mark.usefixtures("known_costs")
def test_a_budget_of_a_plan_that_spreads_blocks_counts_the_machines():
    plan = with_design(making.plan(blocks=8, window_s=60), budget_s=2.5 * 3600)
    fit = in_budget(plan, outlook_of(fitted(plan, 3)), 3)
    assert fit == "budget 2 h 30 min on 3 machines: 6 of 8 blocks fit"
    spread = described(plan.model_copy(update={"fleet": FleetPlan(spread="blocks")}))
    assert "m machines run about m times the blocks" in spread
    assert "m machines run about m times the blocks" not in described(plan)


def test_a_plan_without_a_budget_says_nothing_of_one():
    assert in_budget(making.plan(), outlook_of(making.plan())) is None
    assert "budget" not in described(making.plan())


def levels(plan: Plan) -> list[str]:
    """Heads of the columns that say what each level of the question will see."""
    (head,) = [line for line in described(plan).splitlines() if "blocks differ by" in line]
    return [part for part in head.split("  ") if part.startswith(("each of", "all ", "the cell"))]


@pytest.mark.parametrize(
    ("load", "level"),
    [
        (LoadPlan(slo=SloPlan(limit_ms=20)), "the cell"),
        (LoadPlan(rates=("70%", "90%")), "each of 2 cells"),
        (LoadPlan(rates=("70%", "500", "90%")), "each of 3 cells"),
    ],
)
def test_rates_that_a_pilot_finds_share_the_five_percent_as_if_they_were_known(load, level):
    plan = making.plan(load=load, window_s=60)
    assert levels(plan) == [level]


def test_only_the_cells_of_one_comparison_share_the_five_percent():
    varied = SettingsPlan(durability=("double-1", "0/2"))
    workloads = ("oltp_read_write", "oltp_read_only")
    plan = making.plan(systems=(making.A,), workloads=workloads, settings=varied)
    assert levels(plan) == ["each of 2 cells"]


def test_workloads_are_a_level_where_they_have_several_cells():
    assert levels(making.plan(threads=(1, 8))) == ["all 2 cells", "each of 2 cells"]
    workloads = ("oltp_read_write", "oltp_read_only")
    plan = making.plan(threads=(1, 8, 64), workloads=workloads)
    assert levels(plan) == ["each of 2 workloads", "each of 6 cells"]


def seen(plan: Plan, workspace: Path | None = None) -> list[str]:
    """Lines below the table."""
    lines = described(plan, workspace).rstrip().splitlines()
    (start,) = [place for place, line in enumerate(lines) if line.startswith("  in ")]
    return [line.strip() for line in lines[start:]]


@pytest.mark.usefixtures("known_costs")
def test_differences_are_told_with_their_time():
    plan = making.plan(workloads=("oltp_read_write", "oltp_read_only"), threads=(1, 8), window_s=60)
    blocks = power.blocks_to_see(0.05, 0.04, 60, question=Question(4))
    level = Question(intervals=2, cells=2)
    workload, cell = (
        f"{power.difference_seen(5, 0.04, 60, question=one):.1%}".replace("%", " %")
        for one in (level, Question(4))
    )
    assert seen(plan) == [
        f"in 5 h 00 min at 4.0 %: {workload} in each of 2 workloads, {cell} in each of 4 cells",
        f"time to detect 5.0 % in each of 4 cells: {blocks} h 00 min",
        "4.0 % is usual on small virtual machines; the workspace has no similar run",
    ]


@pytest.mark.parametrize(("in_step", "helps"), [(1.0, True), (0.5, True), (0.0, False)])
def test_leaving_out_load_levels_is_told_where_it_helps(in_step, helps, monkeypatch):
    # noise in step does not shrink in a mean over cells, so more blocks of fewer cells see more
    noise = BlockNoise(0.04**2, in_step * 0.04**2, cells=8, runs=1)
    monkeypatch.setattr(plan_command, "_learned", lambda plan, workspace: noise)
    plan = making.plan(threads=(1, 8, 64, 128), window_s=60, blocks=12)
    advice = [line for line in seen(plan, Path()) if line.startswith("without every second")]
    assert [line.endswith("in all 2 cells, in the same time") for line in advice] == [True] * helps
    few = making.plan(threads=(1, 8, 64), window_s=60, blocks=12)
    assert all("load level" not in line for line in seen(few, Path()))


def test_cells_with_a_start_each_are_left_out_by_earlier_runs_alone():
    plan = making.plan(threads=(1, 8, 64, 128), window_s=60, blocks=12)
    by_cell = making.with_parts(plan, procedure={"restart": "cell"})
    assert any("load level" in line for line in seen(plan))
    assert all("load level" not in line for line in seen(by_cell))


def test_noise_is_that_of_earlier_runs_of_the_workspace(tmp_path: Path) -> None:
    plan = making.plan()
    unknown = seen(plan, tmp_path / "none")
    usual = "4.0 % is usual on small virtual machines; the workspace has no similar run"
    assert unknown[-1] == usual
    assert not (tmp_path / "none").exists()
    stored_run(tmp_path, blocks=4, tps=10)
    stored_run(tmp_path, blocks=4, trials=6)
    assert seen(plan, tmp_path) == unknown  # a single cell of four blocks, and an unfinished run
    stored_run(tmp_path, blocks=4, tps=10)
    *_, basis = seen(plan, tmp_path)
    assert basis.endswith(" % is the noise of 2 cells in 2 runs of this workspace")
    assert seen(making.plan(workloads=("oltp_read_only",)), tmp_path)[-1] == unknown[-1]


def test_an_unreadable_store_tells_no_noise(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no store" * 100)
    assert seen(making.plan(), tmp_path) == seen(making.plan())


def test_servers_that_others_run_are_not_started():
    elsewhere = SystemPlan(label="cluster", reference="mysql://me@127.0.0.1:4000/db")
    both = (*making.plan(blocks=3).systems[:1], elsewhere)
    shown = described(making.plan(blocks=3).model_copy(update={"systems": both})).splitlines()
    assert "starts       3 of a server" in shown
    alone = described(making.plan(blocks=3).model_copy(update={"systems": (elsewhere,)}))
    assert "starts" not in alone


def reasons(plan):
    _, _, behind = described(plan).partition("cannot run, so these cells will be void\n")
    return behind.split("\n\n")[0].splitlines()


def test_a_plan_of_one_setting_that_a_system_cannot_have_says_the_reason_alone():
    only = making.plan().model_copy(update={"settings": SettingsPlan(thread_pool=("on",))})
    said = described(only).split("cannot run, so these cells will be void\n")[1].split("\n\n")[0]
    assert said.splitlines() == [
        f"  {label}: {label.replace(':', ' ')} has no thread pool" for label in (making.A, making.B)
    ]


def test_a_setting_that_a_system_cannot_have_is_told_with_its_reason():
    assert reasons(read()) == [
        "  mysql:8.0.15: mysql 8.0.15 has no thread pool",
        "    thread_pool on",
        "  tuned: mysql 8.0.31 has no thread pool",
        "    thread_pool on",
    ]


def test_settings_of_a_postgresql_are_read_as_its_own():
    own = {"search_path": "'\"$user\", public'", "enable_seqscan": "off"}
    system = SystemPlan(label="pg", reference="postgres:18.6", settings=own)
    varied = SettingsPlan(own={"planner": {"scans": {"enable_seqscan": "on"}}})
    plan = making.plan().model_copy(update={"systems": (system,), "settings": varied})
    assert "not by the system's own\n  pg: enable_seqscan\n" in described(plan)


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
    assert said.out.startswith("untitled plan\n\nscale        small\nsystems      mysql:5.7.22")
    assert "\ncells        1 = 1 workload × 1 level\n" in said.out
    assert said.err == ""


def test_schema_is_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


@pytest.mark.parametrize(
    ("typed", "message"),
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
    message: str,
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(path.parent)
    assert main([*command, str(path), *typed]) == 2
    said = capsys.readouterr()
    assert (said.out, message in said.err) == ("", True)
    assert [file.name for file in path.parent.iterdir()] == ["plan.yaml"]


def test_run_measures_the_scale_and_the_blocks_that_fit(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[StoredRun] = []
    monkeypatch.setattr(flow, "_run", lambda store, run, *rest, **more: runs.append(run))
    workspace = ["--workspace", str(path.parent / "runs")]
    typed = ["run", str(path), "--scale", "small", *workspace, "--budget"]
    assert main([*typed, "4m"]) == 0
    said = capsys.readouterr().err
    (begun,) = runs
    plan = begun.plan
    assert (plan.scale, plan.dataset.rows, plan.design.budget_s) == ("small", 1000, 240)
    assert 1 <= plan.design.blocks < 10
    assert f"budget 4 min 00 s: {plan.design.blocks} of 10 blocks fit" in said


def test_a_run_has_the_digest_of_an_archive_given_without_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two systems of the same archive share its download."""
    address = "https://example.com/mysql-8.4.6-linux-glibc2.28-x86_64.tar.xz"
    known = f"{address}#sha256={'ab' * 32}"
    asked: list[str] = []

    def pinned(reference: str, report: Callable[[str], None]) -> str:
        asked.append(reference)
        return known if reference == address else reference

    runs: list[StoredRun] = []
    monkeypatch.setenv("DBDYNO_CACHE", str(path.parent / "cache"))
    monkeypatch.setattr(plan_command.open, "pinned", pinned)
    monkeypatch.setattr(flow, "_run", lambda store, run, *rest, **more: runs.append(run))
    two = f'"{address}", {{label: again, reference: "{address}"}}'
    path.write_text(TEXT.replace('"mysql:8.0.15"', two))
    assert main(["run", str(path), "--workspace", str(path.parent / "runs")]) == 0
    (begun,) = runs
    stored = {system.label: system.reference for system in begun.plan.systems}
    assert stored == {"mysql:5.7.22": "mysql:5.7.22", "mysql-8.4.6": known, "again": known}
    assert asked == ["mysql:5.7.22", address]


def test_a_budget_on_the_command_line_takes_the_place_of_the_plan_s(path: Path) -> None:
    path.write_text(TEXT.replace("blocks: 10", "blocks: 10, budget: 3h"))
    assert read_file(path, "", None).design.budget_s == 10_800
    assert read_file(path, "", "90m").design.budget_s == 5400
    assert read_file(path, "", "5400").design.budget_s == 5400
    with pytest.raises(UsageError, match="is no time"):
        read_file(path, "", "0s")


def test_a_plan_that_chooses_its_own_blocks_takes_no_budget(path: Path) -> None:
    path.write_text(TEXT.replace("blocks: 10", "time: 10m").partition("scales:")[0])
    assert read_file(path, "", None).design.time_s == 600
    with pytest.raises(UsageError, match="this plan chooses its own by `design: time`") as caught:
        read_file(path, "", "90m")
    assert str(path) in (caught.value.hint or "")
