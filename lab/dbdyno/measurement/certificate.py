"""Certificate of a machine and its load generator (`dbdyno certify`): measured limits and a result.

A certificate is valid while the machine and the programs stay the same. A run stores the part it
relies on (`CertificateFacts`), so a report can quote it without the machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from dbdyno.measurement.parts import Noun

THROUGHPUT_ERROR_MAX: Final = 0.02
LATENCY_ERROR_MAX: Final = 0.05
LATENCY_ERROR_MS_MAX: Final = 0.5
"""Added to `LATENCY_ERROR_MAX`: the way there and back, and two wake-ups of a thread."""
LAG_MS_MAX: Final = 5.0
"""Limit of the p99 lag; a later generator would show in a server's own latency."""
RATE_ERROR_MAX: Final = 0.02
FEATURES: Final = (
    "cpu",
    "cores",
    "memory",
    "kernel",
    "virtualisation",
    "governor",
    "smt",
    "clocksource",
    "dbdyno",
)
"""Keys of the environment; a change of any means another machine or another generator."""

PRODUCTS: Final[Mapping[str, str]] = {"mysql": "MySQL", "pgsql": "PostgreSQL"}
"""Product whose protocol each of the engine's drivers speaks."""


class Reached(Noun):
    """Highest rate of the generator against a server that answers at once.

    Attributes:
        cpu_us_per_query: CPU time of the generator.
        driver: protocol of that server, a key of `PRODUCTS`.
    """

    connections: int
    queries_per_s: float
    cpu_us_per_query: float
    driver: str = "mysql"


class Punctuality(Noun):
    """Lateness of the generator at a fixed rate, with a free connection for each event."""

    rate_per_s: float
    reached_per_s: float
    lag_ms_p50: float
    lag_ms_p99: float
    lag_ms_max: float

    @property
    def holds(self) -> bool:
        """True if the rate was reached and the lag is small beside a server's latency."""
        reached = abs(self.reached_per_s / self.rate_per_s - 1) <= RATE_ERROR_MAX
        return reached and self.lag_ms_p99 <= LAG_MS_MAX


class KnownAnswer(Noun):
    """A number measured by the generator beside the reference server's own.

    Attributes:
        question: the reference server's task (`QUESTIONS` of `report/tell/measured.py`).
        statistic: `throughput` (per second), `mean`, `p95` or `p99` (ms).
        truth: the reference server's planned value.
    """

    question: str
    statistic: str
    truth: float
    seen: float

    @property
    def error(self) -> float:
        """Relative to the truth."""
        return self.seen / self.truth - 1

    @property
    def allowed(self) -> float:
        """The largest error with which it passes, relative to the truth."""
        if self.statistic == "throughput":
            return THROUGHPUT_ERROR_MAX
        return LATENCY_ERROR_MAX + LATENCY_ERROR_MS_MAX / self.truth

    @property
    def holds(self) -> bool:
        """True if the error is allowed."""
        return abs(self.error) <= self.allowed


class MachineNoise(Noun):
    """Noise of the machine while the certificate was measured.

    Attributes:
        cpu: standard deviation of ln time of a fixed computation.
        sync_ms: median time of a synced write; None if no file could be synced.
        sync: standard deviation of ln time of a synced write.
        steal: share of all CPU time given to other guests by the hypervisor.
    """

    cpu: float
    sync_ms: float | None
    sync: float | None
    steal: float


class Difference(Noun):
    """Smallest difference found by four of five comparisons of this length."""

    minutes: int
    ratio: float


class Certificate(Noun):
    """The whole certificate.

    Attributes:
        made_at: ISO 8601, UTC.
        machine: values of `FEATURES`.
        repeated: number of measurements repeated after missing a limit.
        differences: for a CPU-bound load, from the generator's own variation.
    """

    made_at: str
    machine: dict[str, str]
    reached: tuple[Reached, ...]
    punctuality: tuple[Punctuality, ...]
    answers: tuple[KnownAnswer, ...]
    noise: MachineNoise
    differences: tuple[Difference, ...]
    repeated: int = 0

    @property
    def digest(self) -> str:
        """SHA-256 of its contents."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def passed(self) -> bool:
        """True if every number was within its limit."""
        answers, punctual = self.answers, self.punctuality
        return all(one.holds for one in answers) and all(one.holds for one in punctual)

    def facts(self, machine: Mapping[str, str]) -> CertificateFacts:
        """The part stored by a run on this machine."""
        return CertificateFacts(
            digest=self.digest,
            made_at=self.made_at,
            changed=tuple(name for name in FEATURES if self.machine.get(name) != machine.get(name)),
            queries_per_s=self._most("mysql"),
            pgsql_queries_per_s=self._most("pgsql"),
            wrong=tuple(one for one in self.answers if not one.holds),
            late=tuple(one for one in self.punctuality if not one.holds),
        )

    def _most(self, driver: str) -> float:
        return max((one.queries_per_s for one in self.reached if one.driver == driver), default=0.0)


class CertificateFacts(Noun):
    """A run's copy of its machine's certificate; `digest` is empty without a certificate.

    Attributes:
        changed: features of the machine that differ from the certified machine.
        queries_per_s, pgsql_queries_per_s: highest rate of the generator in MySQL's and in
            PostgreSQL's protocol; 0 if not measured.
        wrong, late: answers and rates outside their limits.
    """

    digest: str = ""
    made_at: str = ""
    changed: tuple[str, ...] = ()
    queries_per_s: float = 0.0
    pgsql_queries_per_s: float = 0.0
    wrong: tuple[KnownAnswer, ...] = ()
    late: tuple[Punctuality, ...] = ()

    @property
    def failed(self) -> bool:
        """True if the certificate is of this machine and its generator failed."""
        return bool(self.wrong or self.late) and not self.changed
