"""Sections on how the numbers came about: method, order of trials, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from dbdyno.judge import Judgement
from dbdyno.judge.cell_metric import latency_of
from dbdyno.measurement import Measurement
from dbdyno.metric import BY_NAME, PRIMARY, RATE_AT_LIMIT
from dbdyno.plan import Plan
from dbdyno.plan_settings import OptionValue, axes
from dbdyno.report import procedure, replicas
from dbdyno.report.facts import RunFacts
from dbdyno.report.limits import limits
from dbdyno.report.numbers import NONE, measured_value, number, seconds, share
from dbdyno.report.parts import Code, Column, Items, Paragraph, Section, Table
from dbdyno.report.trials import STATES, Attempt, systems_of
from dbdyno.words import Text, count, listed, name, say

SYSBENCH_DEFAULT = "special"
P95 = BY_NAME["latency_ms_p95"]
ROWS_OPEN_MAX = 60
"""A longer table of trials is folded."""


def how_measured(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """Systems, workloads and procedure."""
    asked = (*_asked(plan), *replicas.asked(plan), *procedure.asked(plan))
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


def _asked(plan: Plan) -> list[Text]:
    dataset, trial, design = plan.dataset, plan.trial, plan.design
    return [
        *(
            [say("This is the scale {scale} of its plan file.", scale=plan.scale)]
            * bool(plan.scale)
        ),
        say(
            "Dataset: {tables} of {rows} each.",
            tables=count(dataset.tables, "table"),
            rows=count(dataset.rows, "row"),
        ),
        *(_load(plan, load) for load in _loads(plan)),
        _distribution(plan),
        say(
            "Each trial: {warmup} warm-up, which is recorded and not counted, then a window of "
            "{window}.",
            warmup=seconds(trial.warmup_s),
            window=seconds(trial.window_s),
        ),
        say(
            "{blocks}{fitted}: in each, every system runs next to the others in time, in an order "
            "drawn from seed {seed}; one seed gives every system of a block the same requests.",
            blocks=count(design.blocks, "block"),
            fitted=_fitted(plan),
            seed=plan.seed,
        ),
        *_until_decided(plan),
        *_varied(plan),
        _servers(plan),
        say(
            "Margin: a difference of {margin} in {metric} is what matters.",
            margin=share(design.margin),
            metric=_compared(plan),
        ),
    ]


def _load(plan: Plan, load: Text) -> Text:
    if plan.procedure.prepared_statements:
        return say("Load: {load}, prepared statements.", load=load)
    return say("Load: {load}, plain statements.", load=load)


def _loads(plan: Plan) -> list[Text]:
    load = plan.load
    levels = listed(str(threads) for threads in sorted(load.threads))
    told: list[Text] = [say("closed loop of {levels} connections, without pauses", levels=levels)]
    rates = listed(load.rates)
    if load.is_open:
        over = {"rates": rates, "connections": load.connections}
        told.append(
            say("open loop of {rates} events/s over {connections} connections", **over)
            if rates
            else say("open loop at rates around the limit, over {connections} connections", **over)
        )
    return told if load.threads else told[1:]


def _compared(plan: Plan) -> Text:
    """What the verdicts are about."""
    labels = [PRIMARY.label] if plan.load.threads else []
    labels += [latency_of(plan).label] if plan.load.rates else []
    labels += [RATE_AT_LIMIT.label] if plan.load.slo else []
    return listed(labels)


def _servers(plan: Plan) -> Text:
    """How often a server is new, and what it finds."""
    restored = plan.procedure.fresh_data == "start"
    match plan.procedure.restart == "block", restored:
        case True, True:
            return say(
                "A freshly started server on a restored dataset for each arm of a block; its load "
                "levels run on it in an order drawn per block."
            )
        case True, False:
            return say(
                "A freshly started server for each arm of a block; its load levels run on it in "
                "an order drawn per block."
            )
        case False, True:
            return say("A freshly started server on a restored dataset for every cell.")
        case _:
            return say("A freshly started server for every cell.")


def _until_decided(plan: Plan) -> list[Text]:
    if plan.design.stop == "blocks":
        return []
    return [
        say(
            "The run was to end when every cell is decided, after {most} blocks at most: each "
            "interval is a repeated one, wide enough to hold with those of all other looks.",
            most=plan.design.blocks,
        )
    ]


def _fitted(plan: Plan) -> Text:
    budget_s = plan.design.budget_s
    if budget_s is None:
        return name("")
    return say(", as many as fit into {hours:.3g} h by forecast", hours=budget_s / 3600)


def _varied(plan: Plan) -> list[Text]:
    return [
        say("Varied on every system: {axis} ({values}).", axis=axis, values=listed(values))
        if len(values) > 1
        else say("On every system: {axis} {value}.", axis=axis, value=values[0])
        for axis, values in axes(plan.settings).items()
    ]


def _distribution(plan: Plan) -> Text:
    """The distribution, with a warning to those who compare with numbers of a plain sysbench."""
    if plan.distribution.name == SYSBENCH_DEFAULT:
        return say(
            "Rows are chosen by sysbench's {distribution} distribution, the default of its 1.0.",
            distribution=SYSBENCH_DEFAULT,
        )
    return say(
        "Rows are chosen by sysbench's {distribution} distribution, not {default}, the default of "
        "its 1.0: numbers under the two cannot be compared.",
        distribution=plan.distribution.name,
        default=SYSBENCH_DEFAULT,
    )


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
