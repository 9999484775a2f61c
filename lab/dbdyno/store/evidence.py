"""Evidence of a verdict, from a store or a bundle: a run's plan and its measurements.

Runs of a workspace and received bundles are judged, reported, gated and compared by the same code,
because both become an `Evidence`. Completeness of a run is decided here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dbdyno.budget import within
from dbdyno.errors import BundleError
from dbdyno.measurement.disturbance import current, to_repeat
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan, cells
from dbdyno.store import bundle
from dbdyno.store.reading import StoredRun
from dbdyno.store.resolved import resolved_run
from dbdyno.store.store import FILE_NAME, LATEST, Store, find, opened


class Completion(NamedTuple):
    """Progress of a run.

    Attributes:
        done: trials not to be run again, without the pilot's.
        planned: trials of the complete run: all of the plan, or of the blocks up to the decision.
        complete: every trial has a measurement without failure, or cannot run.
    """

    done: int
    planned: int
    complete: bool


@dataclass(frozen=True)
class Evidence:
    """A run and all its measurements.

    Attributes:
        run: as `resolved_run`.
        measurements: in the order stored, failed attempts too.
        folder: where its report belongs.
        digest: SHA-256 of the sums of the bundle it comes from; empty for a workspace's run.
    """

    run: StoredRun
    measurements: tuple[Measurement, ...]
    folder: Path
    digest: str = ""

    @property
    def plan(self) -> Plan:
        return self.run.plan

    @property
    def complete(self) -> bool:
        """True if every planned trial has a measurement without failure, or cannot run."""
        return self._completion.complete

    @property
    def trials_planned(self) -> int:
        """Trials of the complete run."""
        return self._completion.planned

    @property
    def _completion(self) -> Completion:
        blocks = max((m.trial.block + 1 for m in self.measurements), default=0)
        ended = (m for m in current(self.measurements) if m.failure is None or m.impossible)
        done = {m.trial.key for m in ended if not m.trial.is_pilot}
        return _completion(self.run, done, blocks, lambda: self.measurements)

    @property
    def facts(self) -> RunFacts:
        """Facts of the run for its report, besides plan and measurements."""
        run = self.run
        return RunFacts(
            run_id=run.run_id,
            created_at=run.created_at,
            dbdyno_version=run.dbdyno_version,
            plan_hash=run.plan.hash(),
            command=run.command,
            environment=run.environment,
            complete=self.complete,
            trials_planned=self.trials_planned,
        )


def completion(store: Store, run_id: str) -> Completion:
    """Done and planned trials of a stored run; impossible trials count as done."""
    run = resolved_run(store, store.run(run_id))
    done = store.done(run_id)
    if run.plan.load.needs_pilot:
        done -= {pilot.trial.key for pilot in store.pilots(run_id)}
    blocks = store.blocks_begun(run_id)
    return _completion(run, done, blocks, lambda: store.measurements(run_id))


def _completion(
    run: StoredRun,
    done: Collection[str],
    blocks_begun: int,
    measurements: Callable[[], Iterable[Measurement]],
) -> Completion:
    """Decide if a run is complete.

    Args:
        run: as `resolved_run`.
        done: keys of the trials not to be run again, without the pilot's.
        measurements: reads all of them, for blocks to be repeated.
    """
    plan, design, planned = run.plan, run.plan.design, run.trials_planned
    if plan.load.pilot or design.chosen is not None:  # only they tell the number
        planned = design.blocks * len(plan.systems) * len(cells(plan))
    if design.stop == "decided" and run.finished_at is not None:
        planned = planned // design.blocks * blocks_begun
    complete = len(done) == planned and not plan.load.awaits_pilot
    if plan.is_imported:  # also of logs that tell of a failure
        complete = run.finished_at is not None
    if complete and run.finished_at is None and design.disturbance_max < 1:
        complete = not to_repeat(measurements(), design.blocks, design.disturbance_max)
    return Completion(len(done), planned, complete)


def load(name: str | Path, workspace: Path) -> Evidence:
    """Load evidence by a name.

    Args:
        name: a run's id or `latest`; a bundle's file; a run's own folder within its workspace; or
            a workspace's folder, for its newest run.
        workspace: where ids are looked up.

    Raises:
        StoreError: the run is missing. BundleError: the file is missing or no sound bundle.
    """
    path = Path(name)
    if path.is_file():  # its report takes the place of no own run's
        kept = within(f"the bundle {path}", lambda: bundle.read_bundle(path), BundleError)
        folder = workspace / "bundles" / f"{kept.run.run_id}-{kept.digest[:12]}"
        return Evidence(kept.run, kept.measurements, folder, kept.digest)
    if (path / FILE_NAME).is_file():
        return of_run(LATEST, path)
    if path.is_dir() and (path.parent / FILE_NAME).is_file():
        return of_run(path.resolve().name, path.parent)
    if path.name.endswith(bundle.SUFFIX):
        raise BundleError(
            f"there is no file {path}",
            wanted="a bundle, as `dbdyno bundle` writes it",
            hint="look at the path; a run of a workspace is named by its id",
        )
    return of_run(str(name), workspace)


def of_run(run_id: str, workspace: Path) -> Evidence:
    """A workspace's run; StoreError for an unknown id."""
    with opened(workspace) as store:
        return of_stored(store, find(store, run_id), workspace)


def of_stored(store: Store, run: StoredRun, workspace: Path) -> Evidence:
    """Evidence of a stored run, as of now."""
    now = resolved_run(store, store.run(run.run_id))
    return Evidence(now, tuple(store.measurements(run.run_id)), workspace / run.run_id)
