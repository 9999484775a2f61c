"""Could the generator itself be what was measured? (docs/reference/findings.md, client-bound)

Checked are its CPU, whether it sends on time, how near the trial was to the rate that the same
generator reaches without a server, whether twice its threads are faster, and in an open loop
whether the rate was sustained by enough requests (docs/how-to/open-loop.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.judge.interval import FIXED, interval
from dbdyno.language.words import Said, Text, count, listed, say
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.parts import DoubledThreads
from dbdyno.plan.pilot import backlog_growth
from dbdyno.plan.plan import Plan, latency_of

TIMER_LAG: Final = "timer_lag"
"""The histogram of how late the generator was where a connection was free; open loops have it."""
GENERATOR_CPU_MAX: Final = 0.70
LAG_NS_MIN: Final = 200_000
LAG_SHARE_MAX: Final = 0.05
QUANTILE: Final = 0.99
CEILING_SHARE_MAX: Final = 0.5
DOUBLING_MAX: Final = 0.02
PAIRS_MIN: Final = 3
_FASTER: Final[Said] = say(
    "the generator held the load back, and systems this fast look more alike than they are: give "
    "it cores of its own (procedure.pin) or load from another host"
)
_SLOWER: Final[Said] = say(
    "its threads are not what limits this load; more of them took CPU from the server, so the two "
    "compete for it: pin the generator (procedure.pin) or load from another host for absolute rates"
)
_UNSEEN: Final[Said] = say(
    "the rate varied too much to see {limit:.0%}, which neither clears nor blames the generator: a "
    "quieter machine and windows of a minute see more",
    limit=DOUBLING_MAX,
)


def client_bound(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: a generator thread was so busy that it may have been what was measured."""
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
        rate_per_s=rate_per_s,
        share=share,
        ceiling_per_s=evidence.ceiling_per_s,
        limit=CEILING_SHARE_MAX,
    )


def generator_threads(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: a load changes by over 2 %, or may do so, with twice its threads.

    Student's interval of the pairs' mean log ratio decides. Faster is a doubt: the generator was a
    limit, for every system as fast. Slower is none, as the usual threads reached more; where
    the generator shares the server's cores, more of its threads take them from the server.
    """
    for measurement in measurements:
        for seen in measurement.evidence.doubled_threads:
            logs = _log_ratios(seen)
            if measurement.failure is None and len(logs) >= PAIRS_MIN:
                yield from _judged(seen, logs)


def unequal_placement(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: in a block the generator's threads ran otherwise beside one system than another.

    Its policy decides how much of the machine the server gets.
    """
    arms: dict[Cell, dict[int, dict[str, Text]]] = {}
    for one in measurements:
        if one.engine.placements and one.failure is None:
            of_cell = arms.setdefault(one.trial.cell, {}).setdefault(one.trial.block, {})
            of_cell[one.trial.system] = placement_of(one)
    for cell, blocks in arms.items():
        unequal = [of for of in blocks.values() if len(set(of.values())) > 1]
        if unequal:
            seen = unequal[0]
            yield Finding(
                check="unequal-placement",
                level=Level.DOUBTFUL,
                evidence=say(
                    "the generator's threads ran otherwise beside one system than beside another in"
                    " {unequal} of {blocks}: {seen}",
                    unequal=len(unequal),
                    blocks=count(len(blocks), "block"),
                    seen=listed(
                        (
                            say("{system}: {how}", system=system, how=how)
                            for system, how in seen.items()
                        ),
                        "; ",
                    ),
                ),
                advice=say(
                    "something kept them from what was asked for: quiet the machine, or take"
                    " `client_placement: normal`, which is never refused"
                ),
                cell=cell,
            )


def certificate_failed(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Void: `dbdyno certify` found that on this machine the generator's numbers are wrong.

    Said once where that is so of all trials, as on one machine; else of each whose machine it is.
    """
    known = [(one, one.certificate) for one in measurements if one.certificate]
    failed = [(one, facts) for one, facts in known if facts.failed]
    of_all = len(failed) == len(known)
    for one, facts in failed[:1] if of_all else failed:
        found = on_trial(
            one,
            "certificate-failed",
            Level.VOID,
            made_at=facts.made_at,
            faults=list(facts.faults()),
        )
        everywhere = {"system": None, "cell": None, "trial": None}
        yield found.model_copy(update=everywhere) if of_all else found


def placement_of(measurement: Measurement) -> Text:
    """How the engine's threads were scheduled, each way once: ``batch``; empty if unknown."""
    placements = measurement.engine.placements
    return listed(dict.fromkeys(sorted(one.policy for one in placements)), "; ")


def _log_ratios(seen: DoubledThreads) -> list[float]:
    """ln(rate with twice the threads / usual rate) of each pair of slices without a standstill."""
    logs = []
    for pair in zip(seen.slices[::2], seen.slices[1::2], strict=False):
        usual, doubled = sorted(pair, key=lambda one: one.threads)
        if min(usual.rate_per_s, doubled.rate_per_s) > 0 and doubled.threads > usual.threads:
            logs.append(math.log(doubled.rate_per_s / usual.rate_per_s))
    return logs


def _judged(seen: DoubledThreads, logs: Sequence[float]) -> Iterator[Finding]:
    found, limit = interval(logs, FIXED), math.log1p(DOUBLING_MAX)
    low, high = float(found.mean - found.half), float(found.mean + found.half)
    if -limit <= low and high <= limit:
        return
    level, advice = Level.NOTE, _UNSEEN
    if low > limit:
        level, advice = Level.DOUBTFUL, _FASTER
    elif high < -limit:
        advice = _SLOWER
    threads = min(one.threads for one in seen.slices)
    yield Finding(
        check="generator-threads",
        level=level,
        evidence=say(
            "with twice the generator's threads ({doubled} instead of {usual}, {connections} "
            "connections) the rate of {workload} changed by {change:+.1%}: 95 % interval "
            "{low:+.1%} to {high:+.1%}, {pairs} pairs of slices of {seconds:.1f} s "
            "(limit {limit:.0%})",
            doubled=2 * threads,
            usual=threads,
            connections=seen.connections,
            workload=seen.workload,
            change=math.expm1(float(found.mean)),
            low=math.expm1(low),
            high=math.expm1(high),
            pairs=len(logs),
            seconds=seen.slice_s,
            limit=DOUBLING_MAX,
        ),
        advice=advice,
        cell=Cell(workload=seen.workload, threads=seen.connections, setting=seen.setting),
    )


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
        rate_per_s=rate_per_s,
        answered_per_s=measurement.events / measurement.window_s,
        growth_per_s=seen.per_s,
        limit_per_s=seen.limit_per_s,
        backlog=measurement.measured[-1].backlog,
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
        requests=measurement.events,
        percentile=metric.label,
        needed=metric.requests_needed(),
        window_s=math.ceil(seconds),
    )
