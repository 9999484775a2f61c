"""Sections on how the numbers came about: method, order of trials, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import EngineFacts, Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY, RATE_AT_LIMIT
from dbdyno.measurement.outcome import RunFacts
from dbdyno.measurement.parts import Step, mean_over_time
from dbdyno.plan.known import Fact, Known, known_of
from dbdyno.plan.plan import Plan, latency_of
from dbdyno.plan.settings import SettingValue, axes, each_value, on_or_off
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.report.numbers import NONE, measured_value, number, seconds, share
from dbdyno.report.parts import Code, Column, Items, Paragraph, Section, Table, numeric, table
from dbdyno.report.rows import STATES, Attempt, systems_of
from dbdyno.report.sections.limits import certified, dataset, limits
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.terms import Sentence, step_name
from dbdyno.report.tell.verdicts import duration
from dbdyno.stats.design import FIRST_BLOCKS

P95 = BY_NAME["latency_ms_p95"]
ROWS_OPEN_MAX = 60
"""A longer table of trials is folded."""


def how_measured(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """Systems, workloads and procedure."""
    items = (
        *asked_design(plan),
        *asked_replicas(plan, measurements),
        *asked_procedure(plan),
        *_seen(measurements),
        *_always(known_of(plan)),
    )
    tables = (replicas_table(plan, measurements), procedure_table(plan, measurements))
    parts = (_systems(plan, measurements), _workloads(plan), Items(items))
    return Section(say("How it was measured"), (*parts, *(table for table in tables if table)))


def how_imported(measurements: Sequence[Measurement], run: RunFacts) -> Section:
    """Tools and files of an imported run."""
    tools = _distinct(m.engine.version for m in measurements)
    items = (
        say("Measured by {tools}, and imported; nothing was run by dbdyno.", tools=tools),
        say("Values are those that the tool printed; of repeats, their mean."),
        *(name(f"{key}: {value}") for key, value in run.environment.items()),
    )
    return Section(say("Where it comes from"), (Items(items),))


def _systems(plan: Plan, measurements: Sequence[Measurement]) -> Table:
    systems = {system.label: system for system in plan.systems}
    return table(
        say("Systems, the baseline first"),
        systems_of(plan, measurements),
        (say("System"), str),
        (
            say("Reference"),
            lambda label: (
                systems[label].reference if label in systems else say("(not in the plan)")
            ),
        ),
        (say("Version it reports"), lambda label: _versions(label, measurements)),
        (
            say("Settings asked for"),
            lambda label: _asked(systems[label]) if label in systems else NONE,
        ),
    )


def _asked(system: SystemPlan) -> Text:
    """Settings given to a system, and notes on settings that dbdyno does not see."""
    given = [
        *([_options(system.settings)] if system.settings else []),
        *(
            say("for {workload}: {settings}", workload=workload, settings=_options(settings))
            for workload, settings in system.workload_settings.items()
        ),
        *(say("after the start: {sql}", sql=sql) for sql in system.after_start),
        *(
            say("noted, not seen: {name} {value}", name=name, value=value)
            for name, value in system.notes.items()
        ),
    ]
    return listed(given, "; ") or NONE


def _versions(label: str, measurements: Sequence[Measurement]) -> Text:
    trials = (m for m in measurements if m.trial.system == label)
    return _distinct(m.server.version for m in trials if m.server.version) or say("(never ran)")


def _workloads(plan: Plan) -> Table:
    return table(
        say("Workloads"),
        plan.workloads,
        (say("Workload"), lambda workload: workload.label),
        (say("sysbench name"), lambda workload: workload.name),
        (say("Options other than the defaults"), lambda workload: _options(workload.options)),
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
            threads=generator_threads(m.engine),
        )
        for m in measurements
    )
    distributions = _distinct(m.engine.distribution for m in measurements)
    return [
        say(
            "Load generator: {engines}; distribution as recorded: {distributions}.",
            engines=engines,
            distributions=distributions,
        ),
        *_placements(measurements),
        *certified(measurements),
    ]


def generator_threads(engine: EngineFacts) -> Text:
    """Number of the load's threads, and of its generators if there are several."""
    threads = count(engine.threads, "thread")
    if engine.generators == 1:
        return threads
    generators = count(engine.generators, "generator")
    return say("{threads} of {generators}", threads=threads, generators=generators)


