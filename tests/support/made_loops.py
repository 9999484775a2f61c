"""A closed loop with events, restarts and stalls drawn one by one, as a trial would record it."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Interval, Phase
from support import making

STATEMENTS = 20
WARMUP_S = 3


@dataclass
class Second:
    events: int = 0
    statements: int = 0
    restarts: int = 0
    latency_ns_sum: int = 0
    latency_ns_max: int = 0


@dataclass(frozen=True)
class Loop:
    """What happens to each of `threads` connections.

    Attributes:
        mean_s: mean time of an event that is not begun again.
        kind: how that time is drawn: "equal", "exponential" or "slow20" (1 in 20 is four times it).
        stall_s: from when to when the server stands still.
        restarts: chance that an attempt fails half way and the event begins again.
        idle: time without a request after each event, as a share of the event's.
        lost: chance that an event is not counted.
    """

    threads: int
    mean_s: float
    kind: str = "equal"
    window_s: int = 10
    stall_s: tuple[float, float] | None = None
    restarts: float = 0.0
    idle: float = 0.0
    lost: float = 0.0

    def measured(self, seed: int) -> Measurement:
        """The trial that a faultless recorder would store."""
        chance = random.Random(seed)
        seconds: dict[int, Second] = defaultdict(Second)
        for _ in range(self.threads):
            now_s = 0.0
            while now_s < WARMUP_S + self.window_s:
                now_s = self._event(chance, seconds, now_s)
        end_s = WARMUP_S + self.window_s
        intervals = [
            _interval(second, seconds[second], end_s) for second in range(max(seconds) + 1)
        ]
        made = making.measurement(
            threads=self.threads, tps=10, window_s=self.window_s, warmup_s=WARMUP_S
        )
        return making.changed(made, intervals=tuple(intervals))

    def _event(self, chance: random.Random, seconds: dict[int, Second], begun_s: float) -> float:
        now_s = begun_s
        while chance.random() < self.restarts:
            now_s = self._attempt(seconds, now_s, self._length_s(chance) / 2, STATEMENTS // 2)
            seconds[int(now_s)].restarts += 1
        now_s = self._attempt(seconds, now_s, self._length_s(chance), STATEMENTS)
        if chance.random() >= self.lost:
            second, latency_ns = seconds[int(now_s)], int((now_s - begun_s) * 1e9)
            second.events += 1
            second.latency_ns_sum += latency_ns
            second.latency_ns_max = max(second.latency_ns_max, latency_ns)
        return now_s + self.idle * (now_s - begun_s)

    def _length_s(self, chance: random.Random) -> float:
        if self.kind == "exponential":
            return chance.expovariate(1 / self.mean_s)
        if self.kind == "slow20":
            return self.mean_s * (4 if chance.random() < 0.05 else 0.85)
        return self.mean_s

    def _attempt(
        self, seconds: dict[int, Second], now_s: float, length_s: float, statements: int
    ) -> float:
        end_s = now_s + length_s
        if int(end_s) == int(now_s) and not self._meets_the_stall(now_s, end_s):
            seconds[int(now_s)].statements += statements
            return end_s
        for _ in range(statements):
            now_s += length_s / statements
            if self.stall_s and self.stall_s[0] <= now_s < self.stall_s[1]:
                now_s = self.stall_s[1] + length_s / statements
            seconds[int(now_s)].statements += 1
        return now_s

    def _meets_the_stall(self, begun_s: float, end_s: float) -> bool:
        return self.stall_s is not None and begun_s < self.stall_s[1] and end_s >= self.stall_s[0]


def _interval(start_s: int, second: Second, end_s: int) -> Interval:
    phase = Phase.WARMUP if start_s < WARMUP_S else Phase.MEASURED
    return Interval(
        phase=Phase.DRAIN if start_s >= end_s else phase,
        start_s=start_s,
        end_s=start_s + 1,
        events=second.events,
        reads=second.statements,
        writes=0,
        others=0,
        restarts=second.restarts,
        latency_ns_sum=second.latency_ns_sum,
        latency_ns_max=second.latency_ns_max,
    )
