"""Client CPU per query: `dbdyno sysbench` beside Debian's sysbench, same server, same options.

A load generator on the database's machine takes from the database what it uses itself, and one on
a machine of its own decides how many such machines are needed. So its cost is what is compared:
user + system CPU of the whole process, start-up included, per query that its own report counts.

The two programs take turns in an order drawn for each cell and repetition, on one freshly prepared
server. A cell's figure is the median over repetitions of the ratio of neighbours. The target
is about the geometric mean of all cells; and no cell may cost nearly as much as with sysbench. A
single connection is no cell: all of its cost is that each reply wakes up the client, whoever it is.

Throughput is compared as well, also beside `--hogs` processes that do nothing but compute, as on a
machine shared with neighbours.

    .venv/bin/python -m benchmarks.client_cpu                 # the full table, some twenty minutes
    .venv/bin/python -m benchmarks.client_cpu --hogs 2 --connections 1,2,4,8,64 --transports tcp
    .venv/bin/python -m benchmarks.client_cpu --seconds 1 --repeats 1 --connections 1
    .venv/bin/python -m benchmarks.client_cpu --lua           # Lua scripts, as sysbench's are
    .venv/bin/python -m benchmarks.client_cpu --system postgres:18.6
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.programs import ROOT, Cell, dbdyno, queries_in, run_program, running_server

from dbdyno.servers.base import Server

TARGET = 0.45
TARGET_LUA = 0.55
TARGET_POSTGRES = 0.5
SCRIPTS = ROOT / "engine/core/src/script/lua/scripts"
CELL_MOST = 0.9
WORKLOADS = "oltp_point_select,oltp_read_only,oltp_read_write,oltp_write_only"


@dataclass(frozen=True)
class Sample:
    """One run of one program."""

    program: str
    workload: str
    transport: str
    connections: int
    repeat: int
    cpu_s: float
    queries: int
    queries_per_s: float

    @property
    def cell(self) -> tuple[str, str, int]:
        """What is compared: workload, transport, connections."""
        return self.workload, self.transport, self.connections

    @property
    def cpu_us_per_query(self) -> float:
        """Whole-process CPU for each query, µs."""
        return self.cpu_s / self.queries * 1e6


def main() -> int:
    """Runs all cells and prints the table; exit status 1 when the target is missed."""
    options = _options()
    programs = {"sysbench": ["sysbench"], "dbdyno": [dbdyno(), "sysbench"]}
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is wanted to compare with, and not installed: apt-get install sysbench")
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder,
        running_server(folder, options.system) as server,
    ):
        run_program(programs["dbdyno"], server, options, ("oltp_read_write", "tcp", 4), "prepare")
        with _hogs(options.hogs):
            samples = list(_samples(programs, server, options))
    rows = _rows(samples)
    print(_table(rows, options))
    if options.json:
        content = {"rows": rows, "samples": [asdict(sample) for sample in samples]}
        Path(options.json).write_text(json.dumps(content, indent=1))
    return 0 if _is_met(rows, options) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--system", default="mysql:8.0.15")
    parser.add_argument("--workloads", default=WORKLOADS)
    parser.add_argument("--transports", default="tcp,socket")
    parser.add_argument("--connections", default="8,64")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--table-size", type=int, default=20_000)
    parser.add_argument("--hogs", type=int, default=0, help="busy processes beside each run")
    parser.add_argument(
        "--lua", action="store_true", help="dbdyno runs scripts, not what is built in"
    )
    parser.add_argument("--target", type=float, help="of the geometric mean")
    parser.add_argument("--cell-most", type=float, default=CELL_MOST, help="of any one cell")
    parser.add_argument("--json", help="write all samples to this file")
    options = parser.parse_args()
    target = TARGET_POSTGRES if options.system.startswith("postgres") else TARGET
    options.target = options.target or (TARGET_LUA if options.lua else target)
    return options


@contextmanager
def _hogs(count: int) -> Iterator[None]:
    """`count` processes that compute without end, as busy neighbours do."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def _samples(
    programs: dict[str, list[str]], server: Server, options: argparse.Namespace
) -> Iterator[Sample]:
    order = random.Random(1)
    cells = [
        (workload, transport, int(connections))
        for workload in options.workloads.split(",")
        for transport in options.transports.split(",")
        for connections in options.connections.split(",")
    ]
    for repeat, cell in product(range(options.repeats), cells):
        for name in order.sample(sorted(programs), len(programs)):
            cpu_s, text = run_program(
                programs[name], server, options, _typed(name, cell, options), "run"
            )
            queries = queries_in(text)
            sample = Sample(name, *cell, repeat, cpu_s, queries, queries / options.seconds)
            print(_line(sample), file=sys.stderr, flush=True)
            yield sample


