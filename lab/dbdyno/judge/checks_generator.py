"""Could the generator itself be what was measured? (method.md 1.g, client-bound)

`checks_machine.client_bound` looks at its CPU. These look at what it does: whether it sends when it
means to, and how far the trial was from the rate that the same generator reaches with no server in
the way.
"""

from __future__ import annotations

from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.words import say

TIMER_LAG: Final = "timer_lag"
"""The histogram of how late the generator was where a connection was free; open loops have it."""
LAG_NS_MIN: Final = 200_000
LAG_SHARE_MAX: Final = 0.05
QUANTILE: Final = 0.99
CEILING_SHARE_MAX: Final = 0.5


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
        say(
            "the generator began events late though a connection was free: p99 {late_ms:.2f} ms "
            "(limit {limit_ms:.2f} ms, median latency {median_ms:.2f} ms)",
            late_ms=late_ns / 1e6,
            limit_ms=limit_ns / 1e6,
            median_ms=median_ns / 1e6,
        ),
        say("give the generator cores of its own (procedure.pin) or load from another host"),
    )


def near_ceiling(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the trial's rate is over half of what the generator reaches without a server."""
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
        say(
            "{rate:.0f} events/s are {share:.0%} of the {ceiling:.0f} that the same generator "
            "reaches on a server that answers at once (limit {limit:.0%})",
            rate=rate_per_s,
            share=share,
            ceiling=evidence.ceiling_per_s,
            limit=CEILING_SHARE_MAX,
        ),
        say("give the generator more cores or another host; the server may be faster than this"),
    )
