"""Many connections from one process against the null responder: memory, opening, CPU per query.

The responder answers at once and does nothing else, so what is seen is the generator. Two
questions: what do 50,000 open connections take, and does a query cost more when 10,000 connections
are active than with 64? The floor (`benchmarks/floor.py`) is asked the second question too, in
turns with the engine: what it pays more, the kernel takes for touching sockets that have left the
processor's caches, and no generator saves it. The engine's target is about its rise beyond that.

    .venv/bin/python -m benchmarks.connections                  # about three minutes
    .venv/bin/python -m benchmarks.connections --connections 500 --active 8,64 --seconds 1 \
        --repeats 1

Where the limit of open files is lower, engine and responder spread over several threads, each with
a table of open files of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.programs import example, null_responder, run_engine

MEMORY_BYTES_MAX = 1 << 30
RISE_MAX = 1.3


def main() -> int:
    """Measures and prints; exit status 1 when a target is missed."""
    options = _options()
    active = [int(word) for word in options.active.split(",")]
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder,
        null_responder(Path(folder) / "socket", max(options.connections, *active)) as place,
    ):
        opening = _engine(place, options, options.connections)
        rounds = [
            {n: (_engine(place, options, n), _floor(place, options, n)) for n in active}
            for _ in range(options.repeats)
        ]
    rows = [_row(n, rounds) for n in active]
    memory = opening["memory_most"]
    rise = _rise(rows, "engine_us") / _rise(rows, "floor_us")
    print(_told(opening, memory, rows, options, rise))
    if options.json:
        whole = {"opening": opening, "memory_bytes": memory, "rows": rows, "rise": rise}
        Path(options.json).write_text(json.dumps(whole, indent=1))
    return 0 if memory <= MEMORY_BYTES_MAX and rise <= options.rise else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--connections", type=int, default=50_000)
    parser.add_argument("--active", default="64,1000,10000")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--reactor", choices=["io_uring", "epoll"], default="io_uring")
    parser.add_argument("--tcp", action="store_true", help="TCP instead of the Unix socket")
    parser.add_argument("--rise", type=float, default=RISE_MAX, help="allowed beyond the floor's")
    parser.add_argument("--json", help="write all figures to this file")
    return parser.parse_args()


def _engine(place: dict[str, Any], options: argparse.Namespace, connections: int) -> dict[str, Any]:
    tcp = {"host": place["host"], "port": place["port"]}
    spec = {
        "endpoint": tcp if options.tcp else {"socket": place["socket"]},
        "user": "anybody",
        "database": "any",
        "connections": connections,
        "warmup_s": 0.5,
        "window_s": options.seconds,
        "seed": 1,
        "reactor": options.reactor,
        "workload": {"name": "oltp_point_select"},
    }
    result = run_engine(spec)
    print(f"{connections} connections: {result}", file=sys.stderr, flush=True)
    return result


def _floor(place: dict[str, Any], options: argparse.Namespace, connections: int) -> dict[str, Any]:
    where = ["--port", str(place["port"])] if options.tcp else ["--socket", place["socket"]]
    size = ["--connections", str(connections), "--seconds", str(options.seconds)]
    command = [example("floor"), "--way", options.reactor, *where, *size]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def _row(
    connections: int, rounds: list[dict[int, tuple[dict[str, Any], dict[str, Any]]]]
) -> dict[str, Any]:
    pairs = [one[connections] for one in rounds]
    return {
        "connections": connections,
        "engine_us": median(engine["cpu_us_per_query"] for engine, _ in pairs),
        "floor_us": median(floor["cpu_us_per_query"] for _, floor in pairs),
    }


def _rise(rows: list[dict[str, Any]], program: str) -> float:
    """A query's CPU with the most active connections, as a multiple of that with the fewest."""
    return float(rows[-1][program] / rows[0][program])


def _told(
    opening: dict[str, Any],
    memory: int,
    rows: list[dict[str, Any]],
    options: argparse.Namespace,
    rise: float,
) -> str:
    place = "TCP" if options.tcp else "a Unix socket"
    lines = [
        f"{opening['connections']} connections over {place}: opened in "
        f"{opening['opening_s']:.2f} s, {opening['memory_most'] / 1e6:.0f} MB resident"
    ]
    lines += ["", "| active connections | engine µs/query | floor µs/query | engine / floor |"]
    lines += ["|--:|--:|--:|--:|"]
    lines += [
        f"| {row['connections']} | {row['engine_us']:.2f} | {row['floor_us']:.2f} "
        f"| {row['engine_us'] / row['floor_us']:.2f} |"
        for row in rows
    ]
    engine, floor = _rise(rows, "engine_us"), _rise(rows, "floor_us")
    lines += [
        "",
        f"memory: target {MEMORY_BYTES_MAX / 1e6:.0f} MB, {_verdict(memory <= MEMORY_BYTES_MAX)}",
        f"from {rows[0]['connections']} to {rows[-1]['connections']} connections: "
        f"engine × {engine:.2f}, floor × {floor:.2f}; engine beyond the floor × {rise:.2f}, "
        f"target {options.rise}, {_verdict(rise <= options.rise)}",
    ]
    return "\n".join(lines)


def _verdict(holds: bool) -> str:
    return "met" if holds else "missed"


if __name__ == "__main__":
    sys.exit(main())
