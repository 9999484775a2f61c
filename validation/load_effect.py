"""How much does one load of the same rows differ from the next? Measured on real servers.

Every system is loaded ten times, and three starts rest on each load, in turn, by the lab's own
means (`dataset: {loads: 10}`). What starts on one load have in common, beyond what starts differ by
and a steady drift, is the effect of the load. It takes a machine without other work, and a quarter
of an hour a system; CPU per query bears some other work better than throughput does.

    .venv/bin/python -m validation.load_effect mysql:8.0.15 mariadb:10.11.5 --workspace FOLDER
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import f as fisher

from dbdyno.experiment.context import Makers, Progress
from dbdyno.experiment.order import trials_of
from dbdyno.experiment.runner import run
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.store.store import Store

LOADS: Final = 10
STARTS: Final = 3
WORKLOADS: Final = ("oltp_read_only", "oltp_read_write")
THREADS: Final = 8
TINY: Final = 1e-18
"""Less than any variance of log rates."""
METRICS: Final = (PRIMARY, BY_NAME["server_cpu_us_per_query"])


@dataclass(frozen=True)
class Effect:
    """What loads and starts of one system add to the log rate of one cell.

    Attributes:
        load_sd, start_sd: standard deviations between loads, and between starts on one load.
        low, high: 95 % interval of `load_sd`, rather too wide; from 0 where chance explains all.
        p: how often loads that do nothing differ as much.
    """

    load_sd: float
    start_sd: float
    low: float
    high: float
    p: float


def effect_of(loads: Sequence[str], values: Sequence[float]) -> Effect:
    """The effect that shows in log rates of starts, given in the order in which they ran.

    A steady drift over the run is taken out. As many starts on each load, two at least.
    """
    names, which = np.unique(np.asarray(loads), return_inverse=True)
    logs, count = np.asarray(values, dtype=float), len(values)
    drift = np.linspace(-1, 1, count)[:, None]
    among = len(names) - 1
    within = count - len(names) - 1
    starts = count / len(names)
    alone = _rest(np.hstack([np.ones((count, 1)), drift]), logs)
    spread = _rest(np.hstack([np.eye(len(names))[which], drift]), logs)
    error = max(spread / within, TINY)
    ratio = (alone - spread) / among / error
    low, high = (
        _between(ratio / float(fisher.ppf(part, among, within)), error, starts)
        for part in (0.975, 0.025)
    )
    p = float(fisher.sf(ratio, among, within))
    return Effect(_between(ratio, error, starts), math.sqrt(error), low, high, p)


def _rest(columns: np.ndarray[Any, Any], logs: np.ndarray[Any, Any]) -> float:
    """The sum of squares that these columns do not explain."""
    fitted = columns @ np.linalg.lstsq(columns, logs, rcond=None)[0]
    return float(((logs - fitted) ** 2).sum())


def _between(ratio: float, error: float, starts: float) -> float:
    """The standard deviation between loads for a ratio of mean squares."""
    return math.sqrt(max(0.0, (ratio - 1) * error / starts))


def plan_of(reference: str, loads: int, starts: int, window_s: float, rows: int) -> Plan:
    """One system, each block a start, the blocks on the loads in turn."""
    return Plan(
        title=f"effect of a load: {reference}",
        systems=(SystemPlan(label=reference, reference=reference),),
        workloads=tuple(WorkloadPlan(name=name, label=name) for name in WORKLOADS),
        dataset=DatasetPlan(tables=4, rows=rows, loads=loads),
        load=LoadPlan(threads=(THREADS,)),
        trial=TrialPlan(warmup_s=2, window_s=window_s),
        design=DesignPlan(blocks=loads * starts, controls=False),
    )


def measured(
    plan: Plan, workspace: Path, progress: Progress, makers: Makers | None = None
) -> list[Measurement]:
    """Runs a plan and gives its trials that did not fail, in their order."""
    with Store.open(workspace) as store:
        stored = store.create_run(plan, "validation.load_effect", {}, len(trials_of(plan, "")))
        run(plan, store, stored, workspace, progress, makers)
        return [one for one in store.measurements(stored.run_id) if one.failure is None]


def effects(measurements: Sequence[Measurement]) -> dict[tuple[str, str], Effect]:
    """The effect in each workload, on each metric; none where it was not seen in every trial."""
    found = {}
    for workload in dict.fromkeys(one.trial.cell.workload for one in measurements):
        of_it = [one for one in measurements if one.trial.cell.workload == workload]
        for metric in METRICS:
            logs = [math.log(value) for one in of_it if (value := one.value(metric))]
            if len(logs) == len(of_it):
                found[workload, metric.name] = effect_of([one.load for one in of_it], logs)
    return found


def rows(reference: str, found: Mapping[tuple[str, str], Effect]) -> Iterator[str]:
    """The table's rows for a system."""
    for (workload, metric), effect in found.items():
        yield (
            f"| `{reference}` | `{workload}` | `{metric}` | {effect.load_sd:.1%} | {effect.low:.1%}"
            f" to {effect.high:.1%} | {effect.start_sd:.1%} | {effect.p:.2f} |".replace("%", " %")
        )


class _Told:
    """Progress on stderr."""

    def stage(self, text: str) -> None:
        print(text, file=sys.stderr)

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        print(f"{number}/{total}: {trial.key}, {seconds_left:.0f} s left", file=sys.stderr)

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Nothing is said each second."""

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Nor of a trial's end."""


def main() -> int:
    """Measures every system and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("references", nargs="+", metavar="SYSTEM")
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--loads", type=int, default=LOADS)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--window", type=float, default=10, help="seconds")
    parser.add_argument("--rows", type=int, default=50_000, help="of each of four tables")
    asked = parser.parse_args()
    print("| system | workload | metric | loads differ by | 95 % interval | starts differ by | p |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for reference in asked.references:
        plan = plan_of(reference, asked.loads, asked.starts, asked.window, asked.rows)
        found = effects(measured(plan, asked.workspace, _Told()))
        print("\n".join(rows(reference, found)), flush=True)
        shutil.rmtree(asked.workspace / "systems")  # ten loads; the next system needs the room
    return 0


if __name__ == "__main__":
    sys.exit(main())
