"""`import dbdyno` in a notebook: frames with the judge's numbers, charts that can be drawn, and a
start of the program that does not wait for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

import dbdyno
from dbdyno import api
from dbdyno.api import Run
from dbdyno.errors import BundleError, StoreError, UsageError
from dbdyno.judge.judgement import judge
from dbdyno.report.tell.verdicts import reason
from dbdyno.store import bundle
from support import blank_charts, making
from support.source import ROOT
from support.stored_run import store_made, store_trials


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    store_made(folder, (0.76, 0.77, 0.78))
    return folder


@pytest.fixture(scope="module")
def run(workspace: Path) -> Run:
    return dbdyno.load("latest", workspace)


def test_measurements_and_seconds_are_frames(run: Run) -> None:
    trials = run.measurements()
    assert trials["system"].unique().sort().to_list() == [making.A, making.B]
    assert trials.filter(state="valid").height == len(run.trials) == 6
    seconds = run.intervals()
    assert seconds.height == sum(len(trial.intervals) for trial in run.trials)
    assert run.table("costs").height > 0


def test_verdicts_are_the_judges(run: Run) -> None:
    (row,) = run.verdicts().to_dicts()
    (verdict,) = judge(run.trials, run.plan).verdicts
    assert (row["word"], row["system"], row["threads"]) == ("worse", making.B, 8)
    assert (row["ratio"], row["low"]) == (verdict.estimate.ratio, verdict.estimate.low)
    assert row["reasons"] == list(map(reason, verdict.reasons))
    assert run.estimates().height == len(run.judgement.estimates)
    values = run.values().filter(metric="transactions_per_s", system=making.A)
    assert values["value"].to_list() == pytest.approx([1000.0])
    assert set(run.findings()["level"]) <= {"note", "doubtful", "void"}
    assert run.gate(0.5).holds
    assert not run.gate(0.03).holds


def test_what_a_latency_limit_compares_is_a_verdict_too(tmp_path: Path) -> None:
    limits = {making.A: [1000.0] * 3, making.B: [900.0] * 3}
    store_trials(tmp_path, plan_of(3), trials_of(limits))
    limited = dbdyno.load(tmp_path)
    (row,) = limited.verdicts().to_dicts()
    (verdict,) = limited.judgement.all_verdicts
    assert (row["word"], row["system"], row["threads"]) == ("worse", making.B, 64)
    assert (row["metric"], row["rate_per_s"]) == ("rate_at_limit_per_s", None)
    assert row["ratio"] == verdict.estimate.ratio == pytest.approx(0.9, rel=0.01)


def test_a_run_of_one_system_has_empty_frames(tmp_path: Path) -> None:
    store_made(tmp_path, (), plan=making.plan(systems=(making.A,)), planned=3)
    alone = dbdyno.load(tmp_path)
    assert alone.verdicts().height == 0
    assert alone.measurements().height == 0
    assert alone.charts() == []


def test_a_chart_is_a_picture_that_jupyter_shows(run: Run) -> None:
    for name in ("throughput", run.charts()[0]):
        chart = run.chart(name)
        assert making.B in chart._repr_svg_()
        assert chart.png.startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="no chart 'tea'") as caught:
        run.chart("tea")
    assert caught.value.wanted is not None
    assert run.charts()[0] in caught.value.wanted
    with pytest.raises(UsageError, match="no table 'tea'"):
        run.table("tea")


def test_the_report_is_written_where_it_belongs(
    run: Run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank_charts.patch(monkeypatch)
    assert run.report().html == workspace / run.id / "report.html"
    assert run.report(tmp_path / "here").json == tmp_path / "here" / "report.json"
    assert "## 判定" in run.report(tmp_path / "zh", language="zh").markdown.read_text()
    with pytest.raises(UsageError, match="no language"):
        run.report(tmp_path / "xx", language="xx")


def test_jupyter_shows_the_verdicts(run: Run) -> None:
    assert "| slower |" in run._repr_markdown_()
    assert repr(run) == f"<dbdyno run {run.id}: 6 measurements>"


def test_a_bundle_is_a_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blank_charts.patch(monkeypatch)
    bundle.write(tmp_path / "b.zip", run.evidence.run, run.trials)
    opened = dbdyno.load(tmp_path / "b.zip", tmp_path)
    assert opened.judgement == run.judgement
    assert opened.report().html.is_relative_to(tmp_path / "bundles")


def test_a_bundle_of_numbers_that_cannot_be_judged_is_refused_in_words(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("float division by zero")

    bundle.write(tmp_path / "odd.zip", run.evidence.run, run.trials)
    monkeypatch.setattr(api, "judge", fail)
    opened, own = dbdyno.load(tmp_path / "odd.zip", tmp_path), Run(run.evidence)
    with pytest.raises(BundleError, match="nothing can have measured"):
        opened.verdicts()
    with pytest.raises(ZeroDivisionError):  # of our own it is a mistake of ours
        own.verdicts()


def test_a_run_that_is_not_there_is_told(workspace: Path) -> None:
    with pytest.raises(StoreError, match="no run nothing"):
        dbdyno.load("nothing", workspace)
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        dbdyno.lode  # noqa: B018


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = (
        "import sys, dbdyno; dbdyno.__version__;"
        "heavy = {'polars', 'vl_convert', 'numpy', 'pydantic', 'dbdyno.api'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_docs_show_can_be_run(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dbdyno-runs").symlink_to(workspace)
    page = (ROOT / "docs" / "how-to" / "python.md").read_text()
    shown: list[object] = []
    for code in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(code, {"print": shown.append})
    assert [making.B in str(one) for one in shown] == [True, True]
    assert Path("throughput.svg").is_file()


def test_every_method_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "how-to" / "python.md").read_text()
    told = set(re.findall(r"`run\.(\w+)", page))
    assert told == {name for name in vars(Run) if not name.startswith("_")} - {"id", "side"}


def test_frames_of_measurements_can_be_asked(run: Run) -> None:
    by_system = (
        run.measurements()
        .filter(state="valid")
        .group_by("system")
        .agg(polars.col("transactions_per_s").mean())
        .sort("system")
    )
    assert by_system["transactions_per_s"].to_list() == pytest.approx([1000.0, 770.0])
