"""A plan in words: each of its facts once, for `plan show`, reports and a stranger's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement.metric import PRIMARY, RATE_AT_LIMIT
from dbdyno.plan.known import Fact, Known, known_of
from dbdyno.plan.plan import Plan, comparisons, latency_of, one_baseline
from dbdyno.plan.risks import is_in_catalog, reaches_beyond
from dbdyno.plan.settings import SettingValue, axes, each_value, on_or_off
from dbdyno.plan.spelling import share_of
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.report.numbers import mebibytes, seconds, share
from dbdyno.report.rows import compared_settings
from dbdyno.report.tell.measured import metric_label
from dbdyno.report.tell.terms import Sentence
from dbdyno.report.tell.verdicts import duration
from dbdyno.stats.design import FIRST_BLOCKS

Settings = Mapping[str, SettingValue]
RiskyText = tuple[Text, Text | None]
"""A text with its risk."""
SYSBENCH_DEFAULT: Final = "special"

TOPICS: Final[Mapping[str, Text]] = {
    str(topic): topic
    for topic in (
        # of a plan
        say("scale"),
        say("systems"),
        say("settings"),
        say("workloads"),
        say("compared"),
        say("load"),
        say("data"),
        say("row choice"),
        say("network"),
        say("machines"),
        say("trial"),
        say("blocks"),
        say("procedure"),
        say("margin"),
        say("disturbance"),
        # of a run or a publication
        say("durability"),
        say("repeats"),
        say("machine"),
        say("storage"),
        say("window"),
    )
}
"""Names of topics in plan files, reports and `plan show`; a plan file may have others."""


@dataclass(frozen=True)
class PlanFact:
    """A fact of a plan under its topic.

    Attributes:
        risk: the harm that it can do if the plan is a stranger's; None if it can do none.
    """

    topic: Text
    text: Text
    risk: Text | None = None


def facts_of(plan: Plan) -> list[PlanFact]:
    """Every fact of a plan, in the order of reading."""
    known = known_of(plan)
    plain = (
        PlanFact(TOPICS[topic], text) for topic, tell in PLAIN.items() for text in tell(plan, known)
    )
    systems = [*_systems(plan, known), *_settings(plan)]
    return [*_scale(plan), *systems, *_workloads(plan), *plain, *_table_options(plan)]


def on_topic(facts: Iterable[PlanFact], topic: str) -> Text:
    """All facts under a topic as one text; empty without any."""
    return listed((fact.text for fact in facts if fact.topic == topic), "; ")


UNKNOWN_PROGRAM: Final = say("programs or a machine that dbdyno does not know")
PASSWORD: Final = say("a password of yours is sent there")
REACHES: Final = say("may reach beyond the server: a file, an address, a program")
SQL: Final = say("statements that run with the rights of the server's administrator")
PROGRAM: Final = say("a Lua program, which runs with your rights")


def _scale(plan: Plan) -> list[PlanFact]:
    return [PlanFact(TOPICS["scale"], name(plan.scale))] if plan.scale else []


def _systems(plan: Plan, known: Known) -> Iterator[PlanFact]:
    first, shared = one_baseline(plan), _shared(plan)
    for keys, risk in _keys(shared):
        yield PlanFact(TOPICS["systems"], say("every system: {settings}", settings=keys), risk)
    for system in plan.systems:
        named = _named(system.label, system.reference)
        text = say("{system}, the baseline", system=named) if system.label == first else named
        risk = None if is_in_catalog(system.reference) else UNKNOWN_PROGRAM
        yield PlanFact(TOPICS["systems"], text, risk)
        for detail, risk in _details(system, shared, is_others=system.label in known[Fact.OTHERS]):
            text = say("{system}: {told}", system=system.label, told=detail)
            yield PlanFact(TOPICS["systems"], text, risk)


def _named(label: str, full_name: str) -> Text:
    return name(label if label == full_name else f"{label} = {full_name}")


def _shared(plan: Plan) -> Settings:
    """Settings that all systems have in common, if there are several."""
    first, *others = (system.settings for system in plan.systems)
    compared = compared_settings(plan)
    return {key: value for key, value in first.items() if others and key not in compared}


def _details(system: SystemPlan, shared: Settings, *, is_others: bool) -> Iterator[RiskyText]:
    """Facts of a system beyond its reference, each with its risk."""
    if system.topology.replicas:
        yield _replicas(system.topology), None
    if system.password_env or is_others:
        is_mysql = system.reference.strip().lower().startswith("mysql:")
        usual = ("MYSQL_PWD", "~/.my.cnf") if is_mysql else ("PGPASSWORD", "~/.pgpass")
        places = listed([system.password_env] if system.password_env else usual)
        yield say("password, if any, from {places}", places=places), PASSWORD
    yield from _keys({k: v for k, v in system.settings.items() if k not in shared})
    for workload, settings in system.workload_settings.items():
        for text, risk in _keys(settings):
            yield say("for {workload}: {settings}", workload=workload, settings=text), risk
    for sql in system.after_start:
        yield say("after the start: {sql}", sql=sql), SQL
    if system.notes:
        yield say("noted, not checked: {notes}", notes=_assigned(system.notes.items())), None


def _keys(settings: Settings) -> Iterator[RiskyText]:
    """Plain settings in one text, then each setting that may reach beyond the server."""
    every = [(key, one) for key, value in settings.items() for one in each_value(value)]
    if plain := [pair for pair in every if not reaches_beyond(*pair)]:
        yield _assigned(plain), None
    yield from ((_assigned([pair]), REACHES) for pair in every if reaches_beyond(*pair))


def _assigned(pairs: Iterable[tuple[str, object]]) -> Text:
    return listed(f"{key}={on_or_off(value)}" for key, value in pairs)


def _replicas(topology: TopologyPlan) -> Text:
    replicas = count(topology.replicas, "replica")
    if topology.replication == "semisync":
        return say(
            "{replicas}, semi-synchronous: a commit waits until one replica has it (in MySQL and "
            "MariaDB {after}, {most} at most)",
            replicas=replicas,
            after=topology.wait_point.replace("_", " "),
            most=seconds(topology.timeout_s),
        )
    if topology.replication == "group":
        return say(
            "{replicas} in a group: a commit waits until a majority agrees", replicas=replicas
        )
    return say("{replicas}, asynchronous: no commit waits for them", replicas=replicas)


def _settings(plan: Plan) -> Iterator[PlanFact]:
    """Settings of all systems: values of each axis, and the keys of values of its own."""
    for axis, values in axes(plan.settings).items():
        text = say("{axis}: {values}", axis=axis, values=listed(values))
        yield PlanFact(TOPICS["settings"], text)
        for value, keys in plan.settings.own.get(axis, {}).items():
            for assigned, risk in _keys(keys):
                text = say("{system}: {told}", system=f"{axis} {value}", told=assigned)
                yield PlanFact(TOPICS["settings"], text, risk)


def _workloads(plan: Plan) -> Iterator[PlanFact]:
    for workload in plan.workloads:
        named = _named(workload.label, workload.name)
        text = listed([named, _assigned(workload.options.items())] if workload.options else [named])
        yield PlanFact(TOPICS["workloads"], text, PROGRAM if workload.script else None)


def _compared(plan: Plan, _: Known) -> list[Text]:
    if one_baseline(plan) is not None:
        return []
    pairs = (pair.labels for pair in comparisons(plan))
    return [say("{system} against {baseline}", system=arm, baseline=first) for first, arm in pairs]


CLOSED: Final = (
    Sentence(phrase("closed loop of {levels}, without pauses"), Fact.BUSY),
    Sentence(
        phrase("closed loop of {levels}, which may pause between transactions of {resting}"),
        Fact.RESTING,
    ),
    Sentence(phrase("{levels}, as another tool recorded"), Fact.ELSEWHERE),
)
STATEMENTS: Final = {
    True: Sentence(phrase("prepared statements"), Fact.HERE),
    False: Sentence(phrase("no prepared statements"), Fact.HERE),
}


def _load(plan: Plan, known: Known) -> Iterator[Text]:
    load = plan.load
    levels, resting = _connections(load.threads), listed(known[Fact.RESTING])
    for loop in CLOSED if load.threads else ():
        yield from loop.of(known, levels=levels, resting=resting)
    over = count(load.connections, "connection")
    if load.rates:
        shares = listed(rate for rate in load.rates if share_of(rate))
        given = listed(rate for rate in load.rates if not share_of(rate))
        rates = [
            *(
                [say("{shares} of what the slower system sustains", shares=shares)]
                if shares
                else []
            ),
            *([say("{rates} transactions/s", rates=given)] if given else []),
        ]
        yield say("open loop of {rates}, over {connections}", rates=listed(rates), connections=over)
    if load.seeks_rates:
        yield say("open loop at rates around the limit, over {connections}", connections=over)
    if load.slo is not None:
        yield say(
            "to find: each system's highest rate with {metric} within {limit:g} ms",
            metric=metric_label(latency_of(plan)),
            limit=load.slo.limit_ms,
        )
    yield from STATEMENTS[plan.procedure.prepared_statements].of(known)
    if codes := plan.procedure.retry_errors:
        yield say("transactions are also retried after errors {codes}", codes=listed(codes))
    if load.generators > 1 and not plan.fleet.generators:
        yield say(
            "{generators} begin together, each a process with a part of the connections; "
            "percentiles are of all their requests",
            generators=count(load.generators, "generator"),
        )


def _connections(levels: Sequence[int]) -> Text:
    if len(levels) == 1:
        return count(levels[0], "connection")
    return say("{levels} connections", levels=listed(str(level) for level in sorted(levels)))


DATA: Final = (
    Sentence(phrase("{tables}, about {size}"), Fact.ROWS),
    Sentence(phrase("rows made by {scripts}, of unknown size"), Fact.SCRIPTED),
)
DISTRIBUTION: Final = {
    True: Sentence(phrase("{distribution}, the default of sysbench 1.0"), Fact.ROWS),
    False: Sentence(
        phrase(
            "{distribution}: results are not comparable with {default}, the default of sysbench 1.0"
        ),
        Fact.ROWS,
    ),
}
"""By agreement with sysbench's default."""