def _placements(measurements: Sequence[Measurement]) -> list[Text]:
    """Scheduling policies of the generator's threads, where runs recorded them."""
    ways = {one.policy for m in measurements for one in m.engine.placements}
    if not ways:
        return []
    placements = listed(sorted(ways), "; ")
    return [say("Threads of the load generator ran as: {placements}.", placements=placements)]


SATURATED: Final = Sentence(
    phrase(
        "In a closed loop a connection sends its next request when it has the answer to the last, "
        "so latency is service time at saturation, and cannot be compared at unequal throughput."
    ),
    Fact.BUSY,
)


def _always(known: Known) -> list[Text]:
    return [
        *SATURATED.of(known),
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


def _p95(measurement: Measurement, known: Known) -> Text:
    return measured_value(measurement.value(P95), P95, known) if measurement.events else NONE


def trial_order(attempts: Sequence[Attempt], known: Known) -> Section:
    """Every attempt in the order in which the design placed it."""
    order = table(
        say("Every attempt, in the order of the design"),
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
            "The plan, every trial's numbers and this judgement are in {file} beside this page.",
            file="report.json",
        ),
    )
    wanted = Paragraph(say("Run the same experiment again, on this machine or on another:"))
    again = (wanted, Code(run.command)) if run.command else ()
    kept = Paragraph(
        say(
            "Keep all that this page rests on in one file; judge that file again anywhere; run its "
            "experiment again and compare the two:"
        )
    )
    commands = Code(f"dbdyno bundle {run.run_id}\ndbdyno report FILE\ndbdyno replay FILE")
    return Section(say("How to repeat it"), (*again, kept, commands, Items(items)))


def _options(options: Mapping[str, SettingValue]) -> Text:
    every = ((key, one) for key, value in options.items() for one in each_value(value))
    return listed(f"{key}={on_or_off(value)}" for key, value in every) or NONE


def _distinct(texts: Iterable[str]) -> Text:
    return listed(dict.fromkeys(texts), "; ")


# Requests of the plan, a sentence each: data, load, trials, blocks, servers, margin.

SYSBENCH_DEFAULT: Final = "special"


def asked_design(plan: Plan) -> list[Text]:
    """Steps of the measurement, in their order."""
    trial, design, known = plan.trial, plan.design, known_of(plan)
    return [
        *(
            [say("This is the scale {scale} of its plan file.", scale=plan.scale)]
            * bool(plan.scale)
        ),
        *dataset(plan, known),
        *(_load(plan, load) for load in _loads(plan, known)),
        *_generators(plan),
        *_distribution(plan, known),
        say(
            "Each trial: {warmup} warm-up, which is recorded and not counted, then a window of "
            "{window}.",
            warmup=seconds(trial.warmup_s),
            window=seconds(trial.window_s),
        ),
        *_chosen(plan),
        say(
            "{blocks}{fitted}: in each, every system runs next to the others in time, in an order "
            "drawn from seed {seed}; one seed gives every system of a block the same requests.",
            blocks=count(design.blocks, "block"),
            fitted=_fitted(plan),
            seed=plan.seed,
        ),
        *_until_decided(plan),
        *_varied(plan),
        *_servers(plan, known),
        say(
            "Margin: a difference of {margin} in {metric} is what matters.",
            margin=share(design.margin),
            metric=_compared(plan),
        ),
        *_quiet(plan),
    ]


def _quiet(plan: Plan) -> list[Text]:
    limit = plan.design.disturbance_max
    if limit >= 1:
        return []
    said = say(
        "Disturbance: a trial beside which others had more than {limit} of the host's CPU, "
        "stolen time included, is void, and its cell is measured again on all systems.",
        limit=share(limit),
    )
    return [said]


def _load(plan: Plan, load: Text) -> Text:
    if plan.procedure.prepared_statements:
        return say("Load: {load}, prepared statements.", load=load)
    return say("Load: {load}, plain statements.", load=load)


