"""How often is the whole lab wrong about servers whose truth is known?

Each experiment compares two reference servers of the engine: four workers with exponential times,
so that a closed loop which keeps them busy gets exactly workers / time, however busy the machine
is. The second server's time is longer by 2 %, or not at all; each start of either is faster or
slower by chance (`START_SD`), as starts of real servers are. All else is the lab as users have it:
plan, blocks in drawn order, the engine in a child process, watch, store, judge. Servers are not
loaded, and what only a real one can be asked is not.

Told is how often the 95 % interval holds the truth, how often a verdict has the wrong sign, and how
often equal servers are called different by that interval.

    .venv/bin/python -m validation.known_servers --runs 200     # planted and equal: 400, 40 minutes
    .venv/bin/python -m validation.known_servers --runs 2 --blocks 3 --window 1
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from validation.outcomes import Outcome, Outcomes

from dbdyno import _engine
from dbdyno.cli.progress import Countdown, Several
from dbdyno.experiment import runner
from dbdyno.experiment.context import Makers, OpenInstance
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.judge.judgement import Judgement, judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import MYSQL, STOP_S, Credentials, Endpoint, Instance, ServerSpec
from dbdyno.store.store import Store

FIRST, SECOND = "first", "second"
PLANTED: Final = 0.02
START_SD: Final = 0.015
"""Of the logarithm of a start's speed; what starts differ by on a quiet machine."""
TIME_S: Final = 0.002
WORKERS: Final = 4
CONNECTIONS: Final = 64
"""As many requests wait at the server as keep it busy while the generator is held up for 30 ms."""
ASKED: Final = ("blocks", "window")


class KnownServer:
    """A running reference server, as the lab sees servers."""

    driver, pid = MYSQL, 0

    def __init__(self, label: str, time_s: float) -> None:
        self.label = label
        self._reference = _engine.Reference("exponential", time_s, workers=WORKERS)
        user, password, self.database = self._reference.login
        self.credentials = Credentials(user, password)
        self.endpoint = Endpoint("127.0.0.1", self._reference.port, None)

    def version(self) -> str:
        """It is none of a product."""
        return "8.0.33-reference"

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The same for every question."""
        return [("0", "0")]

    def settings(self) -> dict[str, str]:
        """It has none."""
        return {}

    def status(self) -> dict[str, float]:
        """No counter but one that the lab takes for a sign of life."""
        return {"Uptime": 1.0}

    def alive(self) -> bool:
        """It does not die."""
        return True

    def last_words(self) -> str:
        """It has no log."""
        return ""

    def stop(self, patience_s: float = STOP_S) -> None:
        """It ends when nobody holds it any more."""

    def kill(self) -> None:
        """As `stop`."""


class KnownInstance:
    """A server whose starts differ by chance."""

    driver = MYSQL

    def __init__(
        self, spec: ServerSpec, folder: Path, chance: random.Random, slower: float
    ) -> None:
        self.spec, self.folder = spec, folder
        self._chance, self._slower = chance, slower
        self.folder.mkdir(parents=True, exist_ok=True)

    def start(self, settings: Mapping[str, Any] | None = None) -> KnownServer:
        """Another start, of another speed."""
        speed = math.exp(self._chance.gauss(0, START_SD))
        return KnownServer(self.spec.label, TIME_S * (1 + self._slower) / speed)

    def has_snapshot(self) -> bool:
        """So that nothing is loaded."""
        return True

    def data_bytes(self) -> int:
        """It has no data."""
        return 0

    def snapshot(self) -> None:
        """Nothing to copy."""

    def restore(self) -> None:
        """Nothing to bring back."""

    def close(self) -> None:
        """Nothing runs."""

    def discard(self) -> None:
        """Nothing is there."""


def plan_of(seed: int, blocks: int, window_s: float) -> Plan:
    """One cell; what others use of the machine is no reason to void a trial here."""
    return Plan(
        title="servers of known truth",
        systems=tuple(
            SystemPlan(label=label, reference="mysql:8.0.33") for label in (FIRST, SECOND)
        ),
        workloads=(WorkloadPlan(name="oltp_point_select"),),
        dataset=DatasetPlan(tables=1, rows=1000),
        load=LoadPlan(threads=(CONNECTIONS,)),
        trial=TrialPlan(warmup_s=0.2, window_s=window_s),
        design=DesignPlan(blocks=blocks, disturbance_max=1.0),
        seed=seed,
    )


def makers_of(open_instance: OpenInstance) -> Makers:
    """Makers of servers without a product, for which the generator has no ceiling."""
    return Makers(
        open_instance=open_instance,
        ceiling=lambda plan, trial, driver: None,
        certificate=CertificateFacts,
    )


def judged(plan: Plan, makers: Makers) -> Judgement:
    """Runs a plan in a workspace that goes with it, and judges what was measured."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-known-") as name:
        folder, trials = Path(name), len(trials_of(plan, ""))
        folder.chmod(0o755)  # real servers may run as another user
        with Store.open(folder) as store:
            run = store.create_run(plan, "validation", {}, trials)
            runner.run(store, run, folder, Several((), Countdown(trials, 0, 0.0)), makers)
            return judge(store.measurements(run.run_id), plan)