def _data(plan: Plan, known: Known) -> Iterator[Text]:
    tables = rows_in_tables(plan.dataset.tables, plan.dataset.rows)
    size, scripts = mebibytes(plan.dataset.bytes_about), listed(known[Fact.SCRIPTED])
    for data in DATA:
        yield from data.of(known, tables=tables, size=size, scripts=scripts)


def _table_options(plan: Plan) -> Iterator[PlanFact]:
    if options := plan.dataset.table_options:
        text = say("each CREATE TABLE ends with {options}", options=options)
        yield PlanFact(TOPICS["data"], text, SQL)


def rows_in_tables(tables: int, rows: int) -> Text:
    """A dataset in words: `4 tables of 100 rows`."""
    return say("{tables} of {rows}", tables=count(tables, "table"), rows=count(rows, "row"))


def _rows_drawn(plan: Plan, known: Known) -> list[Text]:
    distribution = plan.distribution.name
    sentence = DISTRIBUTION[distribution == SYSBENCH_DEFAULT]
    return sentence.of(known, distribution=distribution, default=SYSBENCH_DEFAULT)


def _network(plan: Plan, _: Known) -> list[Text]:
    client_ms, replica_ms = plan.network.client_ms, plan.network.replica_ms
    load = say("{ms:g} ms added to a round trip between load generator and server", ms=client_ms)
    copies = say("{ms:g} ms added to a round trip between primary and replicas", ms=replica_ms)
    return [load] * bool(client_ms) + [copies] * bool(replica_ms)


