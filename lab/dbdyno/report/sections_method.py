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
from dbdyno.report.numbers import NONE, count, measured_value, number, seconds, share
from dbdyno.report.parts import Code, Column, Items, Paragraph, Section, Table
from dbdyno.report.trials import Attempt, systems_of
from dbdyno.words import Text, say

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
    return Section("How it was measured", (*parts, *(table for table in tables if table)))


def _systems(plan: Plan, measurements: Sequence[Measurement]) -> Table:
    rows = []
    asked = {system.label: system for system in plan.systems}
    for label in systems_of(plan, measurements):
        trials = [m for m in measurements if m.trial.system == label]
        versions = _distinct(m.server.version for m in trials if m.server.version) or "(never ran)"
        system = asked.get(label)
        reference = system.reference if system else "(imported)"
        wanted = _options(system.settings) if system else NONE
        rows.append((label, reference, versions, wanted))
    columns = ("System", "Reference", "Version it reports", "Settings asked for")
    return Table("Systems, the baseline first", tuple(map(Column, columns)), tuple(rows))


def _workloads(plan: Plan) -> Table:
    rows = tuple((w.label, w.name, _options(w.options)) for w in plan.workloads)
    columns = ("Workload", "sysbench name", "Options other than the defaults")
    return Table("Workloads", tuple(map(Column, columns)), rows)


def _asked(plan: Plan) -> list[str]:
    dataset, trial, design = plan.dataset, plan.trial, plan.design
    anew = (
        "for each arm of a block; its load levels run on it in an order drawn per block"
        if plan.procedure.restart == "block"
        else "for every cell"
    )
    data = "on a restored dataset " if plan.procedure.fresh_data == "start" else ""
    prepared = "prepared" if plan.procedure.prepared_statements else "plain"
    return [
        *([f"This is the scale {plan.scale} of its plan file."] if plan.scale else []),
        f"Dataset: {count(dataset.tables, 'table')} of {count(dataset.rows, 'row')} each.",
        *(f"Load: {load}, {prepared} statements." for load in _loads(plan)),
        f"Rows are chosen by sysbench's {plan.distribution.name} distribution{_default(plan)}.",
        f"Each trial: {seconds(trial.warmup_s)} warm-up, which is recorded and not counted, "
        f"then a window of {seconds(trial.window_s)}.",
        f"{count(design.blocks, 'block')}{_fitted(plan)}: in each, every system runs next to the "
        f"others in time, in an order drawn from seed {plan.seed}; one seed gives every system of "
        "a block the same requests.",
        *_until_decided(plan),
        *_varied(plan),
        f"A freshly started server {data}{anew}.",
        f"Margin: a difference of {share(design.margin)} in {_compared(plan)} is what matters.",
    ]


def _loads(plan: Plan) -> list[Text]:
    load = plan.load
    levels = ", ".join(str(threads) for threads in sorted(load.threads))
    told: list[Text] = [say("closed loop of {levels} connections, without pauses", levels=levels)]
    rates = ", ".join(load.rates)
    if load.is_open:
        over = {"rates": rates, "connections": load.connections}
        told.append(
            say("open loop of {rates} events/s over {connections} connections", **over)
            if rates
            else say("open loop at rates around the limit, over {connections} connections", **over)
        )
    return told if load.threads else told[1:]


def _compared(plan: Plan) -> str:
    """What the verdicts are about."""
    labels = [PRIMARY.label] if plan.load.threads else []
    labels += [latency_of(plan).label] if plan.load.rates else []
    labels += [RATE_AT_LIMIT.label] if plan.load.slo else []
    return ", ".join(labels)


def _until_decided(plan: Plan) -> list[str]:
    if plan.design.stop == "blocks":
        return []
    return [
        say(
            "The run was to end when every cell is decided, after {most} blocks at most: each "
            "interval is a repeated one, wide enough to hold with those of all other looks.",
            most=plan.design.blocks,
        )
    ]


