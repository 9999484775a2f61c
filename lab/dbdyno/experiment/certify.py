"""Test the load generator on servers with known answers, and the machine itself.

    ceiling        highest rate on a server that answers at once, by protocol and connections
    punctuality    delay of its requests at fixed rates, on the same server
    known answers  throughput and latency beside the reference server's plan
    noise          a fixed computation and synced writes, again and again; time stolen meanwhile
    differences    smallest differences seen in 5, 30 and 120 minutes, by its own evenness

A measurement that misses a limit is repeated, as another program may have run meanwhile: a
generator that cannot do better misses it each time. All together take a good minute. The
certificate lies in the cache folder, as it is the machine's; a run stores its facts (`known`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import numpy as np
import psutil
from pydantic import ValidationError

from dbdyno import _engine
from dbdyno.errors import LoadError
from dbdyno.experiment.engine.ceiling import responding
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.experiment.engine.record import intervals_of, measured_of
from dbdyno.experiment.watch import environment
from dbdyno.experiment.watch.probe import probe_speed
from dbdyno.files import replaced
from dbdyno.measurement.certificate import (
    FEATURES,
    Certificate,
    CertificateFacts,
    Difference,
    KnownAnswer,
    MachineNoise,
    Punctuality,
    Reached,
)
from dbdyno.measurement.measurement import EVENT, merge_histograms
from dbdyno.plan.plan import BLOCKS_MIN, BLOCKS_TIMED
from dbdyno.servers.base import MYSQL, PGSQL
from dbdyno.servers.process import LOOPBACK
from dbdyno.servers.programs.places import cache_folder, make_cache_folder
from dbdyno.stats.design import (
    FIRST_BLOCKS,
    Block,
    Costs,
    Scatter,
    TimedDesign,
    first_windows,
    narrowest,
    scatter_of,
)
from dbdyno.stats.distributions import Numbers

FILE: Final = "certificate.json"
CONNECTIONS: Final = (1, 8, 64, 512)
RATES_PER_S: Final = (100, 1_000, 10_000)
ROOM: Final = 256
"""Connections of a load at a rate: enough to keep the queue at the server."""
STARTS: Final = 6
PROBES: Final = 30
MINUTES: Final = (5, 30, 120)
START: Final = Costs(start_s=5.0, trial_s=1.5)
"""Usual seconds for a start of a server, and for a trial beyond its load."""
WINDOW_S: Final = 3.0
SHORT_S: Final = 1.5
WARMUP_S: Final = 0.5
TIMER_LAG: Final = "timer_lag"
ATTEMPTS: Final = 3
"""Most measurements of each rate and each question."""

Tell = Callable[[str], None]
Sees = Callable[[TimedDesign, Scatter], float]
"""Smallest difference of two systems that a design can show."""
Found = TypeVar("Found", Punctuality, KnownAnswer)


def certify(
    tell: Tell, sees: Sees, window_s: float = WINDOW_S, probes: int = PROBES
) -> Certificate:
    """Make the certificate of this machine and store it.

    Args:
        tell: takes a line on each step as it begins.
        sees: smallest difference that a comparison of this design will show, by the judge's
            forecast.
        window_s: window of each load in seconds.

    Raises:
        LoadError: the generator cannot be run at all.
        ProvisionError: the cache folder cannot be used.
    """
    folder = make_cache_folder()
    stolen, before = _stolen_s(), _all_s()
    tell("1/4 how fast it is: a server that answers at once, in each protocol")
    reached: list[Reached] = []
    for driver in (MYSQL, PGSQL):
        with responding(driver) as port:
            nobody = _nobody(driver, port)
            reached += [_reached(nobody, count, min(SHORT_S, window_s)) for count in CONNECTIONS]
    with responding() as port:
        nobody = _nobody(MYSQL, port)
        tell("2/4 how late it sends at fixed rates")
        at_rates = [_tried(_punctuality, nobody, rate, window_s) for rate in RATES_PER_S]
        tell("3/4 how evenly it runs: starts, computing, synced writes")
        starts = [_seconds(nobody, 1 + number, window_s) for number in range(STARTS)]
    scatter = scatter_of([starts])
    noise = [probe_speed(folder) for _ in range(probes)]
    tell("4/4 what it says of a server whose truth is known")
    answered = [_tried(ask, window_s) for ask in ASKED]
    spent = max(_all_s() - before, 1e-9)
    cpu_ms = [one.cpu_ms for one in noise]
    sync_ms = [one.sync_ms for one in noise if one.sync_ms]
    certificate = Certificate(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        reached=tuple(reached),
        punctuality=tuple(one for last, _ in at_rates for one in last),
        answers=tuple(one for last, _ in answered for one in last),
        noise=MachineNoise(
            cpu=_spread(cpu_ms),
            sync_ms=statistics.median(sync_ms) if sync_ms else None,
            sync=_spread(sync_ms) if sync_ms else None,
            steal=max(0.0, (_stolen_s() - stolen) / spent),
        ),
        differences=tuple(
            Difference(minutes=minutes, ratio=sees(_comparison(minutes, scatter), scatter))
            for minutes in MINUTES
        ),
        repeated=sum(again for _, again in [*at_rates, *answered]),
    )
    with replaced(folder / FILE) as new:
        new.write_text(certificate.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return certificate


def machine() -> dict[str, str]:
    """The features by which a machine and its generator are known again."""
    seen = environment.describe()
    return {name: seen[name] for name in FEATURES}


def known() -> CertificateFacts:
    """Facts of this machine's certificate; empty for a missing or broken file, or another
    program's."""
    try:
        text = (cache_folder() / FILE).read_text(encoding="utf-8")
        return Certificate.model_validate_json(text).facts(machine())
    except (OSError, ValidationError):
        return CertificateFacts()


