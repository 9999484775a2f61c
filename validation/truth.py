"""What load generators say of a server whose truth is known: Debian's sysbench beside dbdyno.

The reference server plans each answer as the statement arrives, so its truth does not depend on the
machine. Both programs are given the same command lines by turns, and what their reports say is held
against what was planned (or, for a stall met by few connections, against what follows from it).
The table shows errors in per cent of the truth, the median over repetitions.

    .venv/bin/python -m validation.truth                       # about ten minutes
    .venv/bin/python -m validation.truth --seconds 2 --repeats 1
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from benchmarks.programs import dbdyno, finished

from dbdyno import _engine

PROGRAMS: Final = {"sysbench": ["sysbench"], "dbdyno": [dbdyno(), "sysbench"]}
STALL_S: Final = 0.5
SERVICE_S: Final = 0.002
STATISTICS: Final = ("throughput", "mean", "p95", "p99")
REPORTED: Final = {
    "throughput": re.compile(r"^ +transactions: +\d+ +\(([0-9.]+) per sec", re.MULTILINE),
    "mean": re.compile(r"^ +avg: +([0-9.]+)", re.MULTILINE),
    "p95": re.compile(r"^ +95th percentile: +([0-9.]+)", re.MULTILINE),
    "p99": re.compile(r"^ +99th percentile: +([0-9.]+)", re.MULTILINE),
}


@dataclass(frozen=True)
class Question:
    """A server, a load, and what must come out.

    Attributes:
        server: arguments of `_engine.Reference`.
        load: options as they are typed.
        throughput_per_s: None for as many as the server was asked.
        seen_by: `server` where each event reaches it when it is due; `customer` where events wait
            for a connection meanwhile, so that the truth is worked out.
    """

    name: str
    server: Mapping[str, Any]
    load: tuple[str, ...]
    throughput_per_s: float | None = None
    seen_by: str = "server"


def questions(seconds: float) -> list[Question]:
    """All of them; a stall comes in the middle of the run."""
    stall = {"law": "fixed", "time_s": SERVICE_S, "stall_s": (seconds / 2, STALL_S)}
    return [
        Question(
            "2 connections, 4 workers of 20 ms",
            {"law": "fixed", "time_s": 0.02, "workers": 4},
            ("--threads=2",),
        ),
        Question(
            "16 connections, 4 workers of 20 ms",
            {"law": "fixed", "time_s": 0.02, "workers": 4},
            ("--threads=16",),
            throughput_per_s=200.0,
        ),
        Question(
            "8 connections, exponential 10 ms",
            {"law": "exponential", "time_s": 0.01},
            ("--threads=8",),
        ),
        Question(
            "8 connections, lognormal 8 ms, sigma 0.6",
            {"law": "lognormal", "time_s": 0.008, "sigma": 0.6},
            ("--threads=8",),
        ),
        Question(
            "250/s, 4 workers, exponential 10 ms",
            {"law": "exponential", "time_s": 0.01, "workers": 4},
            ("--threads=128", "--rate=250"),
        ),
        Question(
            "stall of 0.5 s at 200/s, 200 connections", stall, ("--threads=200", "--rate=200")
        ),
        Question(
            "stall of 0.5 s at 200/s, 8 connections",
            stall,
            ("--threads=8", "--rate=200"),
            seen_by="customer",
        ),
    ]


def main() -> int:
    """Asks both and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is wanted to compare with, and not installed: apt-get install sysbench")
    print(f"| server and load | program | {' | '.join(STATISTICS)} |")
    print(f"| --- | --- |{' ---: |' * len(STATISTICS)}")
    order = random.Random(1)
    for question in questions(options.seconds):
        errors: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
        for _ in range(options.repeats):
            for name in order.sample(sorted(PROGRAMS), len(PROGRAMS)):
                errors[name].append(dict(error_of(PROGRAMS[name], question, options.seconds)))
        for name, found in errors.items():
            cells = (_median([one[s] for one in found if s in one]) for s in STATISTICS)
            print(f"| {question.name} | {name} | {' | '.join(cells)} |", flush=True)
    return 0


def error_of(program: list[str], question: Question, seconds: int) -> Iterator[tuple[str, float]]:
    """The relative error of each statistic that the program's reports have and the truth knows.

    Its report has one percentile, so it runs once for each of two.
    """
    for percentile in (95, 99):
        server = _engine.Reference(**question.server)
        text = report_of(program, question, server, seconds, percentile)
        truth = dict(_truth(question, server, seconds))
        if percentile == 99:
            truth.pop("throughput"), truth.pop("mean")
        for statistic, true in truth.items():
            if found := REPORTED[statistic].search(text):
                yield statistic, float(found[1]) / true - 1


def report_of(
    program: list[str], question: Question, server: _engine.Reference, seconds: int, percentile: int
) -> str:
    """What the program prints of that load on that server."""
    user, password, database = server.login
    arguments = [
        "oltp_point_select",
        "--mysql-host=127.0.0.1",
        f"--mysql-port={server.port}",
        f"--mysql-user={user}",
        f"--mysql-db={database}",
        "--tables=1",
        "--table-size=1000",
        f"--time={seconds}",
        f"--percentile={percentile}",
        *question.load,
        "run",
    ]
    return finished(program, arguments, password)[1]


def _truth(
    question: Question, server: _engine.Reference, seconds: int
) -> Iterator[tuple[str, float]]:
    """The true numbers: events a second, ms."""
    planned, sum_ns = server.truth()
    count = max(1, planned.count())
    yield "throughput", question.throughput_per_s or count / seconds
    if question.seen_by == "server":
        yield "mean", sum_ns / count / 1e6
        yield "p95", planned.quantile(0.95) / 1e6
        yield "p99", planned.quantile(0.99) / 1e6
        return
    # Of the customers of `seconds`, those of the stall wait for what is left of it: a share
    # (STALL_S - x) / seconds waits for longer than x. The mean adds half of its square.
    yield "mean", (SERVICE_S + STALL_S**2 / 2 / seconds) * 1e3
    wait_s = STALL_S - 0.01 * seconds
    if wait_s > 0:
        yield "p99", (wait_s + SERVICE_S) * 1e3
    yield "p95", (max(0.0, STALL_S - 0.05 * seconds) + SERVICE_S) * 1e3


def _median(errors: list[float]) -> str:
    return f"{median(errors):+.1%}".replace("%", " %") if errors else "—"


if __name__ == "__main__":
    sys.exit(main())
