"""What the list of runs says, and when a run is judged again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.report import document
from dbdyno.store.store import Store
from support import making
from support.made_workspace import runs_of, stored_run
from support.stored_run import store_trials


def test_every_run_is_listed_with_its_state(tmp_path: Path) -> None:
    complete = stored_run(tmp_path, blocks=1)
    stopped = stored_run(tmp_path, blocks=2, trials=1)
    runs = runs_of(tmp_path)
    with Store.open(tmp_path) as store, store.locked(stopped):
        assert [row.state for row in runs.listed()] == ["running", "complete"]
    listed = runs.listed()
    assert [row.run.run_id for row in listed] == [stopped, complete]
    assert [row.state for row in listed] == ["unfinished", "complete"]
    assert [row.stored for row in listed] == [1, 2]
    assert listed[0].systems == (making.A, making.B)


def with_report(workspace: Path, run_id: str) -> tuple[Path, dict[str, Any]]:
    """The run's report.json as `dbdyno report` writes it, and what it holds."""
    judged = runs_of(workspace).judged(run_id)
    report = document.document(judged.plan, judged.measurements, judged.judgement, judged.facts)
    file = workspace / run_id / "report.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(document.text(report))
    return file, report


def test_the_list_says_what_a_report_says_of_a_latency_limit(tmp_path: Path) -> None:
    limits = {making.A: [1000.0] * 3, making.B: [900.0] * 3}
    with_report(tmp_path, store_trials(tmp_path, plan_of(3), trials_of(limits)).run_id)
    (row,) = runs_of(tmp_path).listed()
    assert row.verdict.startswith("slower −10.1 % [")


def test_the_list_says_what_a_report_says_without_judging_again(tmp_path: Path) -> None:
    run_id = stored_run(tmp_path)
    runs = runs_of(tmp_path)
    assert [row.verdict for row in runs.listed()] == ["—"]
    file, report = with_report(tmp_path, run_id)
    (row,) = runs.listed()
    assert row.verdict.startswith("slower −30.0 % [")
    assert row.title == "made"
    report["verdicts"] *= 2
    file.write_text(document.text(report))
    assert [row.verdict for row in runs.listed()] == ["slower 2"]
    (whole,) = report["summaries"]
    workloads = [{"workload": name, "word": "better"} for name in ("oltp_delete", "oltp_insert")]
    report["summaries"] = [whole, *({**whole, **one} for one in workloads)]
    file.write_text(document.text(report))
    assert [row.verdict for row in runs.listed()] == ["faster 2"], "workloads before their cells"
    file.write_text("{")
    assert [row.verdict for row in runs.listed()] == ["—"]


def test_a_run_is_judged_once_until_a_trial_is_added(tmp_path: Path) -> None:
    run_id = stored_run(tmp_path, blocks=3, trials=4)
    runs = runs_of(tmp_path)
    first = runs.judged(run_id)
    assert runs.judged(run_id) is first
    with Store.open(tmp_path) as store:
        made = making.measurement(making.B, block=2, sequence=5)
        placed = made.trial.model_copy(update={"run_id": run_id})
        store.append(made.model_copy(update={"trial": placed}))
    again = runs.judged(run_id)
    assert again is not first
    assert len(again.measurements) == len(first.measurements) + 1