def _generators(plan: Plan) -> list[Text]:
    said = say(
        "{generators}, each a process with its part of the connections, began together; what "
        "they saw is added up, and percentiles are those of all requests.",
        generators=count(plan.load.generators, "generator"),
    )
    return [said] if plan.load.generators > 1 else []


LOOPS: Final = (
    Sentence(phrase("closed loop of {levels}, without pauses"), Fact.BUSY),
    Sentence(
        phrase("closed loop of {levels}, which may rest between events of {resting}"), Fact.RESTING
    ),
)


def _loads(plan: Plan, known: Known) -> list[Text]:
    load = plan.load
    values = {"levels": connections(load.threads), "resting": listed(known[Fact.RESTING])}
    loops = [text for loop in LOOPS for text in loop.of(known, **values) if load.threads]
    rates = listed(load.rates)
    if load.is_open:
        over = {"rates": rates, "connections": count(load.connections, "connection")}
        loops.append(
            say("open loop of {rates} events/s over {connections}", **over)
            if rates
            else say("open loop at rates around the limit, over {connections}", **over)
        )
    return loops


def connections(levels: Sequence[int]) -> Text:
    """The levels of a closed loop: "1 connection", "1, 8 connections"."""
    if len(levels) == 1:
        return count(levels[0], "connection")
    return say("{levels} connections", levels=listed(str(level) for level in sorted(levels)))


def _compared(plan: Plan) -> Text:
    labels = [metric_label(PRIMARY)] if plan.load.threads else []
    labels += [metric_label(latency_of(plan))] if plan.load.rates else []
    labels += [metric_label(RATE_AT_LIMIT)] if plan.load.slo else []
    return listed(labels)


SERVERS: Final = {
    "block": Sentence(
        phrase(
            "A freshly started server for each arm of a block; its load levels run on it in "
            "an order drawn per block."
        ),
        Fact.OURS,
    ),
    "cell": Sentence(phrase("A freshly started server for every cell."), Fact.OURS),
}
"""Sentences by the values of `restart`."""
OTHERS: Final = Sentence(
    phrase(
        "Others run the servers of {systems}: dbdyno neither restarts them nor restores their "
        "rows, and clears nothing there between trials."
    ),
    Fact.OTHERS,
)


def _servers(plan: Plan, known: Known) -> list[Text]:
    started = SERVERS[plan.procedure.restart]
    return [*started.of(known), *OTHERS.of(known, systems=listed(known[Fact.OTHERS]))]


def _chosen(plan: Plan) -> list[Text]:
    time_s, chosen = plan.design.time_s, plan.design.chosen
    if time_s is None:
        return []
    if chosen is None:
        return [say("{time} were given; the run ended before it chose.", time=duration(time_s))]
    return [
        say(
            "{time} were given for measuring. In the first {first} throughput scattered by "
            "{start:.1%} from block to block and by {second:.0%} from second to second, so the "
            "windows after them, of {window}, and at most {blocks} promised the narrowest "
            "interval.",
            time=duration(time_s),
            first=count(FIRST_BLOCKS, "block"),
            start=chosen.start_noise,
            second=chosen.second_noise,
            window=seconds(chosen.window_s),
            blocks=count(chosen.blocks, "block"),
        )
    ]


