"""Runs of a workspace in a list, and a run with its judgement.

Judging reads every histogram of a run and takes a second or more, so judgements are cached until
the store's file changes. Threads of the page share it under a lock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from dbdyno.errors import StoreError
from dbdyno.files import is_locked
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Text, listed, say
from dbdyno.report.formats.replay import JudgedRun
from dbdyno.report.numbers import NONE, decided
from dbdyno.report.rows import title_of
from dbdyno.report.tell.terms import term
from dbdyno.store import evidence
from dbdyno.store.reading import StoredRun, UnreadableRun
from dbdyno.store.store import FILE_NAME, Store, lock_path

KEPT_MAX: Final = 8
"""Judged runs that are kept; each holds its measurements."""
REPORT: Final = "report.json"
"""The file of a report, in the run's folder, that holds its verdicts."""


@dataclass(frozen=True)
class ListedRun:
    """A run of the list.

    Attributes:
        stored: trials with a measurement without failure.
        planned: trials of the complete run.
        state: running, complete or unfinished.
        verdict: counts of the words in its report; empty without a report.
    """

    run: StoredRun
    stored: int
    planned: int
    state: Text
    verdict: Text

    @property
    def title(self) -> Text:
        return title_of(self.run.plan)

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of its systems, the baseline first."""
        return tuple(system.label for system in self.run.plan.systems)


class Runs:
    """Runs of a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._kept: dict[tuple[str, object], JudgedRun] = {}
        self._lock = Lock()

    def listed(self) -> list[ListedRun | UnreadableRun]:
        """All runs, the newest first; StoreError if the store cannot be read."""
        with Store.open(self.workspace) as store:
            return [self._row(store, run) for run in store.listed()]

    def run(self, run_id: str) -> ListedRun:
        with Store.open(self.workspace) as store:
            return self._listed(store, store.run(run_id))

    def judged(self, run_id: str) -> JudgedRun:
        """A run with its judgement; StoreError for an unknown id."""
        with self._lock:
            key = (run_id, self._stamp())
            if key not in self._kept:
                run = evidence.of_run(run_id, self.workspace)
                judgement = judge(run.measurements, run.plan)
                self._kept[key] = JudgedRun(run.plan, run.measurements, judgement, run.facts)
                while len(self._kept) > KEPT_MAX:
                    del self._kept[next(iter(self._kept))]
            return self._kept[key]

    def is_running(self, run_id: str) -> bool:
        return is_locked(lock_path(self.workspace, run_id))

    def _row(self, store: Store, run: StoredRun | UnreadableRun) -> ListedRun | UnreadableRun:
        if isinstance(run, UnreadableRun):
            return run
        try:
            return self._listed(store, run)
        except StoreError as error:  # a trial of it is damaged
            return UnreadableRun(run.run_id, run.created_at, error.found or error.message)

    def _listed(self, store: Store, run: StoredRun) -> ListedRun:
        state = say("complete") if run.finished_at else say("unfinished")
        completion = evidence.completion(store, run.run_id)
        return ListedRun(
            run,
            stored=completion.done,
            planned=completion.planned,
            state=say("running") if self.is_running(run.run_id) else state,
            verdict=_verdict(self.workspace / run.run_id / REPORT),
        )

    def _stamp(self) -> object:
        """Version of the store, changed by each stored trial."""
        files = (self.workspace / f"{FILE_NAME}{ending}" for ending in ("", "-wal"))
        stats = [file.stat() for file in files if file.exists()]
        return tuple((one.st_mtime_ns, one.st_size) for one in stats)


def _verdict(report: Path) -> Text:
    """Counts of a written report's verdicts, on workloads if there are any on them.

    They are read without judging again.
    """
    try:
        stored = json.loads(report.read_bytes())
        limited = (one for search in stored["slo"] for one in search["verdicts"])
        of_cells, of_limits = (
            [Verdict.model_validate(one) for one in rows] for rows in (stored["verdicts"], limited)
        )
        of_workloads = [Word(one["word"]) for one in stored["summaries"] if one["workload"]]
    except (OSError, ValueError, LookupError, TypeError):
        return NONE
    if len(of_cells) + len(of_limits) == 1:
        (only,) = (*of_cells, *of_limits)
        return say("{word} {change}", word=term(only.word), change=decided(only))
    words = of_workloads or [verdict.word for verdict in of_cells]
    words += [verdict.word for verdict in of_limits]
    counts = (say("{word} {count}", word=term(w), count=words.count(w)) for w in Word if w in words)
    return listed(counts) or NONE
