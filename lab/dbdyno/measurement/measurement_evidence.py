"""What is collected besides the load so that doubts can be settled later from the store alone.

How fast the machine was before an arm, what the generator reaches when nothing holds it back, which
way each statement takes through the tables, which rows were left at the end, what twice the
generator's threads reach. Whoever could not look leaves a field empty; nothing is ever a guess. And
what a server kept of its commits when it was killed (`dbdyno prove-durability`), which no benchmark
shows.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dbdyno.measurement.measurement_parts import Noun


class Probe(Noun):
    """The machine at rest, a moment before an arm.

    Attributes:
        cpu_ms: the shortest of several runs of the same piece of arithmetic.
        sync_ms: median time to write one page and have it on the disk; None where nobody could.
    """

    cpu_ms: float
    sync_ms: float | None = None


class ThreadsSlice(Noun):
    """A few seconds of load: how many threads drove it, and how many events/s it reached."""

    threads: int
    rate_per_s: float


class DoubledThreads(Noun):
    """One load by turns with the generator's usual threads and with twice as many.

    Attributes:
        connections, setting: of the cell; the same in all slices.
        slice_s: length of each slice.
        slices: in the order in which they ran on one server; each two that follow each other are a
            pair, one of either kind.
    """

    workload: str
    connections: int
    setting: str
    slice_s: float
    slices: tuple[ThreadsSlice, ...]


class Evidence(Noun):
    """What was found out around a trial.

    Attributes:
        probe: of the trial's arm.
        ceiling_per_s: events/s of this workload that the same generator reached in the same run
            on a server that answers at once (`ceiling_threads` connections).
        query_plans: which way each kind of statement takes, by its name, on this system.
        rows_after: rows of each table when the system's last trial of the run had ended.
        dataset_after: digest of those rows, as `Measurement.dataset` is of the loaded ones.
        doubled_threads: of each workload, once in a run: with the baseline's last trial.
    """

    probe: Probe | None = None
    ceiling_per_s: float | None = None
    ceiling_threads: int | None = None
    query_plans: dict[str, str] = {}
    rows_after: dict[str, int] = {}
    dataset_after: str = ""
    doubled_threads: tuple[DoubledThreads, ...] = ()


class Kill(Noun):
    """A load of single commits, a kill -9 in the midst of it, and what was there after the restart.

    Attributes:
        acknowledged: commits that the server had answered; `kept`: those of them found afterwards.
        unanswered: rows that are there though no answer came; a connection can have one of them.
        load_s, recovery_s: from the first commit to the kill; from the start to the first answer.
        counted: commits between the two readings of `server_flushes` and `disk_flushes`.
        server_flushes: syncs of the log as the server counts them; None if it does not.
        disk_flushes: cache flushes as the machine's disks count them; None if they do not.
    """

    acknowledged: int
    kept: int
    unanswered: int = 0
    load_s: float
    recovery_s: float
    counted: int = 0
    server_flushes: float | None = None
    disk_flushes: float | None = None


class KilledServer(Noun):
    """All that `prove-durability` saw of one system.

    Attributes:
        settings: all effective variables, as in `ServerFacts`.
        connections: how many sent commits at the same time.
    """

    system: str
    version: str
    settings: Annotated[dict[str, str], Field(repr=False)]
    connections: int
    kills: tuple[Kill, ...]
