"""Loading: `dbdyno sysbench … prepare` beside Debian's sysbench, same server, same connections.

What is compared is what a user waits for: wall time of the whole command, from its start to the
last index. Both programs take turns, in an order that turns with them, on one server; each time
the tables are dropped and the server has written its dirty pages out before the next begins. The
figure is the median over repetitions of the ratio of neighbours, in rows per second.

dbdyno loads by LOAD DATA LOCAL INFILE and by multi-row INSERT; MySQL 8.0 allows the first only
with `local_infile=ON`, which the server here has. Beside the ratio stands where the time goes: CPU
of the server and of the program per row, and what one more load each spent on its stages.

    .venv/bin/python -m benchmarks.prepare                 # the full table, some ten minutes
    .venv/bin/python -m benchmarks.prepare --shapes 1x20000 --threads 2 --repeats 1
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pymysql
from benchmarks.programs import dbdyno, finished, login, running_server

from dbdyno import _engine
from dbdyno.servers.base import Server

WAYS = ("infile", "insert")
TARGET = 3.0
SETTINGS = {
    "local_infile": "ON",
    "innodb_buffer_pool_size": "1G",
}


@dataclass(frozen=True)
class Sample:
    """One load by one program."""

    program: str
    tables: int
    rows: int
    repeat: int
    wall_s: float
    server_cpu_s: float
    program_cpu_s: float

    @property
    def rows_per_s(self) -> float:
        """Rows of all tables for each second of the command."""
        return self.tables * self.rows / self.wall_s


def main() -> int:
    """Loads all shapes and prints the table; exit status 1 when the target is missed."""
    options = _options()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is wanted to compare with, and not installed: apt-get install sysbench")
    settings = {**SETTINGS, "innodb_log_file_size": options.redo_file}
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder,
        running_server(folder, options.system, settings) as server,
    ):
        samples = list(_samples(server, options))
        rows = _rows(samples)
        for row in rows:
            row["stages_s"] = _stages(server, row["tables"], row["rows"], options.threads)
    print(_table(rows, options))
    if options.json:
        content = {"rows": rows, "samples": [asdict(sample) for sample in samples]}
        Path(options.json).write_text(json.dumps(content, indent=1))
    # The bars: the target on several tables, never slower on one.
    bars = [options.target if row["tables"] > 1 else 1.0 for row in rows]
    met = all(row["infile_ratio"] >= bar for row, bar in zip(rows, bars, strict=True))
    return 0 if met else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--system", default="mysql:8.0.15")
    parser.add_argument("--shapes", default="4x500000,1x1000000", help="tables x rows, …")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--redo-file", default="1G", help="size of each file of the redo log")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--target", type=float, default=TARGET)
    parser.add_argument("--json", help="write all samples to this file")
    return parser.parse_args()


def _samples(server: Server, options: argparse.Namespace) -> Iterator[Sample]:
    programs = ["sysbench", *WAYS]
    for repeat in range(options.repeats):
        for shape in options.shapes.split(","):
            tables, rows = map(int, shape.split("x"))
            for program in programs if repeat % 2 == 0 else reversed(programs):
                _clean(server, tables)
                sample = _load(program, server, options.threads, (tables, rows, repeat))
                print(_line(sample), file=sys.stderr, flush=True)
                yield sample
            _clean(server, tables)


def _clean(server: Server, tables: int) -> None:
    """Drops the tables and waits until the server has nothing left to write."""
    _engine.cleanup({**login(server), "tables": tables}, _engine.Stop())
    before = -1.0
    deadline = time.monotonic() + 30
    while (now := _server_cpu_s(server)) - before > 0.01 and time.monotonic() < deadline:
        before = now
        time.sleep(0.5)


def _load(program: str, server: Server, threads: int, shape: tuple[int, int, int]) -> Sample:
    tables, rows, repeat = shape
    arguments = [f"--tables={tables}", f"--table-size={rows}", f"--threads={threads}"]
    command = ["sysbench"] if program == "sysbench" else [dbdyno(), "sysbench"]
    _allow_files(server, allowed=program != "insert")
    before_cpu_s, begin_s = _server_cpu_s(server), time.monotonic()
    program_cpu_s = _run(command, server, arguments)
    wall_s = time.monotonic() - begin_s
    server_cpu_s = _server_cpu_s(server) - before_cpu_s
    return Sample(program, tables, rows, repeat, wall_s, server_cpu_s, program_cpu_s)


def _allow_files(server: Server, *, allowed: bool) -> None:
    """What decides how dbdyno loads."""
    endpoint, credentials = server.endpoint, server.credentials
    with (
        pymysql.connect(
            host=endpoint.host,
            port=endpoint.port,
            user=credentials.user,
            password=credentials.password,
        ) as session,
        session.cursor() as cursor,
    ):
        cursor.execute(f"SET GLOBAL local_infile = {'ON' if allowed else 'OFF'}")


def _run(command: list[str], server: Server, arguments: list[str]) -> float:
    """Runs prepare to its end; the program's CPU seconds."""
    endpoint, credentials = server.endpoint, server.credentials
    place = [f"--mysql-host={endpoint.host}", f"--mysql-port={endpoint.port}"]
    login = [f"--mysql-user={credentials.user}", f"--mysql-db={server.database}"]
    line = ["oltp_read_write", *place, *login, *arguments, "prepare"]
    cpu_s, text = finished(command, line, credentials.password)
    # With several threads sysbench ends with 0 whatever happened.
    if "FATAL" in text:
        sys.exit(f"{command[0]} failed:\n{text}")
    return cpu_s


