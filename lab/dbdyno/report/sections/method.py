"""Sections on how the numbers came about: method, order of trials, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.facts import RunFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import OptionValue
from dbdyno.report.numbers import NONE, measured_value, number
from dbdyno.report.parts import Code, Column, Items, Paragraph, Section, Table
from dbdyno.report.rows import STATES, Attempt, systems_of
from dbdyno.report.sections import design, procedure, replicas
from dbdyno.report.sections.limits import limits

P95 = BY_NAME["latency_ms_p95"]
ROWS_OPEN_MAX = 60
"""A longer table of trials is folded."""


def how_measured(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """Systems, workloads and procedure."""
    asked = (*design.asked(plan), *replicas.asked(plan), *procedure.asked(plan))
    items = (*asked, *_seen(measurements), *_always())
    tables = (replicas.table(plan, measurements), procedure.table(plan, measurements))
    parts = (_systems(plan, measurements), _workloads(plan), Items(items))
    return Section(say("How it was measured"), (*parts, *(table for table in tables if table)))


def _systems(plan: Plan, measurements: Sequence[Measurement]) -> Table:
    rows = []
    asked = {system.label: system for system in plan.systems}
    for label in systems_of(plan, measurements):
        trials = [m for m in measurements if m.trial.system == label]
        versions = _distinct(m.server.version for m in trials if m.server.version) or say(
            "(never ran)"
        )
        system = asked.get(label)
        reference = name(system.reference) if system else say("(imported)")
        wanted = _options(system.settings) if system else NONE
        rows.append((name(label), reference, versions, wanted))
    columns = (
        Column(say("System")),
        Column(say("Reference")),
        Column(say("Version it reports")),
        Column(say("Settings asked for")),
    )
    return Table(say("Systems, the baseline first"), columns, tuple(rows))


def _workloads(plan: Plan) -> Table:
    rows = tuple((name(w.label), name(w.name), _options(w.options)) for w in plan.workloads)
    columns = (
        Column(say("Workload")),
        Column(say("sysbench name")),
        Column(say("Options other than the defaults")),
    )
    return Table(say("Workloads"), columns, rows)


def _seen(measurements: Sequence[Measurement]) -> list[Text]:
    measurements = [m for m in measurements if m.intervals]  # others never began
    if not measurements:
        return []
    engines = _distinct(
        say(
            "dbdyno engine {version}, {reactor}, {threads}",
            version=m.engine.version,
            reactor=m.engine.reactor,
            threads=count(m.engine.threads, "thread"),
        )
        for m in measurements
    )
    distributions = _distinct(m.engine.distribution for m in measurements)
    return [
        say(
            "Load generator: {engines}; distribution as recorded: {distributions}.",
            engines=engines,
            distributions=distributions,
        )
    ]


def _always() -> list[Text]:
    return [
        say(
            "In a closed loop a connection sends its next request when it has the answer to the "
            "last, so latency is service time at saturation, and cannot be compared at unequal "
            "throughput."
        ),
        say(
            "Percentiles are read from merged histograms: counts of all seconds and trials are "
            "added, percentiles are never averaged. One is shown only with 100 requests or more "
            "beyond it."
        ),
        say(
            "Intervals take the block as the unit: Student's t on the logarithms of the ratios "
            "within blocks, 95 %. Seconds and requests are not independent and are not counted as "
            "such."
        ),
        say(
            "Void, failed and repeated trials stay in the record with their reason; none is "
            "deleted."
        ),
    ]


def _p95(measurement: Measurement) -> Text:
    return measured_value(measurement.value(P95), P95) if measurement.events else NONE


def trial_order(attempts: Sequence[Attempt]) -> Section:
    """Every attempt in the order in which the design placed it."""
    rows = tuple(
        (
            name(f"{attempt.measurement.trial.sequence + 1}"),
            name(f"{attempt.measurement.trial.block + 1}"),
            name(attempt.system),
            name(attempt.cell.title),
            name(attempt.measurement.started_at[:19].replace("T", " ")),
            number(attempt.measurement.value(PRIMARY)),
            _p95(attempt.measurement),
            _state(attempt),
        )
        for attempt in attempts
    )
    columns = (
        Column(name("#"), numeric=True),
        Column(say("Block"), numeric=True),
        Column(say("System")),
        Column(say("Cell")),
        Column(say("Started")),
        Column(say("TPS"), numeric=True),
        Column(name("p95 ms"), numeric=True),
        Column(say("State")),
    )
    caption = say("Every attempt, in the order of the design")
    table = Table(caption, columns, rows, folded=len(rows) > ROWS_OPEN_MAX)
    return Section(say("Order of trials"), (table,) if rows else ())


def _state(attempt: Attempt) -> Text:
    state = STATES[attempt.state]
    return say("{state}: {why}", state=state, why=attempt.why) if attempt.why else state


def limitations(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Section:
    """What this run cannot show."""
    return Section(say("Limitations"), (Items(tuple(limits(plan, measurements, judgement, run))),))


def repeat(plan: Plan, run: RunFacts) -> Section:
    """The command, and what must be the same for a run to be this run again."""
    items = (
        say("Plan hash (SHA-256): {digest}", digest=run.plan_hash),
        say("Seed: {seed}", seed=plan.seed),
        say("dbdyno: {version}", version=run.dbdyno_version),
        say(
            "The plan, every trial's numbers and this judgement are in {file} beside this page.",
            file="report.json",
        ),
        say(
            "All that this page rests on goes into one file with `dbdyno bundle {run_id}`; whoever "
            "has that file judges it again with `dbdyno report FILE`, and runs the experiment "
            "again and compares the two with `dbdyno replay FILE`.",
            run_id=run.run_id,
        ),
    )
    wanted = Paragraph(say("Run the same experiment again, on this machine or on another:"))
    again = Code(run.command or f"dbdyno report {shlex.quote(run.run_id)}")
    return Section(say("How to repeat it"), (wanted, again, Items(items)))


def _options(options: Mapping[str, OptionValue]) -> Text:
    return listed(f"{key}={_option(value)}" for key, value in options.items()) or NONE


def _option(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _distinct(texts: Iterable[str]) -> Text:
    return listed(dict.fromkeys(texts), "; ")
