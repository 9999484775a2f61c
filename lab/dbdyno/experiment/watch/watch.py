"""Watches host, server and generator while a trial runs: one thread, one reading a second.

It never raises: a server that dies under it is seen as one that uses nothing. The thread wakes on a
fixed grid of the monotonic clock, so that its own work does not stretch the seconds.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import Final, Self

from dbdyno.experiment.watch.host import Reading, read
from dbdyno.experiment.watch.process_reading import SwitchCounter
from dbdyno.experiment.watch.watch_sample import sample
from dbdyno.measurement.parts import WatchSample

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
        samples = (sample(*pair, origin_s) for pair in pairwise(tuple(self._readings)))
        return tuple(one for one in samples if one.at_s >= 0)

    def _watch(self) -> None:
        due_s = time.monotonic()
        switches = [SwitchCounter(pid) for pid in self._pids]
        while True:
            reading = read(*self._pids)
            server, generator = (counter.rate_per_s() for counter in switches)
            self._readings.append(
                replace(reading, server_switches_per_s=server, generator_switches_per_s=generator)
            )
            due_s += self._period_s
            if self._over.wait(max(0.0, due_s - time.monotonic())):
                return
