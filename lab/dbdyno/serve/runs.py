"""Runs of a workspace in a list, and a run with its judgement.

All of it is read from the store, which has to be there: nothing is made, and no file of a written
report is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import StoreError
from dbdyno.files import is_locked
from dbdyno.judge.judgement import JudgedRun, Judgement, judge
from dbdyno.judge.verdict import Word
from dbdyno.language.words import Text, listed, say
from dbdyno.report.numbers import NONE, decided
from dbdyno.report.rows import title_of
from dbdyno.report.tell.terms import term
from dbdyno.store import evidence
from dbdyno.store.reading import StoredRun, UnreadableRun
from dbdyno.store.store import FILE_NAME, Store, find, lock_path, opened

LISTED_MAX: Final = 100
"""Runs on a page of the list."""


@dataclass(frozen=True)
class RunVersion:
    """A run as of a moment; another one after each trial, design or end that is stored."""

    run_id: str
    finished_at: str | None
    last_link: str


@dataclass(frozen=True)
class ListedRun:
    """A run of the list.

    Attributes:
        stored: trials with a measurement without failure.
        planned: trials of the complete run.
        lock: the lock that a lab at work on the run holds.
    """

    run: StoredRun
    version: RunVersion
    stored: int
    planned: int
    lock: Path

    @property
    def title(self) -> Text:
        return title_of(self.run.plan)

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of its systems, the baseline first."""
        return tuple(system.label for system in self.run.plan.systems)

    @property
    def is_running(self) -> bool:
        """Test for a lab at work on the run now."""
        return is_locked(self.lock)

    @property
    def state(self) -> Text:
        """Running, complete or unfinished."""
        if self.is_running:
            return say("running")
        return say("complete") if self.run.finished_at else say("unfinished")


class Runs:
    """Runs of a workspace; each method raises StoreError if the store cannot be read."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def listed(self, start: int = 0) -> list[ListedRun | UnreadableRun]:
        """A page of the list, the newest first, and a run more if there is another page."""
        with opened(self.workspace) as store:
            part = slice(start, start + LISTED_MAX + 1)
            return [self._row(store, run) for run in store.listed(part)]

    def run(self, run_id: str) -> ListedRun:
        with opened(self.workspace) as store:
            return self._listed(store, find(store, run_id))

    def version(self, run_id: str) -> RunVersion:
        with opened(self.workspace) as store:
            return _version(store, find(store, run_id))

    def judged(self, run_id: str) -> JudgedRun:
        """A run with its judgement, which reads every histogram and takes a second or more."""
        run = evidence.of_run(run_id, self.workspace)
        judgement = judge(run.measurements, run.plan)
        return JudgedRun(run.plan, run.measurements, judgement, run.facts)

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Version of the store's files, changed by whatever is stored."""
        stamps = []
        for ending in ("", "-wal"):
            try:
                facts = (self.workspace / f"{FILE_NAME}{ending}").stat()
            except OSError:
                continue
            if facts.st_size:  # readers make and remove an empty one
                stamps.append((facts.st_mtime_ns, facts.st_size))
        return tuple(stamps)

    def _row(self, store: Store, run: StoredRun | UnreadableRun) -> ListedRun | UnreadableRun:
        if isinstance(run, UnreadableRun):
            return run
        try:
            return self._listed(store, run)
        except StoreError as error:  # a trial of it is damaged
            return UnreadableRun(run.run_id, run.created_at, error.found or error.message)

    def _listed(self, store: Store, run: StoredRun) -> ListedRun:
        completion = evidence.completion(store, run.run_id)
        return ListedRun(
            run,
            _version(store, run),
            stored=completion.done,
            planned=completion.planned,
            lock=lock_path(self.workspace, run.run_id),
        )


def _version(store: Store, run: StoredRun) -> RunVersion:
    return RunVersion(run.run_id, run.finished_at, store.last_link(run.run_id))


def conclusion(judgement: Judgement) -> Text:
    """Counts of a run's verdicts, on workloads if there are any on them."""
    if len(judgement.all_verdicts) == 1:
        (only,) = judgement.all_verdicts
        return say("{word} {change}", word=term(only.word), change=decided(only))
    words = [grid.word for grid in judgement.summaries if grid.workload]
    words = words or [verdict.word for verdict in judgement.verdicts]
    words += [verdict.word for search in judgement.slo for verdict in search.verdicts]
    counts = (say("{word} {count}", word=term(w), count=words.count(w)) for w in Word if w in words)
    return listed(counts) or NONE
