"""Sections on several cells together: workloads, all cells, and rates within a latency limit.

The section on workloads and all cells repeats no cell's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.beside.curve import Curve
from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.beside.ladder import Crossover, Regression
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import RateLimit, RateSearch
from dbdyno.judge.verdict import Verdict, Word, by_comparison
from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, in_block, interval, limit_interval, number, title
from dbdyno.report.parts import (
    Column,
    Entries,
    Entry,
    Items,
    Paragraph,
    Part,
    Section,
    Table,
    numeric,
    table,
)
from dbdyno.report.rows import workload_name
from dbdyno.report.sections.conclusion import meaning
from dbdyno.report.tell.levels import levels_of
from dbdyno.report.tell.measured import metric_label
from dbdyno.report.tell.terms import term
from dbdyno.report.tell.verdicts import reason, sentence
from dbdyno.stats.open_loop import Point


def grid(judgement: Judgement) -> Section:
    """Workloads and all cells together; empty for a single cell, or without a comparison."""
    groups = by_comparison(judgement.verdicts)
    summaries = [one for group in groups for one in levels_of(group, judgement.summaries).every]
    parts: list[Part] = []
    if summaries:
        parts += [_explained(summaries[0]), _levels(summaries), _counts(summaries)]
    crossings = [line for curve in judgement.curves for line in _crossing(curve)]
    if judgement.crossovers or crossings:
        parts.append(Items((*map(_crossover, judgement.crossovers), *crossings)))
    if judgement.regressions:
        parts.append(_regressions(judgement.regressions))
    return Section(say("All cells together"), tuple(parts))


def _explained(summary: GridSummary) -> Paragraph:
    return Paragraph(
        say(
            "A ratio is a system's {metric} divided by the baseline's. In each block, a "
            "workload's ratio is the geometric mean of its cells' ratios, and the ratio of all "
            "cells is the geometric mean of the workloads' ratios. The 95 % intervals come from "
            "the scatter between blocks. The intervals of all workloads are correct together in "
            "95 of 100 runs, and so are the intervals of all cells. If one workload is faster "
            "and another slower, the ratio of all cells describes neither. The second table "
            "counts the verdicts on cells.",
            metric=metric_label(BY_NAME[summary.metric]),
        )
    )


def _levels(summaries: Sequence[GridSummary]) -> Table:
    return table(
        _caption(summaries),
        summaries,
        (say("System"), lambda one: _arm(one, summaries)),
        (say("Workload"), _workload),
        (numeric(say("Cells")), lambda one: one.cells),
        (numeric(say("Blocks")), lambda one: one.blocks),
        (numeric(say("Change [95 %]")), lambda one: interval(one.ratio, one.low, one.high)),
        (say("In words"), lambda one: term(one.word)),
        (numeric(say("Blocks needed")), lambda one: number(one.blocks_needed, 0)),
    )


def _caption(summaries: Sequence[GridSummary]) -> Text:
    if len({one.baseline for one in summaries}) > 1:
        return say("All cells together")
    return say("All cells against {baseline}", baseline=summaries[0].baseline)


def _workload(summary: GridSummary) -> Text:
    if not summary.workload:
        return say("all")
    return name(workload_name(summary.workload, summary.setting))


def _arm(summary: GridSummary, among: Sequence[GridSummary]) -> Text:
    """Name of the compared system; with its baseline if there are several baselines."""
    if len({one.baseline for one in among}) == 1:
        return name(summary.system)
    return say("{system} against {baseline}", system=summary.system, baseline=summary.baseline)


def _counts(summaries: Sequence[GridSummary]) -> Table:
    heads = (Column(say("System")), Column(say("Workload")))
    rows = tuple(
        (
            _arm(one, summaries),
            _workload(one),
            *(name(f"{one.counts.get(word, 0)}") for word in Word),
        )
        for one in summaries
    )
    columns = (*heads, *(numeric(term(word)) for word in Word))
    return Table(say("Number of verdicts of each kind"), columns, rows)


def _crossover(crossover: Crossover) -> Text:
    return say(
        "{workload}: {system} is faster than {baseline} at load level {better} and slower at "
        "{worse}, so the order changes between {places} threads.",
        workload=workload_name(crossover.workload, crossover.setting),
        system=crossover.system,
        baseline=crossover.baseline,
        places=listed(
            (say("{lower} and {upper}", lower=low, upper=high) for low, high in crossover.between)
        ),
        better=listed(map(str, crossover.better)),
        worse=listed(map(str, crossover.worse)),
    )


CROSSINGS: Final[Mapping[bool, str]] = {
    True: phrase(
        "{workload}: on a smooth curve over the number of threads, {system} changes from slower "
        "than {baseline} to faster at {threads} threads [{low}, {high}]."
    ),
    False: phrase(
        "{workload}: on a smooth curve over the number of threads, {system} changes from faster "
        "than {baseline} to slower at {threads} threads [{low}, {high}]."
    ),
}
"""Sentences on a curve that crosses 1, rising or falling."""


def _crossing(curve: Curve) -> list[Text]:
    """The place at which a curve crosses 1; empty where it does not."""
    crossing = curve.crossing
    if crossing is None:
        return []
    return [
        say(
            CROSSINGS[crossing.rises],
            workload=workload_name(curve.workload, curve.setting),
            system=curve.system,
            baseline=curve.baseline,
            threads=number(crossing.threads, 1),
            low=number(crossing.low, 1),
            high=number(crossing.high, 1),
        )
    ]


def _regressions(regressions: Sequence[Regression]) -> Table:
    return table(
        say("Change of throughput from the middle load level to the highest"),
        regressions,
        (say("System"), lambda one: one.system),
        (say("Workload"), lambda one: workload_name(one.workload, one.setting)),
        (numeric(say("From, threads")), lambda one: one.threads_reference),
        (numeric(say("To, threads")), lambda one: one.threads_most),
        (
            numeric(say("Change [95 %, all together]")),
            lambda one: interval(one.ratio, one.low, one.high),
        ),
        (say("In words"), _course),
    )


def _course(regression: Regression) -> Text:
    words = {
        Word.BETTER: say("still rises"),
        Word.WORSE: say("falls, beyond the margin") if regression.material else say("falls"),
        Word.EQUIVALENT: say("stays within the margin"),
        Word.UNDECIDED: say("not enough data"),
    }
    return words.get(regression.word, say("too few blocks"))


# Open loops: how much load each system takes before it becomes too slow.


def within_limit(judgement: Judgement) -> Section:
    """The highest sustained rate within the latency limit: verdicts, values, every block."""
    heading = say("Throughput within the latency limit")
    if not judgement.slo:
        return Section(heading, ())
    explained = Paragraph(
        say(
            "Transactions were due at the same rates for all systems, at random moments drawn "
            "beforehand, and latency counts from the moment a transaction was due. A rate is "
            "sustained if the backlog of waiting transactions does not grow over the second "
            "half of the window. The highest rate within the limit is interpolated between two "
            "measured rates, on a line through the logarithms; it tends to be too low, by less "
            "than the difference between these two rates."
        )
    )
    return Section(heading, (explained, *(part for s in judgement.slo for part in _search(s))))


def pilot(plan: Plan) -> Section:
    """The pilot's outcome, and the rates chosen by it."""
    heading = say("How the rates were chosen")
    if not plan.load.pilot:
        return Section(heading, ())
    explained = Paragraph(
        say(
            "Before the first block a pilot ran each system over {connections} in a closed "
            "loop{search}. dbdyno chose the rates, the same for all systems, from the pilot's "
            "trials. No verdict uses these trials.",
            connections=count(plan.load.connections, "connection"),
            search=say(", then at a few rates to see where the limit might be")
            if plan.load.seeks_rates
            else name(""),
        )
    )
    rates = table(
        say("What the pilot measured"),
        [
            (found, system, per_s)
            for found in plan.load.pilot
            for system, per_s in found.sustained_per_s.items()
        ],
        (say("Workload"), lambda row: workload_name(row[0].workload, row[0].setting)),
        (say("System"), lambda row: row[1]),
        (numeric(say("closed loop, transactions/s")), lambda row: number(row[2], 1)),
        (
            numeric(say("estimated rate at the limit, transactions/s")),
            lambda row: number(row[0].limits_per_s.get(row[1]), 1),
        ),
        (
            say("Rates chosen, transactions/s"),
            lambda row: listed(number(rate, 1) for rate in row[0].rates_per_s),
        ),
    )
    return Section(heading, (explained, rates))


