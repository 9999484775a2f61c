"""A certificate as a quiet machine gets it."""

from __future__ import annotations

from dbdyno.measurement.certificate import (
    FEATURES,
    Certificate,
    Difference,
    KnownAnswer,
    MachineNoise,
    Punctuality,
    Reached,
)

MACHINE = dict.fromkeys(FEATURES, "as it is")


def certificate(seen_ms: float = 10.2) -> Certificate:
    """One whose only latency has a true p99 of 10 ms."""
    return Certificate(
        made_at="2026-11-22T12:00:00+00:00",
        machine=MACHINE,
        reached=(
            Reached(connections=1, queries_per_s=20_000, cpu_us_per_query=12.5),
            Reached(connections=64, queries_per_s=200_000, cpu_us_per_query=3.21),
            Reached(connections=64, queries_per_s=180_000, cpu_us_per_query=3.5, driver="pgsql"),
        ),
        punctuality=(
            Punctuality(
                rate_per_s=1000,
                reached_per_s=1001.2,
                lag_ms_p50=0.051,
                lag_ms_p99=0.2,
                lag_ms_max=1.234,
            ),
        ),
        answers=(
            KnownAnswer(question="saturated", statistic="throughput", truth=400.0, seen=399.0),
            KnownAnswer(question="exponential", statistic="p99", truth=10.0, seen=seen_ms),
        ),
        noise=MachineNoise(cpu=0.021, sync_ms=0.4, sync=0.1, steal=0.012),
        differences=(Difference(minutes=5, ratio=0.042), Difference(minutes=120, ratio=0.011)),
    )
