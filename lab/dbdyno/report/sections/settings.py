"""Sections on conditions besides the load: settings and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement.measurement import Measurement, loads_of
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact, Known, known_of
from dbdyno.plan.plan import Plan, ProcedurePlan
from dbdyno.plan.settings import axes
from dbdyno.report.numbers import NONE, mebibytes, seconds, value_of, what
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table, table
from dbdyno.report.rows import SettingsComparison, compare, systems_of
from dbdyno.report.sections.limits import blocks_run, pools_of
from dbdyno.report.sections.method import added_delays, connections
from dbdyno.report.tell.durability import promises
from dbdyno.report.tell.terms import Sentence

DIFFERENCES: Final = say("Settings that differ")
ROWS_OPEN_MAX: Final = 40
"""A longer table is folded."""


def settings(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """Differences in the variables reported by the servers."""
    compared = compare(measurements, systems_of(plan, measurements))
    if len(compared.systems) < 2:
        return Section(DIFFERENCES, ())
    parts: list[Part] = [Paragraph(_summary(compared))]
    if compared.differing:
        caption = say("Variables with different values")
        parts.append(_table(caption, compared, compared.differing))
    if compared.partial:
        caption = say("Variables that not every system has")
        parts.append(_table(caption, compared, compared.partial))
    if compared.ignored:
        parts.append(
            Paragraph(
                say(
                    "Ignored, because they tell instances apart and not configurations: {names}.",
                    names=listed(compared.ignored),
                )
            )
        )
    return Section(DIFFERENCES, tuple(parts))


def _summary(comparison: SettingsComparison) -> Text:
    return say(
        "Read back from the running servers: {different} with different values, {partial} that not "
        "every system has, {equal} alike everywhere, {ignored} ignored.",
        different=count(len(comparison.differing), "variable"),
        partial=len(comparison.partial),
        equal=comparison.equal,
        ignored=len(comparison.ignored),
    )


def _table(
    caption: Text, comparison: SettingsComparison, rows: Sequence[tuple[Text, ...]]
) -> Table:
    columns = (Column(say("Variable")), *(Column(name(system)) for system in comparison.systems))
    return Table(caption, columns, tuple(rows), folded=len(rows) > ROWS_OPEN_MAX)


def environment(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> Section:
    """The machine and its software, and which malloc each system's server used."""
    rows = [(what(feature), value_of(value)) for feature, value in run.environment.items()]
    for label in systems_of(plan, measurements):
        seen = dict.fromkeys(m.server.allocator for m in measurements if m.trial.system == label)
        if allocators := [value_of(allocator) for allocator in seen if allocator]:
            rows.append((say("memory allocator of {system}", system=label), listed(allocators)))
    if apart := [one for m in measurements for one in m.engine.apart]:
        kept = say(
            "known to ±{within:.1f} ms or better, changed by {changed:.1f} ms at most in a trial",
            within=max(one.clock_ms for one in apart),
            changed=max(abs(one.clock_change_ms) for one in apart),
        )
        rows.append((say("clocks of the generators' machines"), kept))
    features = table(
        say("Where it ran"),
        rows,
        (say("What"), lambda row: row[0]),
        (say("Found"), lambda row: row[1]),
    )
    return Section(say("Environment"), (features,) if rows else ())


TOPICS: Final[Mapping[str, Text]] = {
    "systems": say("systems"),
    "data": say("data"),
    "durability": say("durability"),
    "load": say("load"),
    "settings": say("settings"),
    "procedure": say("procedure"),
    "repeats": say("repeats"),
    "machine": say("machine"),
    "storage": say("storage"),
    "window": say("window"),
}
"""Names of topics in plan files and reports; a plan file may have others."""
STORAGE: Final = ("storage_kind", "storage", "io_scheduler", "filesystem")
"""Features of the machine about the storage of the data."""


TESTED: Final[Mapping[str, tuple[Fact, ...]]] = {
    "systems": (),
    "data": (Fact.HERE,),
    "durability": (Fact.SETTINGS,),
    "load": (),
    "settings": (Fact.HERE,),
    "procedure": (Fact.HERE,),
    "repeats": (Fact.HERE,),
    "machine": (Fact.OURS,),
    "storage": (Fact.OURS,),
}
"""Topics of a run with the facts they need."""


