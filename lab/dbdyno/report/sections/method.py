"""Sections on how the numbers came about: method, order of trials, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import EngineFacts, Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.measurement.outcome import RunFacts
from dbdyno.measurement.parts import Step, mean_over_time
from dbdyno.plan.known import Fact, Known, known_of
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, measured_value, number
from dbdyno.report.parts import Code, Column, Items, Paragraph, Part, Section, Table, numeric, table
from dbdyno.report.rows import STATES, Attempt, systems_of
from dbdyno.report.sections.limits import certified, limits
from dbdyno.report.tell.measured import cell_title
from dbdyno.report.tell.plan import facts_of
from dbdyno.report.tell.terms import Sentence, fitting, step_name

P95 = BY_NAME["latency_ms_p95"]
ROWS_OPEN_MAX = 60
"""A longer table of trials is folded."""


def how_measured(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """The plan's facts, those of the load generator, and rules of the statistics."""
    facts: Part = table(
        say("The plan"),
        facts_of(plan),
        (say("What"), lambda fact: fact.topic),
        (say("Planned"), lambda fact: fact.text),
    )
    items = Items((*_seen(measurements), *_always(known_of(plan))))
    tables = (replicas_table(plan, measurements), procedure_table(plan, measurements))
    return Section(say("How it was measured"), (facts, items, *(one for one in tables if one)))


def how_imported(measurements: Sequence[Measurement], run: RunFacts) -> Section:
    """Tools and files of an imported run."""
    tools = _distinct(m.engine.version for m in measurements)
    items = (
        say("Measured by {tools} and imported. dbdyno ran nothing.", tools=tools),
        say("Values are as the tool printed them. Repeats are averaged."),
        *(name(f"{key}: {value}") for key, value in run.environment.items()),
    )
    return Section(say("Where it comes from"), (Items(items),))


def _seen(measurements: Sequence[Measurement]) -> list[Text]:
    measurements = [m for m in measurements if m.intervals]  # others never began
    if not measurements:
        return []
    engines = _distinct(
        say(
            "dbdyno engine {version}, {reactor}, {threads}",
            version=m.engine.version,
            reactor=m.engine.reactor,
            threads=generator_threads(m.engine),
        )
        for m in measurements
    )
    distributions = _distinct(m.engine.distribution for m in measurements)
    return [
        say(
            "Load generator: {engines}; distribution of the rows accessed: {distributions}.",
            engines=engines,
            distributions=distributions,
        ),
        *certified(measurements),
    ]


def generator_threads(engine: EngineFacts) -> Text:
    """Number of the load's threads, and of its generators if there are several."""
    threads = count(engine.threads, "thread")
    if engine.generators == 1:
        return threads
    generators = count(engine.generators, "generator")
    return say("{threads} of {generators}", threads=threads, generators=generators)


SATURATED: Final = Sentence(
    phrase(
        "In a closed loop a connection sends its next request only after the last answer. A "
        "slower server gets fewer requests, so latencies cannot be compared at unequal throughput."
    ),
    Fact.BUSY,
)


def _always(known: Known) -> list[Text]:
    return [
        *SATURATED.of(known),
        say(
            "Percentiles are computed from one histogram of all seconds and trials. Percentiles "
            "are never averaged. A percentile is shown only if 100 requests or more were slower."
        ),
        say(
            "Each block gives one ratio (system to baseline). The 95 % intervals are computed from "
            "the logarithms of these ratios. Seconds or requests of a trial are not used as "
            "samples, because they are not independent of each other. The noise of a cell is "
            "estimated from all cells of the comparison. The more alike the noise of all cells is, "
            "the more other cells count in this estimate."
        ),
        say(
            "Trials that do not count (void, failed or repeated) stay stored, each with the reason."
        ),
    ]


def _p95(measurement: Measurement, known: Known) -> Text:
    return measured_value(measurement.value(P95), P95, known) if measurement.events else NONE


ORDERS: Final = (
    Sentence(phrase("Every attempt at a trial, in the planned order"), Fact.HERE),
    Sentence(phrase("Every result, in the order of the files"), Fact.ELSEWHERE),
)


def trial_order(attempts: Sequence[Attempt], known: Known) -> Section:
    """Every attempt in the order in which the design placed it."""
    order = table(
        fitting(ORDERS, known),
        attempts,
        (numeric(name("#")), lambda attempt: _place(attempt)[0]),
        (numeric(say("Block")), lambda attempt: _place(attempt)[1]),
        (say("System"), lambda attempt: attempt.system),
        (say("Cell"), lambda attempt: cell_title(attempt.cell)),
        (
            say("Started"),
            lambda attempt: attempt.measurement.started_at[:19].replace("T", " "),
        ),
        (numeric(say("TPS")), lambda attempt: number(attempt.measurement.value(PRIMARY))),
        (numeric(name("p95 ms")), lambda attempt: _p95(attempt.measurement, known)),
        (say("State"), _state),
        folded=len(attempts) > ROWS_OPEN_MAX,
    )
    return Section(say("Order of trials"), (order,) if attempts else ())


