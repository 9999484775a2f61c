"""A workspace with made runs, as a lab would have left it."""

from __future__ import annotations

from pathlib import Path

from dbdyno.experiment.schedule.order import trials_of
from dbdyno.serve.runs import Runs
from dbdyno.store.store import Store
from support import making


def stored_run(
    folder: Path,
    blocks: int = 3,
    tps: float = 1000.0,
    trials: int | None = None,
    title: str = "made",
) -> str:
    """Stores a run and gives its id.

    Args:
        tps: of the baseline; the other system has 70 % of it.
        trials: how many of its trials are stored; all, which finishes the run, unless given.
    """
    plan = making.plan(blocks=blocks).model_copy(update={"title": title})
    with Store.open(folder) as store:
        planned = trials_of(plan, "")
        run = store.create_run(plan, "dbdyno compare a b", {"cpu": f"made {tps:g}"}, len(planned))
        for trial in trials_of(plan, run.run_id)[:trials]:
            speed = (tps if trial.system == making.A else 0.7 * tps) + trial.block
            made = making.measurement(trial.system, threads=trial.cell.threads, tps=speed)
            store.append(made.model_copy(update={"trial": trial}))
        if trials is None:
            store.finish(run.run_id)
        return run.run_id


def runs_of(folder: Path) -> Runs:
    return Runs(folder)
