"""Processes of others that use the host's CPU, by name and pid."""

from __future__ import annotations

import os
import time
from typing import Final

import psutil

from dbdyno.experiment.watch.proc import family
from dbdyno.measurement.disturbance import Disturbance

LOOK_S: Final = 0.2
NAMED_MAX: Final = 3
CORES_MIN: Final = 0.05
"""Fewer cores disturb nobody."""


def busiest(server_pid: int, look_s: float = LOOK_S) -> list[str]:
    """Processes other than the lab's and the server's that use most CPU now, the first most.

    >>> ["python3 (pid 4242, 0.71 cores)"]
    """
    before, began_s = _cpu_s(), time.monotonic()
    time.sleep(look_s)
    own = {*family(os.getpid()), *(family(server_pid) if server_pid else ())}
    seconds = time.monotonic() - began_s
    cores = {
        process: (cpu_s - before[process]) / seconds
        for process, cpu_s in _cpu_s().items()
        if process in before and process[0] not in own
    }
    most = sorted(cores, key=cores.__getitem__, reverse=True)[:NAMED_MAX]
    return [
        f"{name} (pid {pid}, {cores[pid, name]:.2f} cores)"
        for pid, name in most
        if cores[pid, name] >= CORES_MIN
    ]


def disturbance_line(disturbance: Disturbance, busy: list[str]) -> str:
    """A trial's disturbance, the processes that are busy, and a remedy."""
    return (
        f"others used {disturbance.share:.0%} of this machine's CPU beside this trial;"
        f" busy now: {', '.join(busy)}. Stop what is not needed, or allow for it with"
        " --disturbance-max (design.disturbance_max in a plan)"
    )


def _cpu_s() -> dict[tuple[int, str], float]:
    """CPU seconds of each process, by pid and name."""
    seconds = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        if (times := process.info["cpu_times"]) is not None:
            seconds[process.pid, process.info["name"]] = times.user + times.system
    return seconds
