"""CPU per point select: the raw floor, the engine, and sysbench, side by side on one server.

The floor (engine/core/examples/floor) sends ready-made packets and counts the packets of replies.
What the engine takes beyond it is the price of drawing, following the protocol and recording.
Programs take turns in an order drawn for each round, a second or two each, and medians over rounds
are shown; floor and engine count their CPU in the window, sysbench's includes its start.

    .venv/bin/python -m benchmarks.floor                        # about ten minutes
    .venv/bin/python -m benchmarks.floor --system postgres:18.6
    .venv/bin/python -m benchmarks.floor --ways io_uring,epoll,io_uring_wait_50us --connections 1
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.programs import (
    dbdyno,
    example,
    login,
    queries_in,
    run_engine,
    run_program,
    running_server,
)

from dbdyno.servers.base import Server

WORKLOAD = "oltp_point_select"
RATIO_MAX = 1.3
AT = 64


@dataclass(frozen=True)
class Sample:
    """One turn of one program."""

    transport: str
    connections: int
    program: str
    cpu_us_per_query: float
    queries_per_s: float


def main() -> int:
    """Runs all cells and prints the table; exit status 1 when the engine misses its target."""
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder,
        running_server(folder, options.system) as server,
    ):
        run_program([dbdyno(), "sysbench"], server, options, (WORKLOAD, "tcp", 4), "prepare")
        samples = list(_samples(server, options))
    print(_table(samples))
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(one) for one in samples], indent=1))
    worst = max(_ratios(samples).values(), default=0.0)
    print(f"\nengine / floor at {AT} connections: at most {worst:.2f}, target {options.target}")
    return 0 if worst <= options.target else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--system", default="mysql:8.0.15")
    parser.add_argument("--ways", default="io_uring,epoll,blocking")
    parser.add_argument("--connections", default=f"1,8,{AT}")
    parser.add_argument("--transports", default="socket,tcp")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--table-size", type=int, default=20_000)
    parser.add_argument("--target", type=float, default=RATIO_MAX)
    parser.add_argument("--json", help="write all samples to this file")
    return parser.parse_args()


def _samples(server: Server, options: argparse.Namespace) -> Iterator[Sample]:
    programs: dict[str, Callable[[Server, argparse.Namespace, int], tuple[float, float]]] = {
        way: lambda *place, way=way: _floor(way, *place) for way in options.ways.split(",")
    }
    programs["engine"] = _engine
    if shutil.which("sysbench"):
        programs["sysbench"] = _sysbench
    order = random.Random(1)
    for _ in range(options.repeats):
        for transport in options.transports.split(","):
            place = argparse.Namespace(**vars(options), socket=transport == "socket")
            for connections in map(int, options.connections.split(",")):
                for name in order.sample(sorted(programs), len(programs)):
                    cpu_us, rate = programs[name](server, place, connections)
                    sample = Sample(transport, connections, name, cpu_us, rate)
                    print(sample, file=sys.stderr, flush=True)
                    yield sample


def _floor(
    way: str, server: Server, options: argparse.Namespace, connections: int
) -> tuple[float, float]:
    """A way of the floor: µs of CPU a query, queries a second."""
    endpoint = server.endpoint
    where = ["--socket", str(endpoint.socket)] if options.socket else ["--port", str(endpoint.port)]
    who = ["--user", server.credentials.user, "--database", server.database]
    who += ["--driver", server.driver]
    size = ["--tables", str(options.tables), "--table-size", str(options.table_size)]
    asked = ["--connections", str(connections), "--seconds", str(options.seconds)]
    ended = subprocess.run(
        [example("floor"), "--way", way, *where, *who, *size, *asked],
        env={**os.environ, "DBDYNO_PASSWORD": server.credentials.password},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(ended.stdout)
    return told["cpu_us_per_query"], told["queries"] / told["seconds"]


def _engine(server: Server, options: argparse.Namespace, connections: int) -> tuple[float, float]:
    sizes = {"tables": options.tables, "table_size": options.table_size}
    spec = {
        **login(server, "socket" if options.socket else "tcp"),
        "driver": server.driver,
        "connections": connections,
        "warmup_s": 0.3,
        "window_s": options.seconds,
        "seed": 1,
        "distribution": {"name": "uniform"},
        "workload": {"name": WORKLOAD, "options": sizes},
    }
    told = run_engine(spec)
    return told["cpu_us_per_query"], told["queries"] / options.seconds


def _sysbench(server: Server, options: argparse.Namespace, connections: int) -> tuple[float, float]:
    cell = (WORKLOAD, "socket" if options.socket else "tcp", connections)
    cpu_s, text = run_program(["sysbench"], server, options, cell, "run")
    queries = queries_in(text)
    return cpu_s / queries * 1e6, queries / options.seconds


def _medians(samples: list[Sample]) -> dict[tuple[str, int], dict[str, float]]:
    """By transport and connections: each program's median µs a query."""
    cells: dict[tuple[str, int], dict[str, float]] = {}
    for one in samples:
        cell = cells.setdefault((one.transport, one.connections), {})
        like = (one.transport, one.connections, one.program)
        same = [s for s in samples if (s.transport, s.connections, s.program) == like]
        cell[one.program] = median(s.cpu_us_per_query for s in same)
    return cells


def _ratios(samples: list[Sample]) -> dict[str, float]:
    """By transport: the engine against the cheapest way of the floor, where the target counts."""
    ratios = {}
    for (transport, connections), cell in _medians(samples).items():
        ways = [cell[name] for name in cell if name not in ("engine", "sysbench")]
        if connections == AT and ways:
            ratios[transport] = cell["engine"] / min(ways)
    return ratios


def _table(samples: list[Sample]) -> str:
    cells = _medians(samples)
    programs = list(dict.fromkeys(sorted(one.program for one in samples)))
    lines = ["CPU per query, µs, medians", "", "| | " + " | ".join(programs) + " |"]
    lines.append("|---|" + "--:|" * len(programs))
    for (transport, connections), cell in cells.items():
        figures = " | ".join(f"{cell[name]:.2f}" for name in programs)
        lines.append(f"| {transport}, {connections} | {figures} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
