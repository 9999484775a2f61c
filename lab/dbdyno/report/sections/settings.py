"""Sections on conditions besides the load: settings and machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.measurement import Measurement, loads_of
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, mebibytes, seconds, value_of, what
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table, table
from dbdyno.report.rows import SettingsComparison, compare, systems_of
from dbdyno.report.sections.limits import blocks_run, pools_of
from dbdyno.report.tell.durability import promises_of_commits
from dbdyno.report.tell.plan import PlanFact, facts_of, on_topic

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
                    "Not compared, because they differ between any two instances: {names}.",
                    names=listed(compared.ignored),
                )
            )
        )
    return Section(DIFFERENCES, tuple(parts))


def _summary(comparison: SettingsComparison) -> Text:
    return say(
        "Read back from the running servers: {different} with different values, {partial} that "
        "not every system has, {equal} the same everywhere, {ignored} not compared.",
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
            "known to within ±{within:.1f} ms, changed by at most {changed:.1f} ms during a trial",
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


STORAGE: Final = ("storage_kind", "storage", "io_scheduler", "filesystem")
"""Features of the machine about the storage of the data."""


OF_CLUSTER: Final = re.compile(r"(?:cluster\.|tidb_version\.(?=edition|git_commit_hash))(\w+)")
"""Settings that identify a TiDB: its build, and its nodes by their kind."""
TESTED: Final[Mapping[str, tuple[Fact, ...]]] = {
    "systems": (),
    "settings": (Fact.HERE,),
    "load": (),
    "data": (Fact.HERE,),
    "durability": (Fact.SETTINGS,),
    "network": (Fact.HERE,),
    "procedure": (Fact.HERE,),
    "repeats": (Fact.HERE,),
    "machine": (Fact.OURS,),
    "storage": (Fact.OURS,),
}
"""Topics of a run with the facts they need."""


def tested(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> dict[str, Text]:
    """Topics of this run, of its plan and as observed."""
    systems, known = systems_of(plan, measurements), known_of(plan, measurements)
    planned = facts_of(plan)
    topics = {topic: on_topic(planned, topic) for topic in TESTED} | {
        "systems": listed(_system(label, measurements) for label in systems),
        "load": listed(on_topic(planned, topic) for topic in ("workloads", "load")),
        "data": _data(planned, measurements),
        "durability": _durability(systems, measurements),
        "repeats": say(
            "{blocks}, {loads}; {warmup} of warm-up and a window of {window}",
            warmup=seconds(plan.trial.warmup_s),
            window=seconds(plan.trial.window_s),
            blocks=count(blocks_run(plan, measurements), "block"),
            loads=count(max(1, loads_of(measurements)), "data load"),
        ),
        "machine": _machine(run, "cpu", "cores", "memory", "virtualisation"),
        "storage": _machine(run, *STORAGE),
    }
    kept = {topic: topics[topic] for topic in known.kept(TESTED)}
    return {topic: text for topic, text in kept.items() if text and text != NONE}


def _data(planned: Iterable[PlanFact], measurements: Sequence[Measurement]) -> Text:
    """The planned rows, and the servers' memory for them."""
    data = on_topic(planned, "data")
    pools = listed(map(mebibytes, pools_of(measurements)), " / ")
    return say("{data}, buffer pool {pool}", data=data, pool=pools) if pools else data


def _durability(systems: Sequence[str], measurements: Sequence[Measurement]) -> Text:
    """Promises of the settings for a commit, by system where they differ."""
    promised: dict[str, Text] = {}
    for system in systems:
        own = [m.server.settings for m in measurements if m.trial.system == system]
        texts = dict.fromkeys(text for settings in own for text in promises_of_commits(settings))
        if any(own):
            promised[system] = listed(texts) if texts else say("unknown")
    if len(set(promised.values())) < 2:
        return next(iter(promised.values()), NONE)
    return listed(
        (say("{system}: {told}", system=system, told=told) for system, told in promised.items()),
        "; ",
    )


def _system(label: str, measurements: Sequence[Measurement]) -> Text:
    trials = [m for m in measurements if m.trial.system == label]
    if not trials:
        return say("{system} (never ran)", system=label)
    seen = dict.fromkeys(m.server.version for m in trials)
    parts = {
        f"{named[1].replace('_', ' ')} {value}": None
        for m in trials
        for key, value in m.server.settings.items()
        if (named := OF_CLUSTER.fullmatch(key))
    }
    versions = listed((version for version in seen if version), " and ")
    if not parts and (not versions or versions in label):
        return name(label)
    return say("{system} ({versions})", system=label, versions=listed((versions, *parts)))


def _machine(run: RunFacts, *features: str) -> Text:
    seen = (value_of(run.environment[one]) for one in features if one in run.environment)
    return listed(seen) or NONE
