"""What the list of runs says, and when a run is judged again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import StoreError
from dbdyno.store.store import Store
from support import making
from support.made_workspace import runs_of, stored_run


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


def test_a_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    stored_run(tmp_path, blocks=1)
    with pytest.raises(StoreError, match="no run nobody"):
        runs_of(tmp_path).judged("nobody")
    with pytest.raises(StoreError, match="no run nobody"):
        runs_of(tmp_path).one("nobody")