def _nobody(driver: str, port: int) -> dict[str, Any]:
    """A login at a responder, which lets everybody in."""
    return {
        "driver": driver,
        "endpoint": {"host": LOOPBACK, "port": port},
        "user": "load",
        "password": "",
        "database": "sbtest",
    }


def _record(login: Mapping[str, Any], **options: object) -> dict[str, Any]:
    """Run point selects with this login; the engine's record."""
    spec = {
        **login,
        "warmup_s": 0.0,
        "interval_s": 1.0,
        "drain_s": 10.0,
        "seed": 1,
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 1000}},
        **options,
    }
    with EngineProcess("run", spec) as engine:
        record = engine.answer()
    if record.get("failure") is not None:
        raise LoadError(
            "the load generator failed on a server of its own",
            found=str(record["failure"]),
            hint="is something ending processes or sockets on this machine? try it once more",
        )
    return record


def _warmed(window_s: float) -> dict[str, float]:
    return {"warmup_s": min(WARMUP_S, window_s / 4)}


def _reached(login: Mapping[str, Any], connections: int, window_s: float) -> Reached:
    record = _record(login, connections=connections, window_s=window_s, **_warmed(window_s))
    measured = measured_of(record)
    queries = sum(one.reads for one in measured)
    seconds = measured[-1].end_s - measured[0].start_s
    return Reached(
        connections=connections,
        queries_per_s=queries / seconds,
        cpu_us_per_query=record["measured"]["cpu_s"] / max(1, queries) * 1e6,
        driver=login["driver"],
    )


def _punctuality(login: Mapping[str, Any], rate_per_s: int, window_s: float) -> list[Punctuality]:
    options = {
        "connections": ROOM,
        "window_s": window_s,
        "rate_per_s": rate_per_s,
        "arrival": "uniform",
    }
    record = _record(login, **options, **_warmed(window_s))
    measured = measured_of(record)
    lag = _merged(record, TIMER_LAG)
    seconds = measured[-1].end_s - measured[0].start_s
    punctuality = Punctuality(
        rate_per_s=rate_per_s,
        reached_per_s=sum(one.events for one in measured) / seconds,
        lag_ms_p50=lag.quantile(0.5) / 1e6,
        lag_ms_p99=lag.quantile(0.99) / 1e6,
        lag_ms_max=lag.max() / 1e6,
    )
    return [punctuality]


def _seconds(login: Mapping[str, Any], seed: int, window_s: float) -> Numbers:
    """The rate of each second of a start of its own."""
    part_s = min(1.0, window_s / 3)
    options = {"connections": 8, "seed": seed, "window_s": window_s, "interval_s": part_s}
    record = _record(login, **options, **_warmed(window_s))
    whole = [one for one in measured_of(record) if one.end_s - one.start_s > part_s / 2]
    return np.array([one.events / (one.end_s - one.start_s) for one in whole])