def _server_cpu_s(server: Server) -> float:
    times = psutil.Process(server.pid).cpu_times()
    return times.user + times.system


def _stages(server: Server, tables: int, rows: int, threads: int) -> dict[str, dict[str, float]]:
    """Seconds of each stage of one more load, by file and by INSERT."""
    found = {}
    for way in WAYS:
        _clean(server, tables)
        _allow_files(server, allowed=True)
        shape = {"tables": tables, "table_size": rows, "threads": threads, "seed": 1}
        spec = {**login(server), **shape, "load": way}
        found[way] = _engine.prepare(spec, None, _engine.Stop())["stages"]
    _clean(server, tables)
    return found


def _line(sample: Sample) -> str:
    return (
        f"{sample.tables} x {sample.rows}, repeat {sample.repeat}, {sample.program}: "
        f"{sample.wall_s:.2f} s, {sample.rows_per_s:.0f} rows/s"
    )


def _rows(samples: list[Sample]) -> list[dict[str, Any]]:
    """One row a shape: medians of each program, and of the ratios of neighbours."""
    rows = []
    for tables, size in dict.fromkeys((s.tables, s.rows) for s in samples):
        row: dict[str, Any] = {"tables": tables, "rows": size}
        of = {
            program: [
                s for s in samples if (s.program, s.tables, s.rows) == (program, tables, size)
            ]
            for program in ("sysbench", *WAYS)
        }
        for program, own in of.items():
            count = tables * size
            row[f"{program}_rows_per_s"] = median(s.rows_per_s for s in own)
            row[f"{program}_server_us"] = median(s.server_cpu_s / count * 1e6 for s in own)
            row[f"{program}_program_us"] = median(s.program_cpu_s / count * 1e6 for s in own)
        for way in WAYS:
            pairs = zip(of[way], of["sysbench"], strict=True)
            ratios = [ours.rows_per_s / theirs.rows_per_s for ours, theirs in pairs]
            row[f"{way}_ratio"] = median(ratios)
            row[f"{way}_range"] = [min(ratios), max(ratios)]
        rows.append(row)
    return rows


def _table(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    lines = [
        f"Loading, {options.system}, {options.threads} threads, {options.repeats} repeats; "
        "ratio = rows/s of dbdyno / sysbench",
        "",
        "| tables | rows | program | rows/s | ratio (range) | server µs/row | program µs/row |",
        "|--:|--:|---|--:|--:|--:|--:|",
    ]
    for row in rows:
        for program in ("sysbench", *WAYS):
            least, greatest = row.get(f"{program}_range", (1.0, 1.0))
            ratio = f"{row.get(f'{program}_ratio', 1.0):.2f} ({least:.2f}-{greatest:.2f})"
            name = program if program == "sysbench" else f"dbdyno, {program}"
            lines.append(
                f"| {row['tables']} | {row['rows']} | {name} | {row[f'{program}_rows_per_s']:.0f} "
                f"| {ratio} | {row[f'{program}_server_us']:.2f} "
                f"| {row[f'{program}_program_us']:.2f} |"
            )
    for row in rows:
        for way, stages in row["stages_s"].items():
            told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in stages.items())
            lines.append(f"\n{row['tables']} x {row['rows']} by {way}: {told}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