def tested(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> dict[str, Text]:
    """The same topics of this run, as far as plan and measurements have them."""
    systems, known = systems_of(plan, measurements), known_of(plan, measurements)
    topics = {
        "systems": listed(_system(label, measurements) for label in systems),
        "data": _data(plan, measurements, known),
        "durability": _durability(systems, measurements),
        "load": _load(plan, known),
        "settings": _settings(plan),
        "procedure": _procedure(plan, known),
        "repeats": say(
            "windows of {window} × {blocks} × {loads}, every cell once in each block",
            window=seconds(plan.trial.window_s),
            blocks=count(blocks_run(plan, measurements), "block"),
            loads=count(max(1, loads_of(measurements)), "data load"),
        ),
        "machine": _machine(run, "cpu", "cores", "memory", "virtualisation"),
        "storage": _machine(run, *STORAGE),
    }
    return {topic: topics[topic] for topic in known.kept(TESTED)}


def _data(plan: Plan, measurements: Sequence[Measurement], known: Known) -> Text:
    """The plan's tables, the rows of scripts, and the memory for all."""
    tables = [rows_in_tables(plan.dataset.tables, plan.dataset.rows)] * known.has(Fact.ROWS)
    scripted = SCRIPTED.of(known, scripts=listed(known[Fact.SCRIPTED]))
    data = listed([*tables, *scripted], " and ")
    pools = listed(map(mebibytes, pools_of(measurements)), " / ")
    if not pools:
        return data
    if scripted:
        return say("{data}, buffer pool {pool}", data=data, pool=pools)
    size = mebibytes(plan.dataset.bytes_about)
    return say("{data}, about {size}, buffer pool {pool}", data=data, size=size, pool=pools)


SCRIPTED: Final = Sentence(phrase("the rows of {scripts}"), Fact.SCRIPTED)


def rows_in_tables(tables: int, rows: int) -> Text:
    """A dataset in words: `4 tables of 100 rows`."""
    return say("{tables} of {rows}", tables=count(tables, "table"), rows=count(rows, "row"))


def _durability(systems: Sequence[str], measurements: Sequence[Measurement]) -> Text:
    """Promises of the settings for a commit, by system where they differ."""
    promised = {
        system: listed(
            dict.fromkeys(
                promise
                for measurement in measurements
                if measurement.trial.system == system
                for promise in promises(measurement.server.settings)[:2]
            )
        )
        for system in systems
    }
    known = {system: told for system, told in promised.items() if told}
    if not known:
        return NONE
    if len(set(known.values())) == 1:
        return next(iter(known.values()))
    return listed(
        (say("{system}: {told}", system=system, told=told) for system, told in known.items()), "; "
    )


def _system(label: str, measurements: Sequence[Measurement]) -> Text:
    seen = dict.fromkeys(m.server.version for m in measurements if m.trial.system == label)
    versions = listed((version for version in seen if version), " and ")
    if not versions or versions in label:
        return name(label)
    return say("{system} ({versions})", system=label, versions=versions)


STATEMENTS: Final = {
    True: Sentence(phrase("prepared statements"), Fact.HERE),
    False: Sentence(phrase("no prepared statements"), Fact.HERE),
}


def _load(plan: Plan, known: Known) -> Text:
    levels = [
        *([connections(plan.load.threads)] if plan.load.threads else []),
        *(_rates(plan) if plan.load.is_open else []),
    ]
    names = listed(workload.label for workload in plan.workloads)
    statements = STATEMENTS[plan.procedure.prepared_statements].of(known)
    return listed([*levels, names, *statements], "; ")


def _rates(plan: Plan) -> list[Text]:
    rates = listed(plan.load.rates)
    if rates:
        return [say("{rates} events/s", rates=rates)]
    return [say("rates around a latency limit")]


def _settings(plan: Plan) -> Text:
    varied = (
        say("{axis}: {values}", axis=axis, values=listed(values))
        for axis, values in axes(plan.settings).items()
    )
    return listed([*varied, *added_delays(plan)], "; ") or say("as the systems have them")


def _procedure(plan: Plan, known: Known) -> Text:
    trial, others = plan.trial, listed(known[Fact.OTHERS])
    times = {"warmup": seconds(trial.warmup_s), "window": seconds(trial.window_s)}
    timing = say("warm-up {warmup}, window {window}", **times)
    steps = [text for step in _steps(plan.procedure) for text in step.of(known, others=others)]
    return listed([listed(steps), timing], "; ")


STEPS: Final = {
    "block": Sentence(phrase("server restarted for each setting of a block"), Fact.OURS),
    "cell": Sentence(phrase("server restarted for each cell"), Fact.OURS),
    "start": Sentence(phrase("on a restored dataset"), Fact.OURS),
    "drop_caches": Sentence(phrase("caches dropped"), Fact.OURS),
    "purge_binlogs": Sentence(phrase("binary logs purged"), Fact.OURS),
    "others": Sentence(
        phrase("servers of others, neither restarted nor restored: {others}"), Fact.OTHERS
    ),
}
"""Steps before trials, by keys and values of the plan."""


def _steps(procedure: ProcedurePlan) -> list[Sentence]:
    """Steps repeated before trials."""
    switches = [key for key in ("drop_caches", "purge_binlogs") if getattr(procedure, key)]
    keys = [procedure.restart, procedure.fresh_data, *switches, "others"]
    return [STEPS[key] for key in keys if key in STEPS]


def _machine(run: RunFacts, *features: str) -> Text:
    seen = (value_of(run.environment[one]) for one in features if one in run.environment)
    return listed(seen) or NONE
