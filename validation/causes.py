"""How often is the first cause that the lab names the right one? Planted and real causes.

`planted` compares two reference servers. For each statement, the second one computes longer in one
function, holds a lock longer, or syncs a file once more than the first. Two equal servers are
compared too: no cause may be named. `real` compares two servers of one version that differ in a
setting or an index, whose effect is known.

Each reference server is a program of its own (engine/core/examples/planted_reference.rs), so /proc
shows its CPU, threads and context switches apart from the lab's. It is built with cargo's profile
`ci`, which keeps symbols: stacks of a release, or of the engine in a Python process, would not name
the function.

    .venv/bin/python -m validation.causes planted --runs 20 --keep causes.jsonl
    .venv/bin/python -m validation.causes planted --runs 20 --stacks    # and the first function
    .venv/bin/python -m validation.causes real --runs 5

Measurements are of this machine: run nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.programs import example
from validation.known_servers import (
    FIRST,
    SECOND,
    KnownInstance,
    KnownServer,
    judged,
    makers_of,
    plan_of,
)
from validation.outcomes import Outcome, Outcomes

from dbdyno.experiment.context import Makers
from dbdyno.judge.judgement import Judgement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import Plan, ProcedurePlan
from dbdyno.servers.base import STOP_S, Credentials, Endpoint, Instance, ServerSpec
from dbdyno.servers.process import LOOPBACK

THREADS: Final = 4
ASKED: Final = ("what", "blocks", "window", "stacks")
"""Options that runs must share to be counted together."""


@dataclass(frozen=True)
class Planted:
    """Work of a reference server for each statement, in the order of the program's arguments.

    Attributes:
        work_us, hot_us: CPU in `base_work` and in `planted_hot_function`, about.
        lock_us: sleep while it holds the only lock.
        syncs: number of syncs of a file.
    """

    work_us: int = 200
    hot_us: int = 0
    lock_us: int = 0
    syncs: int = 0


PLANTED: Final[Mapping[str, tuple[Planted, Planted]]] = {
    "hot": (Planted(), Planted(hot_us=100)),
    "lock": (Planted(lock_us=50), Planted(lock_us=500)),
    "sync": (Planted(syncs=1), Planted(syncs=2)),
    "equal": (Planted(lock_us=50, syncs=1), Planted(lock_us=50, syncs=1)),
}
"""Both servers of each comparison; equal ones have some of everything that could be named."""


def _systems(
    reference: str, settings: Mapping[str, Any], name: str, values: tuple[Any, Any]
) -> list[dict[str, Any]]:
    """Two systems of a plan that differ in one setting."""
    return [
        {"label": label, "reference": reference, "settings": {**settings, name: value}}
        for label, value in zip((FIRST, SECOND), values, strict=True)
    ]


MYSQL_8, POSTGRES_18 = "mysql:8.0.33", "postgres:18.6"
REDO: Final = {"innodb_redo_log_capacity": "16M"}
WAL: Final = {"shared_buffers": "64MB", "max_wal_size": "64MB"}
"""Every start copies the log; a large one would be most of its time."""
REAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "flush-log": {
        "systems": _systems(MYSQL_8, REDO, "innodb_flush_log_at_trx_commit", (2, 1)),
        "workloads": ["oltp_update_non_index"],
        "dataset": {"tables": 1, "rows": 10_000},
    },
    "buffer-pool": {
        "systems": _systems(MYSQL_8, REDO, "innodb_buffer_pool_size", ("256M", "8M")),
        "workloads": ["oltp_point_select"],
        "dataset": {"tables": 1, "rows": 200_000},
    },
    "index": {
        "systems": [
            {"label": FIRST, "reference": MYSQL_8, "settings": REDO},
            {
                "label": SECOND,
                "reference": MYSQL_8,
                "settings": REDO,
                # Each start follows a restore of the data, so the index is there to be dropped.
                "after_start": ["DROP INDEX k_1 ON sbtest.sbtest1"],
            },
        ],
        "workloads": ["select_random_points"],
        "dataset": {"tables": 1, "rows": 2_000},
    },
    "synchronous-commit": {
        "systems": _systems(POSTGRES_18, WAL, "synchronous_commit", ("off", "on")),
        "workloads": ["oltp_update_non_index"],
        "dataset": {"tables": 1, "rows": 10_000},
    },
}
"""What differs between plans of real servers; the second system has the cause."""

SYNCS: Final = r"syncs|disk_flushes|Innodb_(data|os_log)_fsyncs|wal\.wal_sync|io\..*\.fsyncs"
RIGHT: Final[Mapping[str, str]] = {
    "hot": "work|server_cpu_us",
    "lock": "waiting",
    "sync": SYNCS,
    "equal": "",
    "flush-log": SYNCS,
    "buffer-pool": r"(storage_)?read_kb|Innodb_(data_reads?|pages_read|buffer_pool_reads)",
    "index": "rows_read|Innodb_rows_read|Handler_read_rnd_next",
    "synchronous-commit": SYNCS,
}
"""Pattern of the right first cause: a cost, its counters, or a factor. Empty for no cause."""
RIGHT_FUNCTIONS: Final[Mapping[str, str]] = {"hot": ".*planted_hot_function.*", "equal": ""}
"""The same for the first function, where it is known."""


class PlantedServer(KnownServer):
    """A running reference server in a process of its own, which ends with the lab."""

    def __init__(self, label: str, folder: Path, planted: Planted) -> None:
        self.label = label
        arguments = [str(folder / "synced"), *map(str, astuple(planted))]
        self._process = subprocess.Popen(
            [example("planted_reference", "ci"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self._asking = threading.Lock()
        login = self._line()
        self.credentials = Credentials(login["user"], login["password"])
        self.database = login["database"]
        self.endpoint = Endpoint(LOOPBACK, login["port"], None)

    def status(self) -> dict[str, float]:
        """Its counters; two threads of the lab ask for them."""
        with self._asking:
            print(file=self._process.stdin, flush=True)
            return self._line()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        read: dict[str, Any] = json.loads(self._process.stdout.readline())
        return read

    def alive(self) -> bool:
        """True while its process runs."""
        return self._process.poll() is None

    def stop(self, patience_s: float = STOP_S) -> None:
        """Closes its standard input, upon which it ends."""
        self._process.communicate()

    def kill(self) -> None:
        """As `stop`: killed, it would leave its Unix socket behind."""
        self.stop()


class PlantedInstance(KnownInstance):
    """A reference server in which causes are planted."""

    def __init__(self, spec: ServerSpec, folder: Path, planted: Planted) -> None:
        self.spec, self.folder, self._planted = spec, folder, planted
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, settings: Mapping[str, Any] | None = None) -> PlantedServer:
        """Starts the program."""
        return PlantedServer(self.spec.label, self.folder, self._planted)


def experiment(
    case: str, seed: int, blocks: int, window_s: float, *, stacks: bool = False
) -> Outcome:
    """Runs one comparison from its plan to its causes."""

    def open_instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
        return PlantedInstance(spec, folder, PLANTED[case][spec.label == SECOND])

    if case in PLANTED:
        plan = plan_of(seed, blocks, window_s).model_copy(
            update={"load": LoadPlan(threads=(THREADS,))}
        )
        makers = makers_of(open_instance)
    else:
        plan, makers = real_plan(case, seed, blocks, window_s), Makers()
    procedure = ProcedurePlan(sample_stacks=stacks)
    judgement = judged(plan.model_copy(update={"procedure": procedure}), makers)
    (verdict,) = judgement.verdicts
    return {
        "case": case,
        "seed": seed,
        "word": verdict.word.value,
        "ratio": verdict.estimate.ratio,
        "first": first_cause(judgement),
        "function": first_function(judgement) if stacks else None,
    }


def real_plan(case: str, seed: int, blocks: int, window_s: float) -> Plan:
    """One cell; what others use of the machine is no reason to void a trial here."""
    return Plan.model_validate(
        {
            **REAL[case],
            "title": case,
            "load": {"threads": [THREADS]},
            "trial": {"warmup_s": 1, "window_s": window_s},
            "design": {"blocks": blocks, "disturbance_max": 1.0},
            "seed": seed,
        }
    )


def first_cause(judgement: Judgement) -> str:
    """Name of the first cause of the only difference; empty if none is named."""
    firsts = (causes.first for causes in judgement.causes)
    return next((first.name for first in firsts if first is not None), "")


def first_function(judgement: Judgement) -> str:
    """Name of the function with the largest difference; empty if none differs."""
    return next((one.name for ranked in judgement.functions for one in ranked.functions), "")


def is_right(outcome: Outcome) -> bool:
    """True if the first cause is the planted or known one."""
    return re.fullmatch(RIGHT[outcome["case"]], outcome["first"]) is not None


def summary(ended: Sequence[Outcome]) -> str:
    """A row for each comparison, and for each whose first function is known."""
    lines = ["| comparison | right first | named first |", "| --- | ---: | --- |"]
    for case in dict.fromkeys(one["case"] for one in ended):
        outcomes = [one for one in ended if one["case"] == case]
        lines.append(_row(case, [one["first"] for one in outcomes], RIGHT[case]))
        names = [one["function"] for one in outcomes if one["function"] is not None]
        if names and case in RIGHT_FUNCTIONS:
            lines.append(_row(f"{case}, function", names, RIGHT_FUNCTIONS[case]))
    return "\n".join(lines)


def _row(title: str, names: Sequence[str], right: str) -> str:
    count = sum(re.fullmatch(right, name) is not None for name in names)
    named = ", ".join(f"{name or 'none'} {n}" for name, n in Counter(names).most_common())
    return f"| {title} | {count} of {len(names)} | {named} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparisons one after the other, and prints the table."""
    options = _options(arguments)
    outcomes = Outcomes(options.keep, {name: getattr(options, name) for name in ASKED})
    ended = {(one["case"], one["seed"]) for one in outcomes.ended}
    for seed in range(1, options.runs + 1):
        for case in PLANTED if options.what == "planted" else REAL:
            if (case, seed) not in ended:
                size = (options.blocks, options.window)
                outcomes.add(experiment(case, seed, *size, stacks=options.stacks))
                print(outcomes.ended[-1], file=sys.stderr, flush=True)
    print(summary(outcomes.ended))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("planted", "real"))
    parser.add_argument("--runs", type=int, default=20, help="of each comparison, with kept ones")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--window", type=float, default=2.0, help="seconds of a trial")
    parser.add_argument("--stacks", action="store_true", help="sample stacks in every trial")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="outcomes, a line each; goes on")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
