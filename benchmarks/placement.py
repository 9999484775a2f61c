"""How the client's threads should run beside the server: each placement beside sysbench.

Two questions decide the default. Throughput: on cores that client and server share, each placement
and sysbench take turns on one freshly prepared server, and a cell's figure is the median ratio of
neighbours. Lateness: beside bursts of other programs, how many events take long on a server that
answers at once? The bursts hinder the server as well, alike for all of them.

    .venv/bin/python -m benchmarks.placement                               # about an hour
    .venv/bin/python -m benchmarks.placement --systems mysql:8.0.33 --connections 8 --repeats 3
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.programs import (
    dbdyno,
    finished,
    null_responder,
    queries_in,
    run_program,
    running_server,
)

from dbdyno.servers.base import Server

PLACEMENTS = ("normal", "batch")
WORKLOADS = "oltp_point_select,oltp_read_only,oltp_read_write,oltp_write_only"
LATE_MS = 20.0
BURST_S, REST_S = 0.030, 0.070
"""What a neighbour does in turn: all of a core, then nothing."""
SYSBENCH = "sysbench"
LATE = re.compile(r"^ *([0-9.]+) \|.*?([0-9]+) *$", re.MULTILINE)
"""A line of the histogram: milliseconds and events."""


@dataclass(frozen=True)
class Sample:
    """One run of one program: its rate, and its CPU for each query in µs."""

    system: str
    cell: tuple[str, str, int]
    repeat: int
    program: str
    queries_per_s: float
    cpu_us_per_query: float


def main() -> int:
    """Runs both and prints the tables; exit status 1 if no placement keeps up and is on time."""
    options = _options()
    if shutil.which(SYSBENCH) is None:
        sys.exit("sysbench is wanted to compare with, and not installed: apt-get install sysbench")
    samples = [one for system in options.systems.split(",") for one in _system(system, options)]
    late = dict(_late(options))
    print(_throughput(samples, options))
    print(_lateness(late))
    if options.json:
        told = {"samples": [asdict(one) for one in samples], "late": late}
        Path(options.json).write_text(json.dumps(told, indent=1))
    fast = [name for name in PLACEMENTS if _worst(samples, name) >= options.target]
    return 0 if any(sum(late[name]) <= options.late for name in fast) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--systems", default="mysql:8.0.33,mariadb:10.11.5")
    parser.add_argument("--workloads", default=WORKLOADS)
    parser.add_argument("--transports", default="tcp,socket")
    parser.add_argument("--connections", default="1,8,64")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--table-size", type=int, default=20_000)
    parser.add_argument("--target", type=float, default=1.0, help="share of sysbench's rate")
    parser.add_argument("--late", type=int, default=0, help="late events that are allowed")
    parser.add_argument("--json", help="write all samples to this file")
    return parser.parse_args()


def _program(name: str) -> tuple[list[str], tuple[str, ...]]:
    if name == SYSBENCH:
        return [SYSBENCH], ()
    return [dbdyno(), "sysbench"], (f"--client-placement={name}",)


def _system(system: str, options: argparse.Namespace) -> Iterator[Sample]:
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder,
        running_server(folder, system) as server,
    ):
        load = [dbdyno(), "sysbench"]
        run_program(load, server, options, ("oltp_read_write", "tcp", 4), "prepare")
        order, names = random.Random(1), [SYSBENCH, *PLACEMENTS]
        cells = list(
            product(
                options.workloads.split(","),
                options.transports.split(","),
                map(int, options.connections.split(",")),
            )
        )
        for repeat, cell in product(range(options.repeats), cells):
            for name in order.sample(names, len(names)):
                yield _run(system, cell, repeat, name, server, options)


def _run(
    system: str,
    cell: tuple[str, str, int],
    repeat: int,
    name: str,
    server: Server,
    options: argparse.Namespace,
) -> Sample:
    program, more = _program(name)
    cpu_s, text = run_program(program, server, options, cell, "run", *more)
    queries = queries_in(text)
    made = Sample(
        system, cell, repeat, name, queries / options.seconds, cpu_s / max(1, queries) * 1e6
    )
    print(made, file=sys.stderr, flush=True)
    return made


def _ratios(samples: list[Sample], name: str) -> dict[tuple[str, tuple[str, str, int]], float]:
    """The median over repeats of a placement's rate as a share of sysbench's, cell by cell."""
    rates = {(one.system, one.cell, one.repeat, one.program): one.queries_per_s for one in samples}
    found: dict[tuple[str, tuple[str, str, int]], list[float]] = {}
    for (system, cell, repeat, program), rate in rates.items():
        if program == name:
            beside = rates[system, cell, repeat, SYSBENCH]
            found.setdefault((system, cell), []).append(rate / beside)
    return {place: median(ratios) for place, ratios in found.items()}


def _worst(samples: list[Sample], name: str) -> float:
    return min(_ratios(samples, name).values())


def _throughput(samples: list[Sample], options: argparse.Namespace) -> str:
    by_name = {name: _ratios(samples, name) for name in PLACEMENTS}
    cpu = {
        name: median(one.cpu_us_per_query for one in samples if one.program == name)
        for name in (SYSBENCH, *PLACEMENTS)
    }
    lines = [
        f"Throughput as a share of sysbench's, medians of {options.repeats} × {options.seconds} s",
        "",
        f"| system | workload | transport | connections | {' | '.join(PLACEMENTS)} |",
        f"|---|---|---|--:{'|--:' * len(PLACEMENTS)}|",
    ]
    for system, cell in by_name[PLACEMENTS[0]]:
        shares = " | ".join(f"{by_name[name][system, cell]:.2f}" for name in PLACEMENTS)
        lines.append(f"| {system} | {cell[0]} | {cell[1]} | {cell[2]} | {shares} |")
    worst = ", ".join(f"{name} {_worst(samples, name):.2f}" for name in PLACEMENTS)
    costs = ", ".join(f"{name} {us:.1f}" for name, us in cpu.items())
    return "\n".join([*lines, "", f"worst cell: {worst}", f"client CPU, µs a query: {costs}"])


def _late(options: argparse.Namespace) -> Iterator[tuple[str, list[int]]]:
    """For each program how many events of each run were late beside bursts."""
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder,
        null_responder(Path(folder) / "null.sock", sessions=8) as responder,
        _bursts(),
    ):
        late: dict[str, list[int]] = {name: [] for name in (SYSBENCH, *PLACEMENTS)}
        order = random.Random(2)
        for _ in range(options.repeats):
            for name in order.sample(sorted(late), len(late)):
                late[name].append(_late_events(name, responder["socket"], options))
    yield from late.items()


def _late_events(name: str, socket: str, options: argparse.Namespace) -> int:
    program, more = _program(name)
    _, text = finished(
        program,
        [
            "oltp_point_select",
            f"--mysql-socket={socket}",
            "--mysql-user=load",
            "--threads=8",
            f"--time={options.seconds}",
            "--histogram=on",
            *more,
            "run",
        ],
        "",
    )
    return sum(int(count) for ms, count in LATE.findall(text) if float(ms) >= LATE_MS)


@contextmanager
def _bursts() -> Iterator[None]:
    """A neighbour for each core that takes all of it now and then."""
    neighbours = [multiprocessing.Process(target=_burst) for _ in os.sched_getaffinity(0)]
    for neighbour in neighbours:
        neighbour.start()
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.join()


def _burst() -> None:
    while True:
        end_s = time.monotonic() + BURST_S
        while time.monotonic() < end_s:
            pass
        time.sleep(REST_S)


def _lateness(late: dict[str, list[int]]) -> str:
    lines = [
        "",
        f"Events over {LATE_MS:g} ms on a server that answers at once, beside bursts of "
        f"{BURST_S * 1000:g} ms in every {(BURST_S + REST_S) * 1000:g} ms on each core",
        "",
        *(f"- {name}: {', '.join(map(str, counts))}" for name, counts in late.items()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
