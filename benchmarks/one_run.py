"""One run of the engine in a process of its own: what it took in time, memory and CPU, as JSON.

The process is nothing but a generator, so its memory and CPU are the generator's. The specification
is read from standard input.

    .venv/bin/python -m benchmarks.one_run < spec.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from dbdyno import _engine


def memory_bytes(name: str) -> int:
    """A line of this process's status: VmRSS (resident now) or VmHWM (most ever)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def measured(spec: dict[str, Any]) -> dict[str, Any]:
    """Runs `spec`; its times in s, its memory in bytes, its CPU in µs for each query."""
    began, before = time.monotonic(), memory_bytes("VmRSS")
    opened: list[float] = []

    def report(_: dict[str, Any]) -> None:
        if not opened:
            opened.append(time.monotonic() - began)

    record = _engine.run({**spec, "tell_begin": True}, report, _engine.Stop())
    window = [one for one in record["intervals"] if one["phase"] == "measured"]
    queries = sum(one[kind] for one in window for kind in ("reads", "writes", "others"))
    if record["failure"] is not None or queries == 0:
        raise RuntimeError(f"the run failed: {record['failure']}")
    return {
        "connections": spec["connections"],
        "reactor": record["reactor"],
        "opening_s": opened[0],
        "memory_before": before,
        "memory_most": memory_bytes("VmHWM"),
        "queries": queries,
        "cpu_us_per_query": record["measured"]["cpu_s"] / queries * 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measured(json.load(sys.stdin))))
