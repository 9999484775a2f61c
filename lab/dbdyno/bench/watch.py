"""Watches host, server and generator while a trial runs: one thread, one reading a second.

It never raises: a server that dies under it is seen as one that uses nothing. The thread wakes on a
fixed grid of the monotonic clock, so that its own work does not stretch the seconds.
"""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from types import TracebackType
from typing import Final, Self

from dbdyno.bench.host import ProcessReading, Reading, read
from dbdyno.measurement import WatchSample

PERIOD_S: Final = 1.0


class Watch:
    """Samples from entering the block to leaving it."""

    def __init__(self, server_pid: int, generator_pid: int, period_s: float = PERIOD_S) -> None:
        self._pids = (server_pid, generator_pid)
        self._period_s = period_s
        self._readings: list[Reading] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def samples(self, origin_s: float) -> tuple[WatchSample, ...]:
        """What was seen since `origin_s` (monotonic clock): the moment the load began.

        A sample's time is the middle of the second that it is about.
        """
        samples = (_sample(*pair, origin_s) for pair in pairwise(tuple(self._readings)))
        return tuple(sample for sample in samples if sample.at_s >= 0)

    def _watch(self) -> None:
        due_s = time.monotonic()
        while True:
            self._readings.append(read(*self._pids))
            due_s += self._period_s
            if self._over.wait(max(0.0, due_s - time.monotonic())):
                return


def _sample(before: Reading, after: Reading, origin_s: float) -> WatchSample:
    seconds = max(after.at_s - before.at_s, 1e-6)

    def rate(earlier: float, later: float) -> float:
        return max(0.0, later - earlier) / seconds

    return WatchSample(
        at_s=(before.at_s + after.at_s) / 2 - origin_s,
        host_cpu_user=rate(before.cpu_user_s, after.cpu_user_s),
        host_cpu_system=rate(before.cpu_system_s, after.cpu_system_s),
        host_cpu_iowait=rate(before.cpu_iowait_s, after.cpu_iowait_s),
        host_cpu_steal=rate(before.cpu_steal_s, after.cpu_steal_s),
        host_cpu_idle=rate(before.cpu_idle_s, after.cpu_idle_s),
        memory_available_bytes=after.memory_available_bytes,
        disk_read_bytes_per_s=rate(before.disk_read_bytes, after.disk_read_bytes),
        disk_written_bytes_per_s=rate(before.disk_written_bytes, after.disk_written_bytes),
        disk_writes_per_s=rate(before.disk_writes, after.disk_writes),
        server_cpu=_process_rate(before.server, after.server, seconds),
        server_rss_bytes=after.server.rss_bytes,
        generator_cpu=_process_rate(before.generator, after.generator, seconds),
    )


def _process_rate(before: ProcessReading, after: ProcessReading, seconds: float) -> float:
    return max(0.0, after.cpu_s - before.cpu_s) / seconds
