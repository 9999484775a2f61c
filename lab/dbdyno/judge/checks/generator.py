"""Limits of the load generator itself (docs/reference/findings.md, client-bound).

Checked are its CPU, its punctuality, the trial's rate against the rate of the same generator
without a server, and in an open loop the sustained rate and the number of requests
(docs/how-to/open-loop.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.measurement import Measurement, backlog_growth
from dbdyno.plan.plan import Plan, latency_of

TIMER_LAG: Final = "timer_lag"
"""The histogram of the generator's lateness when a connection was free; open loops have it."""
GENERATOR_CPU_MAX: Final = 0.70
LAG_NS_MIN: Final = 200_000
LAG_SHARE_MAX: Final = 0.05
QUANTILE: Final = 0.99
CEILING_SHARE_MAX: Final = 0.5


def client_bound(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: a generator thread was so busy as to be possibly the limit."""
    share = measurement.engine.cpu_share_max
    if share <= GENERATOR_CPU_MAX:
        return None
    return on_trial(
        measurement,
        "client-bound",
        Level.VOID,
        share=share,
        limit=GENERATOR_CPU_MAX,
        threads=measurement.engine.threads,
    )


def timer_late(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: p99 of the generator's own lateness is over 0.2 ms and over 5 % of the median."""
    lag = measurement.histogram(TIMER_LAG)
    if lag.count() == 0:
        return None
    late_ns = lag.quantile(QUANTILE)
    median_ns = measurement.histogram().quantile(0.5)
    limit_ns = max(LAG_NS_MIN, LAG_SHARE_MAX * median_ns)
    if late_ns <= limit_ns:
        return None
    return on_trial(
        measurement,
        "timer-late",
        Level.DOUBTFUL,
        late_ms=late_ns / 1e6,
        limit_ms=limit_ns / 1e6,
        median_ms=median_ns / 1e6,
    )


def near_ceiling(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the trial's rate is over half of the generator's rate without a server."""
    evidence = measurement.evidence
    if evidence.ceiling_per_s is None or measurement.trial.cell.rate_per_s is not None:
        return None
    rate_per_s = measurement.events / measurement.window_s
    share = rate_per_s / evidence.ceiling_per_s
    if share <= CEILING_SHARE_MAX:
        return None
    return on_trial(
        measurement,
        "near-ceiling",
        Level.DOUBTFUL,
        rate_per_s=rate_per_s,
        share=share,
        ceiling_per_s=evidence.ceiling_per_s,
        limit=CEILING_SHARE_MAX,
    )


def certificate_failed(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Void: by `dbdyno certify` the generator's numbers are wrong on this machine.

    A single finding if it holds for all trials, as on one machine; else a finding for each trial of
    such a machine.
    """
    known = [(trial, trial.certificate) for trial in measurements if trial.certificate]
    failed = [(trial, facts) for trial, facts in known if facts.failed]
    of_all = len(failed) == len(known)
    for trial, facts in failed[:1] if of_all else failed:
        finding = on_trial(
            trial,
            "certificate-failed",
            Level.VOID,
            made_at=facts.made_at,
            wrong=[answer.model_dump() for answer in facts.wrong],
            late=[seen.model_dump() for seen in facts.late],
        )
        everywhere = {"system": None, "cell": None, "trial": None}
        yield finding.model_copy(update=everywhere) if of_all else finding


def rate_not_sustained(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful or, in search of a limit, a note: the backlog grew over the window's last half.

    In such a window waiting times grow with its length: its percentiles are no property of the
    server. In a search for a latency limit some rates must break.
    """
    rate_per_s = measurement.trial.cell.rate_per_s
    seen = backlog_growth(measurement)
    if rate_per_s is None or seen is None or seen.sustained:
        return None
    return on_trial(
        measurement,
        "rate-not-sustained",
        Level.NOTE if plan.load.is_rung(rate_per_s) else Level.DOUBTFUL,
        rate_per_s=rate_per_s,
        answered_per_s=measurement.events / measurement.window_s,
        growth_per_s=seen.per_s,
        limit_per_s=seen.limit_per_s,
        backlog=measurement.measured[-1].backlog,
    )


def few_requests(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the cell's percentile has fewer than 100 requests beyond it."""
    metric = latency_of(plan)
    rate_per_s = measurement.trial.cell.rate_per_s
    if rate_per_s is None or measurement.events >= metric.requests_needed():
        return None
    seconds = metric.requests_needed() / (measurement.events / measurement.window_s)
    return on_trial(
        measurement,
        "few-requests",
        Level.DOUBTFUL,
        requests=measurement.events,
        metric=metric.name,
        needed=metric.requests_needed(),
        window_s=math.ceil(seconds),
    )
