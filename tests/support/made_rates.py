"""Trials at a rate with a chosen latency, and backlogs that grow or do not."""

from __future__ import annotations

from dbdyno.measurement.measurement import Cell, Measurement
from support import making


def at_rate(
    system: str = making.A,
    block: int = 0,
    rate: float | None = 1000.0,
    latency_ms: float = 10.0,
    *,
    sustained: bool = True,
    connections: int = 64,
    window_s: int = 10,
    workload: str = "oltp_read_write",
    served: float | None = None,
    is_pilot: bool = False,
) -> Measurement:
    """One trial; all its events take about `latency_ms`. What is not sustained is not served.

    Args:
        rate: None for a closed loop, which then does `served` events a second.
    """
    done = served if served is not None else (rate or 0.0) * (1.0 if sustained else 0.8)
    made = making.measurement(
        system,
        block,
        connections,
        done,
        workload=workload,
        latency_ms=latency_ms,
        spread=0.01,
        window_s=window_s,
    )
    cell = Cell(workload=workload, threads=connections, rate_per_s=rate)
    due = rate or 0.0
    intervals = tuple(
        interval.model_copy(
            update={
                "arrivals": round(due),
                "backlog": 0 if sustained else round((due - done) * interval.end_s),
            }
        )
        for interval in made.intervals
    )
    trial = made.trial.model_copy(update={"cell": cell, "is_pilot": is_pilot})
    return making.changed(made, trial=trial, intervals=intervals)