def _until_decided(plan: Plan) -> list[Text]:
    if plan.design.stop == "blocks":
        return []
    return [
        say(
            "The run was to end when every cell is decided, after {most} at most: each "
            "interval is a repeated one, wide enough to hold with those of all other looks.",
            most=count(plan.design.blocks, "block"),
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


DISTRIBUTION: Final = {
    True: Sentence(
        phrase(
            "Rows are chosen by sysbench's {distribution} distribution, the default of its 1.0."
        ),
        Fact.ROWS,
    ),
    False: Sentence(
        phrase(
            "Rows are chosen by sysbench's {distribution} distribution, not {default}, the default "
            "of its 1.0: numbers under the two cannot be compared."
        ),
        Fact.ROWS,
    ),
}
"""By whether it is sysbench's default."""


def _distribution(plan: Plan, known: Known) -> list[Text]:
    distribution = plan.distribution.name
    sentence = DISTRIBUTION[distribution == SYSBENCH_DEFAULT]
    return sentence.of(known, distribution=distribution, default=SYSBENCH_DEFAULT)


# The procedure: steps between measured windows, how often and how long.

RESTORED: Final = {
    "start": Sentence(phrase("The dataset is restored before each start."), Fact.OURS),
    "once": Sentence(
        phrase("The dataset is restored before the first trial only; later ones find it grown."),
        Fact.OURS,
    ),
}
CACHES: Final = Sentence(
    phrase("The operating system's caches are dropped before each start."), Fact.OURS
)
BINLOGS: Final = Sentence(phrase("Binary logs are purged before each trial."), Fact.OURS)
QUIESCED: Final = Sentence(
    phrase(
        "Between two trials on one server it is waited until changed pages are written and old row "
        "versions are purged, {most} at most."
    ),
    Fact.OURS,
)


def asked_procedure(plan: Plan) -> list[Text]:
    """Steps of the plan beyond a restart, a sentence each."""
    procedure, known = plan.procedure, known_of(plan)
    steps = {
        RESTORED[procedure.fresh_data]: True,
        CACHES: procedure.drop_caches,
        BINLOGS: procedure.purge_binlogs,
        QUIESCED: procedure.settle_cap_s > 0,
    }
    most = seconds(procedure.settle_cap_s)
    return [text for one, holds in steps.items() if holds for text in one.of(known, most=most)]


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
        (numeric(say("Not done")), lambda row: sum(not step.done for step in row[2])),
        (numeric(say("Median s")), lambda row: number(median(row[3]), 1)),
        (numeric(say("Longest s")), lambda row: number(max(row[3]), 1)),
        (numeric(say("In all s")), lambda row: number(sum(row[3]), 1)),
    )


# Replication: replicas of each primary, and whether its commits waited for them.


def asked_replicas(plan: Plan, measurements: Sequence[Measurement]) -> Iterator[Text]:
    """Replicas and network delays of the plan, a sentence each."""
    seen = {m.trial.system: m.server.replication for m in measurements}
    for system in plan.systems:
        if system.topology.replicas:
            behind = _said(system.topology, seen.get(system.label, {}))
            yield say("{system}: {behind}.", system=system.label, behind=behind)
    for delay in added_delays(plan):
        yield say("Network: {delay}.", delay=delay)


def added_delays(plan: Plan) -> list[Text]:
    """Delays added to round trips, as parts of a sentence."""
    client_ms, replica_ms = plan.network.client_ms, plan.network.replica_ms
    load = say("{ms:g} ms added to a round trip between load and server", ms=client_ms)
    copies = say("{ms:g} ms added to a round trip between primary and replicas", ms=replica_ms)
    return [load] * bool(client_ms) + [copies] * bool(replica_ms)


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
        numeric(say("Commits that a replica had")),
        numeric(say("Commits that none had")),
        numeric(say("Most transactions behind")),
        numeric(say("Replicas' CPU µs per transaction")),
    )
    rows = tuple(
        (name(system), title, name(str(len(trials))), *_replicas_row(trials))
        for (system, title), trials in groups.items()
    )
    return Table(say("Replication in the measured windows"), columns, rows)


def _said(topology: TopologyPlan, seen: Mapping[str, float]) -> Text:
    behind = count(topology.replicas, "replica")
    if topology.replication == "semisync" and replication.waits_uncounted(seen):
        return say("a commit waits until one of {replicas} has it", replicas=behind)
    if topology.replication == "semisync":
        return say(
            "a commit waits ({after}) until one of {replicas} has it, {most} at most",
            after=topology.wait_point.replace("_", " "),
            replicas=behind,
            most=seconds(topology.timeout_s),
        )
    if topology.replication == "group":
        members = topology.replicas + 1
        return say("a group of {members}; a commit waits until a majority agrees", members=members)
    return say("{replicas}, for which no commit waits", replicas=behind)


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
