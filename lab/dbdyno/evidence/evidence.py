"""What a verdict rests on, wherever it is kept: a run as it was asked for, and what it measured.

A run in a workspace and a bundle that somebody sent are told, judged, gated and compared by the
same code, because both become this noun.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.evidence import bundle
from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.report.facts import RunFacts
from dbdyno.store import FILE_NAME, Store, StoredRun
from dbdyno.store_find import LATEST, find, opened

BUNDLES: Final = "bundles"
"""Where in a workspace the reports of bundles go, so that none takes the place of an own run's."""
DIGEST_SHOWN: Final = 12


@dataclass(frozen=True)
class Evidence:
    """A run and all its measurements.

    Attributes:
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
        """What was asked for."""
        return self.run.plan

    @property
    def complete(self) -> bool:
        """Whether every planned trial has a measurement without failure, or cannot have one."""
        done = {m.trial.key for m in self.measurements if m.failure is None or m.impossible}
        return len(done) == self.run.trials_planned

    @property
    def facts(self) -> RunFacts:
        """What a report must know about the run besides plan and measurements."""
        return RunFacts(
            run_id=self.run.run_id,
            created_at=self.run.created_at,
            dbdyno_version=self.run.dbdyno_version,
            plan_hash=self.run.plan.hash(),
            command=self.run.command,
            environment=self.run.environment,
            complete=self.complete,
            trials_planned=self.run.trials_planned,
        )


def load(name: str | Path, workspace: Path) -> Evidence:
    """The evidence that a name stands for.

    Args:
        name: a run's id or `latest`; a bundle's file; a run's own folder within its workspace; or
            a workspace's folder, for its newest run.
        workspace: where ids are looked up.

    Raises:
        StoreError: there is no such run. BundleError: the file is no sound bundle.
    """
    path = Path(name)
    if path.is_file():
        return of_bundle(path, workspace)
    if (path / FILE_NAME).is_file():
        return of_run(LATEST, path)
    if path.is_dir() and (path.parent / FILE_NAME).is_file():
        return of_run(path.resolve().name, path.parent)
    return of_run(str(name), workspace)


def of_run(run_id: str, workspace: Path) -> Evidence:
    """A workspace's run; StoreError if there is none of that id."""
    with opened(workspace) as store:
        return of_stored(store, find(store, run_id), workspace)


def of_stored(store: Store, run: StoredRun, workspace: Path) -> Evidence:
    """A run that was found already."""
    return Evidence(run, tuple(store.measurements(run.run_id)), workspace / run.run_id)


def of_bundle(path: Path, workspace: Path) -> Evidence:
    """A bundle, checked; its report goes to a folder of its own in the workspace."""
    run, measurements, digest = bundle.read(path)
    folder = workspace / BUNDLES / f"{run.run_id}-{digest[:DIGEST_SHOWN]}"
    return Evidence(run, measurements, folder, digest)