def _machines(plan: Plan, _: Known) -> Iterator[Text]:
    fleet, place = plan.fleet, plan.fleet.place
    if fleet.generators:
        machines = count(fleet.generators, "machine")
        yield _labelled(say("{machines} for the load", machines=machines), place.generators)
    if fleet.has_hosts:
        each = say("whole blocks on each machine")
        yield _labelled(each if fleet.spread else say("one machine for servers"), place.primary)


def _labelled(machines: Text, label: str) -> Text:
    return (
        say("{machines}, labelled {label}", machines=machines, label=label) if label else machines
    )


def _trial(plan: Plan, _: Known) -> Iterator[Text]:
    yield say(
        "{warmup} of warm-up, recorded but not counted, then a measured window of {window}",
        warmup=seconds(plan.trial.warmup_s),
        window=seconds(plan.trial.window_s),
    )
    design, chosen = plan.design, plan.design.chosen
    if design.time_s is None:
        return
    time, first = duration(design.time_s), count(FIRST_BLOCKS, "block")
    if chosen is None:
        yield say(
            "after the first {first}, dbdyno chooses the window and the number of blocks that "
            "fit best into {time}",
            first=first,
            time=time,
        )
        return
    yield say(
        "in the first {first}, throughput varied by {start:.1%} from block to block and by "
        "{second:.0%} from second to second; so dbdyno chose windows of {window} and at most "
        "{blocks}, which should give the narrowest interval in {time}",
        time=time,
        first=first,
        start=chosen.start_noise,
        second=chosen.second_noise,
        window=seconds(chosen.window_s),
        blocks=count(chosen.blocks, "block"),
    )