def _search(search: RateSearch) -> Iterator[Part]:
    if search.verdicts:
        yield Entries(tuple(_entry(search, verdict) for verdict in search.verdicts))
    yield table(
        title(search),
        search.limits,
        (say("System"), lambda limit: limit.system),
        (
            numeric(say("highest rate within the limit, transactions/s")),
            lambda limit: number(limit.rate_per_s, 1),
        ),
        (numeric(say("95 %")), limit_interval),
        (numeric(say("blocks")), lambda limit: limit.blocks),
        (say("in each block"), lambda limit: listed(map(in_block, limit.by_block))),
    )
    yield _curve(search)


def _entry(search: RateSearch, verdict: Verdict) -> Entry:
    """The reasons alone say why there is no verdict: rates seldom want for sound blocks."""
    means = [meaning(verdict)] if verdict.word is not Word.NO_VERDICT else []
    return Entry(
        mark=term(verdict.word),
        heading=title(search),
        text=say("{verdict}.", verdict=sentence(verdict)),
        lines=(*means, *(say("{reason}.", reason=reason(one)) for one in verdict.reasons)),
        kind=verdict.word,
    )


def _curve(search: RateSearch) -> Table:
    """Latency over rate: the middle of the blocks, and in how many the rate was sustained."""
    systems = [limit.system for limit in search.limits]
    rates = sorted({p.rate_per_s for limit in search.limits for p in _points(limit)})
    label = metric_label(BY_NAME[search.metric])
    columns = [numeric(say("transactions/s due"))]
    for system in systems:
        columns.append(numeric(say("{system}, {label} ms", system=system, label=label)))
        columns.append(numeric(say("sustained (blocks)")))
    rows = []
    for rate in rates:
        row = [number(rate, 1)]
        for limit in search.limits:
            seen = [point for point in _points(limit) if point.rate_per_s == rate]
            known = sorted(p.latency_ms for p in seen if p.latency_ms is not None)
            row.append(number(known[len(known) // 2]) if known else NONE)
            row.append(name(f"{sum(p.sustained for p in seen)}/{len(seen)}") if seen else NONE)
        rows.append(tuple(row))
    caption = say("{label} by rate, median of the blocks", label=label)
    return Table(caption, tuple(columns), tuple(rows))


def _points(limit: RateLimit) -> Iterator[Point]:
    for block in limit.by_block:
        yield from block.points