def _fitted(plan: Plan) -> str:
    budget_s = plan.design.budget_s
    return "" if budget_s is None else f", as many as fit into {budget_s / 3600:.3g} h by forecast"


def _varied(plan: Plan) -> list[str]:
    return [
        f"Varied on every system: {axis} ({', '.join(values)})."
        if len(values) > 1
        else f"On every system: {axis} {values[0]}."
        for axis, values in axes(plan.settings).items()
    ]


def _default(plan: Plan) -> str:
    """A warning to those who compare with numbers of a plain sysbench."""
    if plan.distribution.name == SYSBENCH_DEFAULT:
        return ", the default of its 1.0"
    return (
        f", not {SYSBENCH_DEFAULT}, the default of its 1.0: "
        "numbers under the two cannot be compared"
    )


def _seen(measurements: Sequence[Measurement]) -> list[str]:
    measurements = [m for m in measurements if m.intervals]  # others never began
    if not measurements:
        return []
    engines = _distinct(
        f"dbdyno engine {m.engine.version}, {m.engine.reactor}, {count(m.engine.threads, 'thread')}"
        for m in measurements
    )
    distributions = _distinct(m.engine.distribution for m in measurements)
    return [f"Load generator: {engines}; distribution as recorded: {distributions}."]


def _always() -> list[str]:
    return [
        "In a closed loop a connection sends its next request when it has the answer to the last, "
        "so latency is service time at saturation, and cannot be compared at unequal throughput.",
        "Percentiles are read from merged histograms: counts of all seconds and trials are added, "
        "percentiles are never averaged. One is shown only with 100 requests or more beyond it.",
        "Intervals take the block as the unit: Student's t on the logarithms of the ratios within "
        "blocks, 95 %. Seconds and requests are not independent and are not counted as such.",
        "Void, failed and repeated trials stay in the record with their reason; none is deleted.",
    ]


def _p95(measurement: Measurement) -> str:
    return measured_value(measurement.value(P95), P95) if measurement.events else NONE


def trial_order(attempts: Sequence[Attempt]) -> Section:
    """Every attempt in the order in which the design placed it."""
    rows = tuple(
        (
            str(attempt.measurement.trial.sequence + 1),
            str(attempt.measurement.trial.block + 1),
            attempt.system,
            attempt.cell.title,
            attempt.measurement.started_at[:19].replace("T", " "),
            number(attempt.measurement.value(PRIMARY)),
            _p95(attempt.measurement),
            f"{attempt.state.value}: {attempt.why}" if attempt.why else attempt.state.value,
        )
        for attempt in attempts
    )
    columns = (
        Column("#", numeric=True),
        Column("Block", numeric=True),
        Column("System"),
        Column("Cell"),
        Column("Started"),
        Column("TPS", numeric=True),
        Column("p95 ms", numeric=True),
        Column("State"),
    )
    caption = "Every attempt, in the order of the design"
    table = Table(caption, columns, rows, folded=len(rows) > ROWS_OPEN_MAX)
    return Section("Order of trials", (table,) if rows else ())


def limitations(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Section:
    """What this run cannot show."""
    return Section("Limitations", (Items(tuple(limits(plan, measurements, judgement, run))),))


def repeat(plan: Plan, run: RunFacts) -> Section:
    """The command, and what must be the same for a run to be this run again."""
    items = (
        f"Plan hash (SHA-256): {run.plan_hash}",
        f"Seed: {plan.seed}",
        f"dbdyno: {run.dbdyno_version}",
        "The plan, every trial's numbers and this judgement are in report.json beside this page.",
    )
    wanted = Paragraph("Run the same experiment again, on this machine or on another:")
    again = Code(run.command or f"dbdyno report {shlex.quote(run.run_id)}")
    return Section("How to repeat it", (wanted, again, Items(items)))


def _options(options: Mapping[str, OptionValue]) -> str:
    return ", ".join(f"{name}={_option(value)}" for name, value in options.items()) or NONE


def _option(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _distinct(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