def _blocks(plan: Plan, _: Known) -> Iterator[Text]:
    blocks = count(plan.design.blocks, "block")
    if plan.design.budget_s is not None:
        budget = duration(plan.design.budget_s)
        blocks = say(
            "{blocks}, as many as are expected to fit into {time}", blocks=blocks, time=budget
        )
    yield say(
        "{blocks}: in each, all systems and load levels run close together in time, in random "
        "order (seed {seed}), and all systems get the same requests",
        blocks=blocks,
        seed=plan.seed,
    )
    if plan.design.stop == "decided":
        yield say(
            "fewer if every verdict has enough data before; intervals are wide enough to be "
            "correct whenever the run ends"
        )


RESTARTED: Final = {
    "block": Sentence(phrase("server restarted for each system and setting of a block"), Fact.OURS),
    "cell": Sentence(phrase("server restarted for every cell"), Fact.OURS),
}
"""By values of `restart`."""
RESTORED: Final = {
    "start": Sentence(phrase("dataset restored before each start"), Fact.OURS),
    "once": Sentence(phrase("dataset restored once, so it grows from trial to trial"), Fact.OURS),
}
"""By values of `fresh_data`."""
CACHES: Final = Sentence(phrase("operating system's caches dropped before each start"), Fact.OURS)
BINLOGS: Final = Sentence(phrase("binary logs purged before each trial"), Fact.OURS)
QUIESCED: Final = Sentence(
    phrase(
        "a wait of up to {most} between trials, until changed pages are written and old row "
        "versions are purged"
    ),
    Fact.OURS,
)
SAMPLED: Final = Sentence(
    phrase("stacks of the server's threads sampled in every trial, which slows it"), Fact.HERE
)
OTHERS: Final = Sentence(
    phrase("dbdyno does not control the servers of {systems}: it does not restart or restore them"),
    Fact.OTHERS,
)


def _procedure(plan: Plan, known: Known) -> list[Text]:
    procedure = plan.procedure
    steps = {
        RESTARTED[procedure.restart]: True,
        RESTORED[procedure.fresh_data]: True,
        CACHES: procedure.drop_caches,
        BINLOGS: procedure.purge_binlogs,
        QUIESCED: procedure.settle_cap_s > 0,
        SAMPLED: procedure.sample_stacks,
        OTHERS: True,
    }
    values = {"most": seconds(procedure.settle_cap_s), "systems": listed(known[Fact.OTHERS])}
    return [
        text for step, is_taken in steps.items() if is_taken for text in step.of(known, **values)
    ]


def _margin(plan: Plan, _: Known) -> list[Text]:
    metrics = [
        *([PRIMARY] if plan.load.threads else []),
        *([latency_of(plan)] if plan.load.rates else []),
        *([RATE_AT_LIMIT] if plan.load.slo else []),
    ]
    margin, metric = share(plan.design.margin), listed(map(metric_label, metrics))
    return [say("a difference of {margin} in {metric} matters", margin=margin, metric=metric)]


def _disturbance(plan: Plan, known: Known) -> list[Text]:
    limit = plan.design.disturbance_max
    if limit >= 1:
        return []
    text = say(
        "if other processes and other virtual machines took more than {limit} of the host's "
        "CPU, a trial does not count, and its cell is measured again on all systems",
        limit=share(limit),
    )
    if not known.has(Fact.OTHERS):
        return [text]
    seen = say(
        "for {systems} only the hypervisor's part counts, unless the server is a process of this "
        "machine",
        systems=listed(known[Fact.OTHERS]),
    )
    return [text, seen]


PLAIN: Final[Mapping[str, Callable[[Plan, Known], Iterable[Text]]]] = {
    "compared": _compared,
    "load": _load,
    "data": _data,
    "row choice": _rows_drawn,
    "network": _network,
    "machines": _machines,
    "trial": _trial,
    "blocks": _blocks,
    "procedure": _procedure,
    "margin": _margin,
    "disturbance": _disturbance,
}
"""Facts without a risk, by topic."""
