"""Does a CPU hog beside one of two equal servers get a winner? On real servers, the truth known.

Each run compares one server with itself on two data directories. While a trial of the second one
runs, so do one process that only computes, or as many as the machine has cores: in all its trials,
or in each with a chance of one half. A run is wrong if its verdict is "better" or "worse". The same
trials are also judged as if there were no rule (the first attempt of each block, no limit), to show
what the rule is for. Twenty runs take about half an hour on an otherwise quiet machine.

    .venv/bin/python -m validation.disturbance
    .venv/bin/python -m validation.disturbance --runs 2 --blocks 3 --window 1
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dbdyno.experiment import runner
from dbdyno.experiment.context import Makers
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.disturbance import disturbance_of
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.store.store import Store

FIRST, SECOND = "a", "b"
WRONG: Final = (Word.BETTER, Word.WORSE)
HOG: Final = (
    sys.executable,
    "-c",
    "import os; own = os.getppid()\nwhile os.getppid() == own: sum(range(100_000))",
)
"""Computes until it is killed, or its parent is gone."""
REDO: Final = {"innodb_log_file_size": str(16 * 1024**2)}
"""Every start copies the redo log; a large one would be most of its time."""


class Seen(NamedTuple):
    """What became of one run.

    Attributes:
        hogs: processes beside trials of the second system; chance: of each trial to have them.
        shares: what others had beside trials of the first and of the second system, in the mean.
        repeated: blocks that were measured again.
        word, change: the verdict, and the ratio less one; None without one.
        word_without, change_without: of the first attempts, without the rule.
    """

    hogs: int
    chance: float
    shares: tuple[float, float]
    repeated: int
    word: Word
    change: float | None
    word_without: Word
    change_without: float | None

    @property
    def is_wrong(self) -> bool:
        """Whether one of two equal systems won."""
        return self.word in WRONG


class Hogs:
    """Progress of a run that has hogs run beside trials of the second system."""

    def __init__(self, count: int, chance: float, seed: int) -> None:
        self._count, self._chance = count, chance
        self._random = random.Random(seed)
        self._hogs: list[subprocess.Popen[bytes]] = []

    def stage(self, text: str) -> None:
        """Nothing runs beside what comes between trials."""

    note = stage

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Starts the hogs, if the trial is to have them."""
        if trial.system == SECOND and self._random.random() < self._chance:
            self._hogs += [subprocess.Popen(HOG) for _ in range(self._count)]

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Takes no notice."""

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Ends the hogs."""
        self.stop()

    def stop(self) -> None:
        """Ends the hogs that run."""
        for hog in self._hogs:
            hog.kill()
            hog.wait()
        self._hogs.clear()

    @property
    def running(self) -> int:
        """How many hogs run."""
        return sum(hog.poll() is None for hog in self._hogs)


def asked(reference: str, blocks: int, window_s: float) -> Plan:
    """A server against itself: small tables, two connections, one cell."""
    return Plan(
        title="a hog beside b",
        systems=tuple(
            SystemPlan(label=label, reference=reference, settings=REDO) for label in (FIRST, SECOND)
        ),
        workloads=(WorkloadPlan(name="oltp_read_only"),),
        dataset=DatasetPlan(tables=1, rows=10_000),
        load=LoadPlan(threads=(2,)),
        trial=TrialPlan(warmup_s=1, window_s=window_s),
        design=DesignPlan(blocks=blocks),
    )


def measured(
    store: Store, folder: Path, plan: Plan, progress: Hogs, makers: Makers | None = None
) -> list[Measurement]:
    """All that one run stores; hogs are ended whatever ends it."""
    run = store.create_run(plan, "validation.disturbance", {}, len(trials_of(plan, "")))
    try:
        runner.run(store, run, folder, progress, makers)
    finally:
        progress.stop()
    return store.measurements(run.run_id)


def seen(stored: Sequence[Measurement], plan: Plan, hogs: int, chance: float) -> Seen:
    """What the judge says of a run, with the rule and without it."""
    word, change = _verdict(stored, plan)
    free = plan.design.model_copy(update={"disturbance_max": 1.0})
    first = [m for m in stored if m.trial.repeat == 0]
    word_without, change_without = _verdict(first, plan.model_copy(update={"design": free}))
    return Seen(
        hogs=hogs,
        chance=chance,
        shares=(_share(stored, FIRST), _share(stored, SECOND)),
        repeated=len({(m.trial.block, m.trial.repeat) for m in stored if m.trial.repeat}),
        word=word,
        change=change,
        word_without=word_without,
        change_without=change_without,
    )


def _verdict(stored: Sequence[Measurement], plan: Plan) -> tuple[Word, float | None]:
    (verdict,) = judge(stored, plan).verdicts
    ratio = verdict.estimate.ratio
    return verdict.word, None if ratio is None else ratio - 1


def _share(stored: Iterable[Measurement], system: str) -> float:
    found = [disturbance_of(m) for m in stored if m.trial.system == system]
    known = [one.share for one in found if one is not None]
    return sum(known) / len(known) if known else 0.0


def line(number: int, one: Seen) -> str:
    """A run in one line."""

    def told(word: Word, change: float | None) -> str:
        return word.value if change is None else f"{word.value} ({change:+.1%})"

    return (
        f"{number:3}  {one.hogs} hogs, chance {one.chance:.0%}, others {one.shares[0]:.1%} beside"
        f" a, {one.shares[1]:.1%} beside b; {one.repeated} blocks again:"
        f" {told(one.word, one.change)}; without the rule"
        f" {told(one.word_without, one.change_without)}"
    )


def summary(found: Sequence[Seen]) -> str:
    """How many runs were wrong, with the rule and without it."""

    def counts(words: Iterable[Word]) -> str:
        return ", ".join(f"{word.value} {count}" for word, count in Counter(words).most_common())

    wrong = sum(one.is_wrong for one in found)
    before = sum(one.word_without in WRONG for one in found)
    return (
        f"wrong words: {wrong} of {len(found)} ({counts(one.word for one in found)});"
        f" without the rule: {before} ({counts(one.word_without for one in found)})"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures all runs and counts; exit status 1 if an equal system won."""
    options = _options(arguments)
    plan = asked(options.system, options.blocks, options.window)
    found: list[Seen] = []
    with tempfile.TemporaryDirectory(prefix="dbdyno-disturbance-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # servers may run as another user
        with Store.open(folder) as store:
            for number in range(options.runs):
                hogs = (1, os.cpu_count() or 1)[number // 2 % 2]
                chance = (1.0, 0.5)[number % 2]
                stored = measured(store, folder, plan, Hogs(hogs, chance, number))
                found.append(seen(stored, plan, hogs, chance))
                print(line(number + 1, found[-1]), flush=True)
    print(summary(found))
    return int(any(one.is_wrong for one in found))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--window", type=float, default=3.0, help="seconds of a trial")
    parser.add_argument("--system", default="mysql:5.7.22")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
