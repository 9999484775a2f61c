"""Did an open loop show what its latency is? (method.md 1.f: a rate sustained, requests enough)"""

from __future__ import annotations

import math

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.cell_metric import latency_of
from dbdyno.plan.pilot import backlog_growth
from dbdyno.plan.plan import Plan


def rate_not_sustained(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful or, in search of a limit, a note: the backlog grew over the window's last half.

    Requests wait longer the longer such a window is: its percentiles are no property of the server.
    Where the rate is there to find the limit of a latency, some of them must break.
    """
    rate_per_s = measurement.trial.cell.rate_per_s
    seen = backlog_growth(measurement)
    if rate_per_s is None or seen is None or seen.sustained:
        return None
    return on_trial(
        measurement,
        "rate-not-sustained",
        Level.NOTE if plan.load.is_rung(rate_per_s) else Level.DOUBTFUL,
        say(
            "{rate:g} requests/s fell due and {taken:.1f} were answered: over the last half of the"
            " window the backlog grew by {growth:.1f} a second (limit {limit:.1f}), to {left}",
            rate=rate_per_s,
            taken=measurement.events / measurement.window_s,
            growth=seen.per_s,
            limit=seen.limit_per_s,
            left=measurement.measured[-1].backlog,
        ),
        say("compare latency at a lower rate; what is told here depends on the window's length"),
    )


def few_requests(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the percentile that the cell is about has fewer than 100 requests beyond it."""
    metric = latency_of(plan)
    rate_per_s = measurement.trial.cell.rate_per_s
    if rate_per_s is None or measurement.events >= metric.requests_needed():
        return None
    seconds = metric.requests_needed() / (measurement.events / measurement.window_s)
    return on_trial(
        measurement,
        "few-requests",
        Level.DOUBTFUL,
        say(
            "{count} requests, {label} needs {needed}: 100 beyond it",
            count=measurement.events,
            label=metric.label,
            needed=metric.requests_needed(),
        ),
        say(
            "use a window of {seconds} s or more at this rate, or a lower percentile",
            seconds=math.ceil(seconds),
        ),
    )
