"""What `dbdyno certify` found out about a machine and its load generator, and whether it passed.

It holds as long as the machine and the programs are those it was made on. Runs keep what they rest
on (`CertificateFacts`), so a report can quote it without the machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Final

from dbdyno.language.words import Said, Text, say
from dbdyno.measurement.parts import Noun

THROUGHPUT_ERROR_MAX: Final = 0.02
LATENCY_ERROR_MAX: Final = 0.05
LATENCY_ERROR_MS_MAX: Final = 0.5
"""On top of its share: the way there and back, and two wake-ups of a thread."""
LAG_MS_MAX: Final = 5.0
"""Of the 99th percentile; a generator this late would be seen in a server's own latency."""
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
"""Of the environment; where one of them differs, it is another machine or another generator."""

PRODUCTS: Final[Mapping[str, str]] = {"mysql": "MySQL", "pgsql": "PostgreSQL"}
"""Whose protocol each of the engine's drivers speaks."""
QUESTIONS: Final[Mapping[str, Said]] = {
    "saturated": say("four workers of 10 ms, asked by 8 connections"),
    "exponential": say("exponential service of 10 ms, 8 connections"),
    "rate": say("250 a second at four workers of 10 ms (M/M/4)"),
    "stall": say("200 a second at a server that stands still for 0.5 s"),
}
"""What the reference server was told to do, by the names of `KnownAnswer.question`."""


class Reached(Noun):
    """What the generator reaches on a server that answers at once.

    Attributes:
        cpu_us_per_query: of the generator.
        driver: the server's, one of `PRODUCTS`.
    """

    connections: int
    queries_per_s: float
    cpu_us_per_query: float
    driver: str = "mysql"


class Punctuality(Noun):
    """How late the generator sends at a fixed rate, where a connection is free."""

    rate_per_s: float
    reached_per_s: float
    lag_ms_p50: float
    lag_ms_p99: float
    lag_ms_max: float

    @property
    def holds(self) -> bool:
        """Whether the rate was reached and the lag is small beside a server's latency."""
        reached = abs(self.reached_per_s / self.rate_per_s - 1) <= RATE_ERROR_MAX
        return reached and self.lag_ms_p99 <= LAG_MS_MAX


class KnownAnswer(Noun):
    """One number of the generator beside the reference server's own.

    Attributes:
        question: one of `QUESTIONS`.
        statistic: `throughput` (a second), `mean`, `p95` or `p99` (ms).
        truth: what the server planned.
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
        """Whether the error is allowed."""
        return abs(self.error) <= self.allowed


class MachineNoise(Noun):
    """How even the machine was meanwhile.

    Attributes:
        cpu: standard deviation of ln time of a fixed computation.
        sync_ms: median time of a synced write; None where no file could be synced.
        sync: standard deviation of its ln.
        steal: share of all CPU time that the host gave to others.
    """

    cpu: float
    sync_ms: float | None
    sync: float | None
    steal: float


class Difference(Noun):
    """The smallest difference that a comparison of so many minutes finds in four of five runs."""

    minutes: int
    ratio: float


class Certificate(Noun):
    """All of it.

    Attributes:
        made_at: ISO 8601, UTC.
        machine: `FEATURES` as they were.
        repeated: how many measurements were made again, as a limit was missed.
        differences: for a load that needs CPU only, from how unevenly the generator itself ran.
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
        """Whether every number was within what is allowed."""
        answers, punctual = self.answers, self.punctuality
        return all(one.holds for one in answers) and all(one.holds for one in punctual)

    def facts(self, machine: Mapping[str, str]) -> CertificateFacts:
        """What a run on that machine keeps of it."""
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
    """What a run knows of its machine's certificate; without a digest there was none.

    Attributes:
        changed: features of the machine that are no longer those it was made with.
        queries_per_s, pgsql_queries_per_s: the most that the generator reached in MySQL's protocol,
            and in PostgreSQL's; 0 where it was not tried.
        wrong, late: what did not pass.
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
        """Whether it says of this machine that its generator cannot be believed."""
        return bool(self.wrong or self.late) and not self.changed

    def faults(self) -> Iterator[Text]:
        """What did not pass, a clause each."""
        for answer in self.wrong:
            yield say(
                "{statistic} off by {error:+.1%} (limit {limit:.1%}): {question}",
                statistic=answer.statistic,
                error=answer.error,
                limit=answer.allowed,
                question=QUESTIONS[answer.question],
            )
        for late in self.late:
            yield say(
                "at {rate:.0f} events/s: {reached:.0f} reached, p99 {lag:.2f} ms late"
                " (limit {limit:.0f} ms)",
                rate=late.rate_per_s,
                reached=late.reached_per_s,
                lag=late.lag_ms_p99,
                limit=LAG_MS_MAX,
            )
