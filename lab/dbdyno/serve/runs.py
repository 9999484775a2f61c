"""The runs of a workspace as a page lists them, and one of them judged.

Judging reads every histogram of a run and takes a second or more, so what was judged is kept until
the store's file changes. Threads of the page share it under a lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from dbdyno.files import is_held
from dbdyno.judge.judgement import Judgement, judge
from dbdyno.language.words import Text, say
from dbdyno.measurement.facts import RunFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.store import evidence
from dbdyno.store.store import FILE_NAME, Store, StoredRun

KEPT_MAX: Final = 8
"""Judged runs that are kept; each holds its measurements."""
RUNNING: Final = say("running")
COMPLETE: Final = say("complete")
UNFINISHED: Final = say("unfinished")


@dataclass(frozen=True)
class ListedRun:
    """One run of the list.

    Attributes:
        stored: trials that have a measurement without failure.
        owed: trials that the run has when it is complete.
        state: running, complete or unfinished.
    """

    run: StoredRun
    stored: int
    owed: int
    state: Text

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of its systems, the baseline first."""
        return tuple(system.label for system in self.run.plan.systems)


@dataclass(frozen=True)
class JudgedRun:
    """A run with all that a report of it needs."""

    plan: Plan
    measurements: tuple[Measurement, ...]
    judgement: Judgement
    facts: RunFacts


class Runs:
    """The runs of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._kept: dict[tuple[str, object], JudgedRun] = {}
        self._lock = Lock()

    def listed(self) -> list[ListedRun]:
        """All runs, the newest first; StoreError if the store cannot be read."""
        with Store.open(self.workspace) as store:
            return [self._listed(store, run) for run in store.runs()]

    def one(self, run_id: str) -> ListedRun:
        """The run of that id; StoreError if there is none."""
        with Store.open(self.workspace) as store:
            return self._listed(store, store.run(run_id))

    def judged(self, run_id: str) -> JudgedRun:
        """The run of that id with its judgement; StoreError if there is none."""
        with self._lock:
            key = (run_id, self._stamp())
            if key not in self._kept:
                self._kept[key] = self._judge(run_id)
                while len(self._kept) > KEPT_MAX:
                    del self._kept[next(iter(self._kept))]
            return self._kept[key]

    def is_running(self, run_id: str) -> bool:
        """Whether a lab works on the run at this moment."""
        return is_held(self.workspace / "locks" / f"{run_id}.lock")

    def _listed(self, store: Store, run: StoredRun) -> ListedRun:
        state = COMPLETE if run.finished_at else UNFINISHED
        return ListedRun(
            run,
            stored=len(store.done(run.run_id)),
            owed=evidence.trials_owed(run, store.blocks_begun(run.run_id)),
            state=RUNNING if self.is_running(run.run_id) else state,
        )

    def _judge(self, run_id: str) -> JudgedRun:
        kept = evidence.of_run(run_id, self.workspace)
        made = judge(kept.measurements, kept.plan)
        return JudgedRun(kept.plan, kept.measurements, made, kept.facts)

    def _stamp(self) -> object:
        """Changes with each trial that is stored in the workspace."""
        files = (self.workspace / f"{FILE_NAME}{ending}" for ending in ("", "-wal"))
        stats = [file.stat() for file in files if file.exists()]
        return tuple((one.st_mtime_ns, one.st_size) for one in stats)
