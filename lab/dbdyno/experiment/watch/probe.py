"""The machine's own speed before an arm, by a hash and a few syncs, in some 0.2 s.

The probe runs before the dataset is restored, while no server of the run is up. Its purpose is
comparison: all arms should have the same value.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from dbdyno.measurement.parts import Probe

PIECE: Final = bytes(4 * 1024**2)
PIECES: Final = 5
PAGE: Final = bytes(4096)
SYNCS: Final = 15
SYNCS_S_MAX: Final = 0.1
"""Longest time for syncs: a slow disk gets fewer of them."""


def probe_speed(folder: Path | None) -> Probe:
    """The probe of this machine, and of the disk of `folder` if given."""
    return Probe(cpu_ms=_cpu_ms(), sync_ms=None if folder is None else _sync_ms(folder))


def _cpu_ms() -> float:
    """The shortest of several runs: a disturbance can only lengthen them."""
    times = []
    for _ in range(PIECES):
        began_s = time.perf_counter()
        hashlib.sha256(PIECE).digest()
        times.append(time.perf_counter() - began_s)
    return round(min(times) * 1e3, 4)


def _sync_ms(folder: Path) -> float | None:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            times: list[float] = []
            while len(times) < SYNCS and sum(times) < SYNCS_S_MAX:
                began_s = time.perf_counter()
                os.pwrite(file.fileno(), PAGE, 0)
                os.fdatasync(file.fileno())
                times.append(time.perf_counter() - began_s)
    except OSError:
        return None
    return round(statistics.median(times) * 1e3, 4)
