"""Sections on open loops: what the pilot found, and which rate each system sustains within a limit.

The limit's section stands near the top, since it answers the question of whoever asked for it:
how much load does each system take before it becomes too slow. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import RateLimit, RatePoint, RateSearch
from dbdyno.judge.verdict import Verdict
from dbdyno.judge.wording import sentence
from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.load import PilotFound
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, number
from dbdyno.report.parts import Column, Entries, Entry, Paragraph, Part, Section, Table
from dbdyno.report.rates import in_block, interval, title
from dbdyno.report.sections.meaning import meaning


def within_limit(judgement: Judgement) -> Section:
    """The highest sustained rate within the latency limit: verdicts, values, every block."""
    heading = say("Throughput within the latency limit")
    if not judgement.slo:
        return Section(heading, ())
    explained = Paragraph(
        say(
            "Requests fell due at rates that were the same for all systems, at random moments drawn"
            " beforehand, and latency counts from those moments. A rate counts as sustained if the"
            " requests that wait to be begun do not become more over the last half of the window."
            " The rate at which the limit is met is read between two of the rates, on a line"
            " through the logarithms; it is rather too low, by less than their distance."
        )
    )
    return Section(heading, (explained, *(part for s in judgement.slo for part in _search(s))))


def pilot(plan: Plan) -> Section:
    """What the pilot found, and the rates that were measured because of it."""
    heading = say("How the rates were chosen")
    if not plan.load.pilot:
        return Section(heading, ())
    explained = Paragraph(
        say(
            "A pilot ran each system over {connections} connections in a closed loop before the"
            " first block{search}. It chose these rates, the same for all systems, and its trials"
            " are in no other number.",
            connections=plan.load.connections,
            search=say(", then at a few rates to see where the limit might be")
            if plan.load.seeks_rates
            else name(""),
        )
    )
    rows = tuple(row for found in plan.load.pilot for row in _pilot_rows(found))
    columns = (
        Column(say("Workload")),
        Column(say("System")),
        Column(say("closed loop, events/s"), numeric=True),
        Column(say("limit seemed to be at, events/s"), numeric=True),
        Column(say("Rates measured, events/s")),
    )
    return Section(heading, (explained, Table(say("What the pilot saw"), columns, rows)))


def _search(search: RateSearch) -> Iterator[Part]:
    if search.verdicts:
        yield Entries(tuple(_entry(search, verdict) for verdict in search.verdicts))
    columns = (
        Column(say("System")),
        Column(say("highest rate within the limit, events/s"), numeric=True),
        Column(say("95 %"), numeric=True),
        Column(say("blocks"), numeric=True),
        Column(say("by block")),
    )
    rows = tuple(
        (
            name(limit.system),
            number(limit.rate_per_s, 1),
            interval(limit),
            name(str(limit.blocks)),
            listed(map(in_block, limit.by_block)),
        )
        for limit in search.limits
    )
    yield Table(title(search), columns, rows)
    yield _curve(search)


def _entry(search: RateSearch, verdict: Verdict) -> Entry:
    return Entry(
        mark=verdict.word.said,
        heading=title(search),
        text=say("{verdict}.", verdict=sentence(verdict)),
        lines=(meaning(verdict), *(say("{reason}.", reason=one) for one in verdict.reasons)),
    )


def _curve(search: RateSearch) -> Table:
    """Latency over rate: the middle of the blocks, and in how many the rate was sustained."""
    systems = [limit.system for limit in search.limits]
    rates = sorted({p.rate_per_s for limit in search.limits for p in _points(limit)})
    label = BY_NAME[search.metric].label
    columns = [Column(say("events/s due"), numeric=True)]
    for system in systems:
        columns.append(
            Column(say("{system}, {label} ms", system=system, label=label), numeric=True)
        )
        columns.append(Column(say("sustained"), numeric=True))
    rows = []
    for rate in rates:
        row = [number(rate, 1)]
        for limit in search.limits:
            seen = [point for point in _points(limit) if point.rate_per_s == rate]
            known = sorted(p.latency_ms for p in seen if p.latency_ms is not None)
            row.append(number(known[len(known) // 2]) if known else NONE)
            row.append(name(f"{sum(p.sustained for p in seen)}/{len(seen)}") if seen else NONE)
        rows.append(tuple(row))
    caption = say("{label} over the rate, middle of the blocks", label=label)
    return Table(caption, tuple(columns), tuple(rows))


def _points(limit: RateLimit) -> Iterator[RatePoint]:
    for block in limit.by_block:
        yield from block.points


def _pilot_rows(found: PilotFound) -> Iterator[tuple[Text, ...]]:
    place = found.workload if found.setting == "default" else f"{found.workload}, {found.setting}"
    for system, sustained_per_s in found.sustained_per_s.items():
        limit = found.limits_per_s.get(system)
        rates = listed(number(rate, 1) for rate in found.rates_per_s)
        yield name(place), name(system), number(sustained_per_s, 1), number(limit, 1), rates
