"""What the list of runs says, and that looking at it makes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.errors import StoreError
from dbdyno.judge.verdict import Word
from dbdyno.serve.runs import conclusion
from dbdyno.store.store import FILE_NAME, Store
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


def concluded(workspace: Path, run_id: str) -> str:
    return conclusion(runs_of(workspace).judged(run_id).judgement)


def test_a_conclusion_counts_verdicts_on_workloads_before_those_on_their_cells(
    tmp_path: Path,
) -> None:
    run_id = stored_run(tmp_path)
    assert concluded(tmp_path, run_id).startswith("slower −30.0 % [")
    judgement = runs_of(tmp_path).judged(run_id).judgement
    twice = judgement.model_copy(update={"verdicts": judgement.verdicts * 2})
    assert conclusion(twice) == "slower 2"
    (whole,) = judgement.summaries
    workloads = [
        whole.model_copy(update={"workload": name, "word": Word.BETTER})
        for name in ("oltp_delete", "oltp_insert")
    ]
    assert conclusion(twice.model_copy(update={"summaries": (whole, *workloads)})) == "faster 2"


def test_a_conclusion_says_what_a_report_says_of_a_latency_limit(tmp_path: Path) -> None:
    limits = {making.A: [1000.0] * 3, making.B: [900.0] * 3}
    run = store_trials(tmp_path, plan_of(3), trials_of(limits))
    assert concluded(tmp_path, run.run_id).startswith("slower −10.1 % [")


def test_a_store_that_is_moved_away_is_not_made_again(tmp_path: Path) -> None:
    run_id = stored_run(tmp_path, blocks=1)
    runs = runs_of(tmp_path)
    store = tmp_path / FILE_NAME
    store.rename(tmp_path / "moved")
    for look in (runs.listed, lambda: runs.run(run_id), lambda: runs.version(run_id)):
        with pytest.raises(StoreError, match="holds no run yet"):
            look()
    assert not store.exists()
    store.touch()
    with pytest.raises(StoreError, match="is empty"):
        runs.listed()
    assert store.stat().st_size == 0
