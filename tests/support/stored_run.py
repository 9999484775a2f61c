"""A made run in a real store, for tests of what reads stored runs."""

from __future__ import annotations

from pathlib import Path

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
    with Store.open(workspace) as store:
        count = planned or 2 * len(ratios)
        run = store.create_run(asked, "dbdyno compare a b", {"kernel": "6.1"}, count)
        for one in making.pairs(ratios):
            store.append(making.with_trial(one, run_id=run.run_id))
        if planned is None:
            store.finish(run.run_id)
        return store.run(run.run_id)