def _place(attempt: Attempt) -> tuple[Text, Text]:
    """Number and block, counted from 1; a pilot's trials come before both."""
    trial = attempt.measurement.trial
    if attempt.measurement.trial.is_pilot:
        return NONE, say("pilot")
    return name(str(trial.sequence + 1)), name(str(trial.block + 1))


def _state(attempt: Attempt) -> Text:
    state = STATES[attempt.state]
    return say("{state}: {why}", state=state, why=attempt.why) if attempt.why else state


def limitations(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """Limitations of this run."""
    return Section(say("Limitations"), (Items(tuple(limits(plan, measurements, judgement))),))


def repeat(plan: Plan, run: RunFacts) -> Section:
    """The command to repeat the run, and the conditions for the same run."""
    items = (
        say("Plan hash (SHA-256): {digest}", digest=run.plan_hash),
        say("Seed: {seed}", seed=plan.seed),
        say("dbdyno: {version}", version=run.dbdyno_version),
        say(
            "{file} beside this page contains the plan, the numbers of every trial, and all "
            "verdicts.",
            file="report.json",
        ),
    )
    wanted = Paragraph(say("Run the same experiment again, on this machine or on another:"))
    again = (wanted, Code(run.command)) if run.command else ()
    kept = Paragraph(
        say(
            "Pack all data of this run into one file, write its report again on any machine, "
            "and repeat its experiment to compare the two runs:"
        )
    )
    commands = Code(f"dbdyno bundle {run.run_id}\ndbdyno report FILE\ndbdyno replay FILE")
    return Section(say("How to repeat it"), (*again, kept, commands, Items(items)))


def _distinct(texts: Iterable[str]) -> Text:
    return listed(dict.fromkeys(texts), "; ")


def procedure_table(plan: Plan, measurements: Sequence[Measurement]) -> Table | None:
    """Every kind of step on every system; None if no step was kept."""
    taken: dict[tuple[str, Text], list[Step]] = {}
    for system in systems_of(plan, measurements):
        for measurement in measurements:
            if measurement.trial.system == system:
                for step in measurement.procedure:
                    taken.setdefault((system, step_name(step.name)), []).append(step)
    if not taken:
        return None
    return table(
        say("Steps before trials, and their time"),
        [(*place, steps, [step.seconds for step in steps]) for place, steps in taken.items()],
        (say("System"), lambda row: row[0]),
        (say("Step"), lambda row: row[1]),
        (numeric(say("Times")), lambda row: len(row[2])),
        (numeric(say("Not completed")), lambda row: sum(not step.done for step in row[2])),
        (numeric(say("Median s")), lambda row: number(median(row[3]), 1)),
        (numeric(say("Longest s")), lambda row: number(max(row[3]), 1)),
        (numeric(say("Total s")), lambda row: number(sum(row[3]), 1)),
    )


def replicas_table(plan: Plan, measurements: Sequence[Measurement]) -> Table | None:
    """Replication in the windows of each system and cell; None without replication."""
    groups: dict[tuple[str, Text], list[Measurement]] = {}
    for system in systems_of(plan, measurements):
        for m in measurements:
            if m.trial.system == system and m.server.replication:
                groups.setdefault((system, cell_title(m.trial.cell)), []).append(m)
    if not groups:
        return None
    columns = (
        Column(say("System")),
        Column(say("Workload and load")),
        numeric(say("Trials")),
        numeric(say("Commits that a replica acknowledged")),
        numeric(say("Commits that no replica acknowledged")),
        numeric(say("Replica behind at most, transactions")),
        numeric(say("Replicas' CPU µs per transaction")),
    )
    rows = tuple(
        (name(system), title, name(str(len(trials))), *_replicas_row(trials))
        for (system, title), trials in groups.items()
    )
    return Table(say("Replication in the measured windows"), columns, rows)


def _replicas_row(trials: Sequence[Measurement]) -> tuple[Text, ...]:
    every = [m.server.replication for m in trials]

    def total(name: str) -> float | None:
        return sum(known) if (known := [o[name] for o in every if name in o]) else None

    watched = [sample for m in trials for sample in m.watch_measured]
    cores = mean_over_time(watched, lambda sample: sample.replicas_cpu)
    rate_per_s = sum(m.events for m in trials) / sum(m.window_s for m in trials)
    return (
        number(total(replication.COMMITS_ACKNOWLEDGED), 0),
        number(total(replication.COMMITS_NOT_ACKNOWLEDGED), 0),
        number(max(one.get(replication.TRANSACTIONS_BEHIND, 0) for one in every), 0),
        number(cores / rate_per_s * 1e6 if cores is not None and rate_per_s else None, 1),
    )
