"""Sections on what was compared besides the load: settings and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dbdyno.judge.checks.settings import durability
from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.measurement import Measurement, loads_of
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import axes
from dbdyno.plan.systems import endpoints
from dbdyno.plan.workload import has_own_tables, scripts_of
from dbdyno.report.numbers import NONE, found, mebibytes, seconds, what
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table, table
from dbdyno.report.rows import SettingsComparison, compare, systems_of
from dbdyno.report.sections.limits import blocks_run, pools_of
from dbdyno.report.sections.method import added_delays, connections

DIFFERENCES: Final = say("Settings that differ")
ROWS_OPEN_MAX: Final = 40
"""A longer table is folded."""


def settings(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """What the servers themselves reported, where it is not the same for all systems."""
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


def _summary(found: SettingsComparison) -> Text:
    return say(
        "Read back from the running servers: {different} with different values, {partial} that not "
        "every system has, {equal} alike everywhere, {ignored} ignored.",
        different=count(len(found.differing), "variable"),
        partial=len(found.partial),
        equal=found.equal,
        ignored=len(found.ignored),
    )


def _table(caption: Text, found: SettingsComparison, rows: Sequence[tuple[Text, ...]]) -> Table:
    columns = (Column(say("Variable")), *(Column(name(system)) for system in found.systems))
    return Table(caption, columns, tuple(rows), folded=len(rows) > ROWS_OPEN_MAX)


def environment(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> Section:
    """The machine and its software, and which malloc each system's server used."""
    rows = [(what(feature), found(value)) for feature, value in run.environment.items()]
    for label in systems_of(plan, measurements):
        seen = dict.fromkeys(m.server.allocator for m in measurements if m.trial.system == label)
        if allocators := [found(allocator) for allocator in seen if allocator]:
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
"""What a plan file calls its topics, and a report its own; a plan file may have others."""
STORAGE: Final = ("storage_kind", "storage", "io_scheduler", "filesystem")
"""Features of the machine that say on what the data lay."""


def tested(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> dict[str, Text]:
    """The same topics of this run, as far as plan and measurements have them."""
    systems = systems_of(plan, measurements)
    if plan.is_imported:
        workloads = listed(workload.label for workload in plan.workloads)
        return {
            "systems": listed(map(name, systems)),
            "load": listed((connections(plan.load.threads), workloads), "; "),
        }
    return {
        "systems": listed(_system(label, measurements) for label in systems),
        "data": _data(plan, measurements),
        "durability": _durability(systems, measurements),
        "load": _load(plan),
        "settings": _settings(plan),
        "procedure": _procedure(plan),
        "repeats": say(
            "windows of {window} × {blocks} × {loads}, every cell once in each block",
            window=seconds(plan.trial.window_s),
            blocks=count(blocks_run(plan, measurements), "block"),
            loads=count(max(1, loads_of(measurements)), "data load"),
        ),
        "machine": _machine(run, "cpu", "cores", "memory", "virtualisation"),
        "storage": _machine(run, *STORAGE),
    }


def _data(plan: Plan, measurements: Sequence[Measurement]) -> Text:
    """The plan's tables, what scripts make beside them or alone, and the memory for all."""
    data = rows_in_tables(plan.dataset.tables, plan.dataset.rows)
    scripts = listed(scripts_of(plan.workloads))
    if scripts and has_own_tables(plan.workloads):
        data = say("{data} and those of {scripts}", data=data, scripts=scripts)
    elif scripts:
        data = say("the rows of {scripts}", scripts=scripts)
    pools = listed(map(mebibytes, pools_of(measurements)), " / ")
    if not pools:
        return data
    if scripts:
        return say("{data}, buffer pool {pool}", data=data, pool=pools)
    size = mebibytes(plan.dataset.bytes_about)
    return say("{data}, about {size}, buffer pool {pool}", data=data, size=size, pool=pools)


def rows_in_tables(tables: int, rows: int) -> Text:
    """A dataset in words: `4 tables of 100 rows`."""
    return say("{tables} of {rows}", tables=count(tables, "table"), rows=count(rows, "row"))


def _durability(systems: Sequence[str], measurements: Sequence[Measurement]) -> Text:
    """What the settings promise of a commit, of every system where they differ."""
    promised = {
        system: listed(
            dict.fromkeys(
                say("{what} {kept}", what=one.what, kept=one.kept)
                for measurement in measurements
                if measurement.trial.system == system
                for one in durability(measurement.server.settings)[:2]
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


def _load(plan: Plan) -> Text:
    levels = [
        *([connections(plan.load.threads)] if plan.load.threads else []),
        *(_rates(plan) if plan.load.is_open else []),
    ]
    names = listed(workload.label for workload in plan.workloads)
    statements = (
        say("prepared statements")
        if plan.procedure.prepared_statements
        else say("no prepared statements")
    )
    return listed([*levels, names, statements], "; ")


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


def _procedure(plan: Plan) -> Text:
    trial = plan.trial
    times = {"warmup": seconds(trial.warmup_s), "window": seconds(trial.window_s)}
    timing = say("warm-up {warmup}, window {window}", **times)
    return listed([listed(_steps(plan)), timing], "; ")


def _steps(plan: Plan) -> list[Text]:
    """What is done anew before trials, and on which systems nothing is."""
    procedure, others = plan.procedure, endpoints(plan.systems)
    if len(others) == len(plan.systems):
        return [say("servers of others, neither restarted nor restored")]
    steps = [
        say("server restarted for each setting of a block")
        if procedure.restart == "block"
        else say("server restarted for each cell")
    ]
    if procedure.fresh_data == "start":
        steps.append(say("on a restored dataset"))
    if procedure.drop_caches:
        steps.append(say("caches dropped"))
    if procedure.purge_binlogs:
        steps.append(say("binary logs purged"))
    if others:
        steps.append(say("none of this on {systems}", systems=listed(others)))
    return steps


def _machine(run: RunFacts, *features: str) -> Text:
    seen = (found(run.environment[one]) for one in features if one in run.environment)
    return listed(seen) or NONE