def _tried(measure: Callable[..., list[Found]], *arguments: object) -> tuple[list[Found], int]:
    """Repeat a measurement until its numbers hold; the last numbers, and the number of repeats."""
    measured, again = measure(*arguments), 0
    while again < ATTEMPTS - 1 and not all(one.holds for one in measured):
        measured, again = measure(*arguments), again + 1
    return measured, again


def _saturated(window_s: float) -> list[KnownAnswer]:
    server = _engine.Reference("fixed", 0.01, workers=4)
    record = _record(login_at(server), connections=8, window_s=window_s, **_warmed(window_s))
    measured = measured_of(record)
    seconds = measured[-1].end_s - measured[0].start_s
    seen = sum(one.events for one in measured) / seconds
    answer = KnownAnswer(question="saturated", statistic="throughput", truth=400.0, seen=seen)
    return [answer, *_latencies("saturated", record, server, ("p95", "p99"))]


def _exponential(window_s: float) -> list[KnownAnswer]:
    server = _engine.Reference("exponential", 0.01)
    record = _record(login_at(server), connections=8, window_s=window_s)
    return _latencies("exponential", record, server)


def _at_rate(window_s: float) -> list[KnownAnswer]:
    at_rate = {"connections": ROOM, "window_s": window_s}
    server = _engine.Reference("exponential", 0.01, workers=4)
    record = _record(login_at(server), rate_per_s=250, arrival="poisson", **at_rate)
    return _latencies("rate", record, server)


def _standing_still(window_s: float) -> list[KnownAnswer]:
    at_rate = {"connections": ROOM, "window_s": window_s}
    server = _engine.Reference("fixed", 0.002, stall_s=(window_s / 3, 0.5))
    record = _record(login_at(server), rate_per_s=200, **at_rate)
    return _latencies("stall", record, server)


ASKED: Final = (_saturated, _exponential, _at_rate, _standing_still)
"""Functions for `QUESTIONS`, in their order and with their names."""


def login_at(server: _engine.Reference) -> dict[str, Any]:
    """Endpoint and login of a reference server, for a load's spec."""
    user, password, database = server.login
    place = {"host": LOOPBACK, "port": server.port}
    return {"endpoint": place, "user": user, "password": password, "database": database}


def _latencies(
    question: str,
    record: Mapping[str, Any],
    server: _engine.Reference,
    wanted: Sequence[str] = ("mean", "p95", "p99"),
) -> list[KnownAnswer]:
    """Compare latencies of all events with the server's plan; every event is a single statement."""
    seen, (planned, sum_ns) = _merged(record, EVENT), server.truth()
    mean_ns = sum(one.latency_ns_sum for one in intervals_of(record)) / max(1, seen.count())
    numbers = {
        "mean": (sum_ns / max(1, planned.count()), mean_ns),
        "p95": (planned.quantile(0.95), seen.quantile(0.95)),
        "p99": (planned.quantile(0.99), seen.quantile(0.99)),
    }
    return [
        KnownAnswer(question=question, statistic=name, truth=truth / 1e6, seen=own / 1e6)
        for name, (truth, own) in numbers.items()
        if name in wanted
    ]


def _merged(record: Mapping[str, Any], name: str) -> _engine.Histogram:
    histograms = (one.histograms for one in intervals_of(record))
    return merge_histograms(blobs[name] for blobs in histograms if name in blobs)


def _comparison(minutes: int, scatter: Scatter) -> TimedDesign:
    """The design of a comparison of two systems under one load in a given time."""
    time_s, block = 60.0 * minutes, Block(trials=2, starts=2)
    first = first_windows(time_s, block, BLOCKS_MIN)
    left_s = time_s - FIRST_BLOCKS * block.seconds(first.load_s, START)
    return narrowest(left_s, block, first, scatter, START, BLOCKS_TIMED)


def _spread(values: Sequence[float]) -> float:
    return statistics.stdev(map(math.log, values)) if len(values) > 1 else 0.0


def _stolen_s() -> float:
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def _all_s() -> float:
    return float(sum(psutil.cpu_times()))