def experiment(seed: int, planted: float, blocks: int, window_s: float) -> Outcome:
    """Runs one experiment from its plan to its verdict."""
    chance = random.Random(seed)

    def open_instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
        return KnownInstance(spec, folder, chance, planted if spec.label == SECOND else 0.0)

    (verdict,) = judged(plan_of(seed, blocks, window_s), makers_of(open_instance)).verdicts
    found = verdict.estimate
    return {
        "seed": seed,
        "planted": planted,
        "word": verdict.word.value,
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "blocks": found.blocks,
    }


def summary(ended: Sequence[Outcome]) -> str:
    """Coverage, wrong signs and false differences, each with its standard error."""
    planted = [one for one in ended if one["planted"]]
    equal = [one for one in ended if not one["planted"]]
    truth = 1 / (1 + PLANTED)
    rows = [
        (
            "interval holds the truth, planted",
            [_holds(one, truth) for one in planted],
            "93 to 97 %",
        ),
        ("better, though it is slower", [_is(one, Word.BETTER) for one in planted], "at most 1 %"),
        ("worse, as it is", [_is(one, Word.WORSE) for one in planted], ""),
        ("equal ones differ", [not _holds(one, 1.0) for one in equal], "3 to 7 %"),
    ]
    lines = ["| claim | seen | target | experiments |", "| --- | ---: | ---: | ---: |"]
    for claim, seen, target in rows:
        if seen:
            share = sum(seen) / len(seen)
            error = math.sqrt(share * (1 - share) / len(seen))
            lines.append(f"| {claim} | {share:.1%} ± {error:.1%} | {target} | {len(seen)} |")
    return "\n".join(lines)


def _holds(one: Outcome, truth: float) -> bool:
    return one["low"] is not None and one["low"] <= truth <= one["high"]


def _is(one: Outcome, word: Word) -> bool:
    return bool(one["word"] == word.value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the experiments, several at a time, and prints the table."""
    options = _options(arguments)
    outcomes = Outcomes(options.keep, {"known_servers": {n: getattr(options, n) for n in ASKED}})
    ended = {(one["seed"], one["planted"]) for one in outcomes.ended}
    asked = [(seed, planted) for seed in range(options.runs) for planted in (PLANTED, 0.0)]
    left = [one for one in asked if one not in ended]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        running = [
            pool.submit(experiment, seed, planted, options.blocks, options.window)
            for seed, planted in left
        ]
        for number, one in enumerate(as_completed(running), 1):
            outcomes.add(one.result())
            print(f"{number}/{len(left)}: {outcomes.ended[-1]}", file=sys.stderr)
    print(summary(outcomes.ended))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--runs", type=int, default=200, help="with 2 %% planted, and as many equal"
    )
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--window", type=float, default=2.0, help="seconds of a trial")
    parser.add_argument("--jobs", type=int, default=6, help="experiments at a time")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="outcomes, a line each; goes on")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