def _typed(program: str, cell: Cell, options: argparse.Namespace) -> Cell:
    """The cell as the program is told it: sysbench's workloads are scripts in any case."""
    workload, transport, connections = cell
    if program == "dbdyno" and options.lua:
        return str(SCRIPTS / f"{workload}.lua"), transport, connections
    return cell


def _line(sample: Sample) -> str:
    return (
        f"{sample.workload} {sample.transport} {sample.connections} connections, "
        f"repeat {sample.repeat}, {sample.program}: {sample.cpu_us_per_query:.2f} µs/query, "
        f"{sample.queries_per_s:.0f} queries/s"
    )


def _rows(samples: list[Sample]) -> list[dict[str, Any]]:
    """One row a cell: both medians, and the median of the ratios of neighbours."""
    rows = []
    for cell in dict.fromkeys(s.cell for s in samples):
        by = {
            name: {s.repeat: s for s in samples if (s.cell, s.program) == (cell, name)}
            for name in ("sysbench", "dbdyno")
        }
        cpu = [
            by["dbdyno"][repeat].cpu_us_per_query / by["sysbench"][repeat].cpu_us_per_query
            for repeat in by["sysbench"]
        ]
        rate = [
            by["dbdyno"][repeat].queries_per_s / by["sysbench"][repeat].queries_per_s
            for repeat in by["sysbench"]
        ]
        rows.append(
            {
                "workload": cell[0],
                "transport": cell[1],
                "connections": cell[2],
                "sysbench_cpu_us_per_query": median(
                    s.cpu_us_per_query for s in by["sysbench"].values()
                ),
                "dbdyno_cpu_us_per_query": median(
                    s.cpu_us_per_query for s in by["dbdyno"].values()
                ),
                "cpu_ratio": median(cpu),
                "cpu_ratio_min": min(cpu),
                "cpu_ratio_max": max(cpu),
                "throughput_ratio": median(rate),
            }
        )
    return rows


def _overall(rows: list[dict[str, Any]]) -> float:
    return exp(sum(log(row["cpu_ratio"]) for row in rows) / len(rows))


def _worst(rows: list[dict[str, Any]]) -> float:
    return max(float(row["cpu_ratio"]) for row in rows)


def _is_met(rows: list[dict[str, Any]], options: argparse.Namespace) -> bool:
    return _overall(rows) <= options.target and _worst(rows) <= options.cell_most


def _table(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    lines = [
        f"Client CPU per query, {options.system}, {options.repeats} repeats of "
        f"{options.seconds} s; ratio = dbdyno / sysbench",
        "",
        "| workload | transport | connections | sysbench µs | dbdyno µs | CPU ratio (range) "
        "| throughput |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['workload']} | {row['transport']} | {row['connections']} "
            f"| {row['sysbench_cpu_us_per_query']:.2f} "
            f"| {row['dbdyno_cpu_us_per_query']:.2f} | {row['cpu_ratio']:.2f} "
            f"({row['cpu_ratio_min']:.2f}-{row['cpu_ratio_max']:.2f}) "
            f"| {row['throughput_ratio']:.2f} |"
        )
    lines += [
        "",
        f"geometric mean {_overall(rows):.3f} (target {options.target}), "
        f"worst cell {_worst(rows):.2f} (target {options.cell_most}): "
        f"{'met' if _is_met(rows, options) else 'missed'}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
