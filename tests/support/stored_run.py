"""Made runs in a real store, for tests of what reads stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store
from support import making


def store_made(
    workspace: Path,
    ratios: tuple[float, ...],
    plan: Plan | None = None,
    planned: int | None = None,
) -> StoredRun:
    """Stores a run of one block a ratio: the second system at that share of the first's TPS."""
    asked = plan or making.plan(blocks=len(ratios))
    return store_trials(workspace, asked, making.pairs(ratios), planned)


def store_trials(
    workspace: Path, plan: Plan, trials: Sequence[Measurement], planned: int | None = None
) -> StoredRun:
    """Stores a run of these trials, which is at its end unless so many were planned."""
    with Store.open(workspace) as store:
        count = planned or len(trials)
        run = store.create_run(plan, "dbdyno compare a b", {"kernel": "6.1"}, count)
        for one in trials:
            store.append(making.with_trial(one, run_id=run.run_id))
        if planned is None:
            store.finish(run.run_id)
        return store.run(run.run_id)
