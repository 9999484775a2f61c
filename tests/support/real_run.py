"""A whole run on real servers, in a workspace of its own that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from dbdyno.experiment import runner
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.store.store import Store
from support.fakes import Progress


@contextmanager
def measured_alone(plan: Plan, trials: int) -> Iterator[list[Measurement]]:
    """The measurements of a run of the plan, which has ended with all of its trials."""
    with TemporaryDirectory(prefix="dbdyno-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # servers run as another user
        with Store.open(folder) as store:
            run = store.create_run(plan, "dbdyno run", {}, trials)
            runner.run(store, run, folder, Progress())
            assert store.run(run.run_id).finished_at is not None
            assert len(store.done(run.run_id)) == trials
            yield store.measurements(run.run_id)
