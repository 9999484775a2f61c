"""Sections on resources: costs of a transaction, its functions, and the machine meanwhile."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from dbdyno.judge.beside.functions import Functions
from dbdyno.judge.checks.counts import always_writes
from dbdyno.judge.checks.durability import counted_syncs
from dbdyno.judge.checks.settings import commit_is_waited_for, durability
from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement.cost import COSTS, Cost, CountedBy, per_event, sources_of, while_counted
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.parts import WatchSample, mean_over_time
from dbdyno.measurement.syncs import disk_flushes
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, difference, number, percentage
from dbdyno.report.parts import Column, Figure, Paragraph, Part, Section, Table, numeric, table
from dbdyno.report.rows import Attempt, sound, sound_trials, systems_of
from dbdyno.report.tell.causes import against, alike
from dbdyno.report.tell.measured import cell_title, cost_label, cost_unit, counter

COSTS_HEADING: Final = say("Costs per transaction")
Read = Callable[[WatchSample], float | None]
MACHINE: Final[tuple[tuple[Text, int, Read], ...]] = (
    (say("user"), 2, lambda s: s.host_cpu_user),
    (say("system"), 2, lambda s: s.host_cpu_system),
    (say("I/O wait"), 2, lambda s: s.host_cpu_iowait),
    (say("stolen"), 2, lambda s: s.host_cpu_steal),
    (say("idle"), 2, lambda s: s.host_cpu_idle),
    (say("waits for CPU, %"), 1, lambda s: _percent(s.pressure_cpu_some)),
    (say("waits for I/O, %"), 1, lambda s: _percent(s.pressure_io_some)),
    (say("waits for memory, %"), 1, lambda s: _percent(s.pressure_memory_some)),
    (say("disk read, MB/s"), 2, lambda s: s.disk_read_bytes_per_s / 1e6),
    (say("disk written, MB/s"), 2, lambda s: s.disk_written_bytes_per_s / 1e6),
    (say("disk flushes/s"), 1, lambda s: s.disk_flushes_per_s),
    (say("server RSS, MB"), 0, lambda s: s.server_rss_bytes / 1e6 or None),
)
"""Lines of the machine's table: heading, decimals, value of a sample."""


def server_cpu_s(trial: Measurement) -> float:
    """CPU seconds of the server in the measured window; 0 where unknown."""
    return trial.server.cpu_s


CORES: Final[tuple[tuple[Text, Callable[[Measurement], float]], ...]] = (
    (say("server, cores busy"), server_cpu_s),
    (say("generator, cores busy"), lambda trial: trial.engine.cpu_s),
)


def costs(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """Costs of one transaction on each system, in a table for each cell."""
    measurements = [attempt.measurement for attempt in attempts]
    systems = systems_of(plan, measurements)
    tables = [
        _cell_table(cell, systems, {s: sound(attempts, cell, s) for s in systems})
        for cell in cells_of(plan, measurements)
        if any(sound(attempts, cell, system) for system in systems)
    ]
    if not tables:
        return Section(COSTS_HEADING, ())
    explained = say(
        "The table shows the cost of one transaction: the total of all valid trials divided by "
        "their number of transactions. Brackets hold the lowest and the highest trial. If all "
        "systems have a counter in common, this counter is used for all."
    )
    watched: list[Part] = [Paragraph(text) for text in _cost_of_watching(attempts)]
    return Section(COSTS_HEADING, (Paragraph(explained), *tables, *watched))


def _cell_table(cell: Cell, systems: Sequence[str], trials: dict[str, list[Measurement]]) -> Table:
    columns = (
        Column(say("Cost")),
        Column(say("Unit")),
        *(numeric(name(system)) for system in systems),
        Column(say("Counted by")),
    )
    rows = (_cost_row(cost, [trials[system] for system in systems]) for cost in COSTS)
    return Table(cell_title(cell), columns, tuple(row for row in rows if row))


def _cost_row(cost: Cost, groups: Sequence[list[Measurement]]) -> tuple[Text, ...] | None:
    """The cost on each system; None without a counter."""
    sources = sources_of(cost, groups)
    values = [
        _with_range(cost, source, group) if source else NONE
        for source, group in zip(sources, groups, strict=True)
    ]
    if all(value == NONE for value in values):
        return None
    counters = dict.fromkeys(counter(source) for source in sources if source)
    return (cost_label(cost), cost_unit(cost), *values, listed(counters, "; "))


def _with_range(cost: Cost, source: CountedBy, group: Sequence[Measurement]) -> Text:
    text = number(per_event(source, group), cost.decimals)
    single = (per_event(source, [one]) for one in group)
    known = [value for value in single if value is not None]
    if len(known) < 2:
        return text
    low, high = number(min(known), cost.decimals), number(max(known), cost.decimals)
    return text if low == high else name(f"{text} ({low}–{high})")


def _cost_of_watching(attempts: Sequence[Attempt]) -> list[Text]:
    """Time and CPU of the readings themselves, where it was measured."""
    measurements = [attempt.measurement for attempt in attempts]
    samples = [sample for m in measurements for sample in m.watch_measured]
    own = mean_over_time(samples, lambda sample: sample.watch_cpu)
    series = [m.status_seconds for m in measurements if m.status_seconds is not None]
    took_ms = [took for one in series for took in one.took_ms]
    cpu_ms = [one.server_cpu_ms for one in series if one.server_cpu_ms is not None]
    said = []
    if own is not None:
        cores = number(own, 3)
        said.append(say("reading the state of host and processes took {cores} cores", cores=cores))
    if took_ms:
        median = _ms(took_ms)
        said.append(say("reading the server's counters took {median} (median)", median=median))
    if cpu_ms:
        said.append(say("and {median} of the server's CPU before the load", median=_ms(cpu_ms)))
    return [*_watching(said), *_missing([one.trouble for one in series if one.trouble])]


def _watching(said: Sequence[Text]) -> Iterator[Text]:
    if said:
        costs = reduce(lambda one, more: say("{one}, {more}", one=one, more=more), said)
        yield say("Cost of dbdyno's own readings, once a second: {costs}.", costs=costs)


def _missing(troubles: Sequence[str]) -> Iterator[Text]:
    if troubles:
        yield say(
            "Readings are missing in {trials}: {trouble}.",
            trials=count(len(troubles), "trial"),
            trouble=troubles[0],
        )


def _ms(values: Sequence[float]) -> Text:
    return name(f"{number(statistics.median(values))} ms")


def machine(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """The whole machine's means over the measured windows, and who used its CPU."""
    cells: dict[Cell, dict[str, list[Measurement]]] = {}
    for cell, system, trials in sound_trials(plan, attempts):
        cells.setdefault(cell, {})[system] = trials
    explained = say(
        "Means over the measured windows. CPU is in cores. A wait is the share of time in which "
        "some task waited (PSI)."
    )
    tables = [_machine_table(cell, of) for cell, of in cells.items()]
    return Section(say("Machine"), (Paragraph(explained), *tables) if tables else ())


def _machine_table(cell: Cell, trials: dict[str, list[Measurement]]) -> Table:
    samples = {
        system: [sample for trial in made for sample in trial.watch_measured]
        for system, made in trials.items()
    }
    seen = [
        (heading, *(_mean(of, read, decimals) for of in samples.values()))
        for heading, decimals, read in MACHINE
    ]
    own = [
        (heading, *(number(cores(made, used_s)) for made in trials.values()))
        for heading, used_s in CORES
    ]
    columns = (Column(say("What")), *(numeric(name(system)) for system in trials))
    return Table(cell_title(cell), columns, (*own, *seen))


def cores(
    trials: Iterable[Measurement], used_s: Callable[[Measurement], float] = server_cpu_s
) -> float | None:
    """Cores that a process kept busy in the measured windows; None where its CPU is unknown."""
    known = [(used_s(trial), trial.window_s) for trial in trials if used_s(trial)]
    window_s = sum(window_s for _, window_s in known)
    return sum(used for used, _ in known) / window_s if window_s else None


def _mean(samples: Sequence[WatchSample], read: Read, decimals: int) -> Text:
    mean = mean_over_time(samples, read)
    return NONE if mean is None else number(mean, decimals)


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


# Flushes per commit, for workloads of writes only: the proof of the settings' promise.

FLUSHES_HEADING: Final = say("Flushes per commit")
DECIMALS: Final = 3
SOURCES: Final = (
    CountedBy("server", counted_syncs, while_counted),
    CountedBy("disks", disk_flushes),
)


PROMISED: Final[Mapping[bool | None, Text]] = {
    True: say("yes"),
    False: say("no"),
    None: say("unknown"),
}


def flushes(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """Flushes, in a row for each cell and system; empty without a workload of writes only."""
    rows = [
        (cell_title(cell), name(system), *_flush_row(writing))
        for cell, system, trials in sound_trials(plan, attempts)
        if (writing := [trial for trial in trials if always_writes(trial, plan)])
    ]
    columns = (
        Column(say("Cell")),
        Column(say("System")),
        Column(say("Settings promise durable commits")),
        numeric(say("Flushes needed at least")),
        numeric(say("Log syncs, counted by the server")),
        numeric(say("Flushes, counted by the disks")),
    )
    head = Paragraph(
        say(
            "Each connection waits for its commit, so one flush can serve at most one commit of "
            "each connection: with N connections a durable commit needs at least 1/N flushes. The "
            "last column counts the flushes of all the machine's disks, also those of other "
            "programs."
        )
    )
    caption = say(
        "Flushes per committed transaction: all flushes of the valid trials divided by their "
        "commits"
    )
    return Section(FLUSHES_HEADING, (head, Table(caption, columns, tuple(rows))) if rows else ())


def _flush_row(trials: Sequence[Measurement]) -> tuple[Text, ...]:
    settings = [trial.server.settings for trial in trials]
    waited = {commit_is_waited_for(one) if durability(one) else None for one in settings}
    return (
        PROMISED[waited.pop()] if len(waited) == 1 else say("both"),
        number(1 / trials[0].trial.cell.threads, DECIMALS),
        *(number(per_event(source, trials), DECIMALS) for source in SOURCES),
    )


# Functions, from stacks that were sampled while the servers worked.

OWN_COST: Final = {
    "perf": phrase("CPU µs per transaction in a function's own code: {cell}, {compared}"),
    "gdb": phrase("µs of all threads per transaction in a function's own code: {cell}, {compared}"),
}


def functions(judgement: Judgement, flames: Sequence[Figure]) -> Section:
    """Functions that differ, a table for each comparison in a cell, and the flame graphs."""
    heading, every = say("Functions"), judgement.functions
    if not every:
        return Section(heading, ())
    sampled = Paragraph(listed(_sampled(every), " "))
    return Section(heading, (sampled, *map(_functions_table, every), *flames))


def _sampled(every: Sequence[Functions]) -> Iterator[Text]:
    samplers = listed(dict.fromkeys(of_cell.sampler for of_cell in every))
    yield say("{samplers} sampled the servers' stacks during the trials.", samplers=samplers)
    shares = [of_cell.sampler_share for of_cell in every if of_cell.sampler_share is not None]
    if shares:
        used = percentage(max(shares))
        yield say("Sampling used {share} as much CPU as the servers.", share=used)
    yield say("So throughput and latency of these trials do not count as a measurement.")
    yield say(
        "Each table has the functions whose own code, without the functions that they call, surely "
        "costs more or less; its intervals hold together in 95\u00a0% of runs."
    )


def _functions_table(of_cell: Functions) -> Table | Paragraph:
    if not of_cell.functions:
        return Paragraph(alike(of_cell))
    cell, compared = cell_title(of_cell.cell), against(of_cell)
    return table(
        say(OWN_COST[of_cell.sampler], cell=cell, compared=compared),
        of_cell.functions,
        (say("Function"), lambda one: one.name),
        (numeric(name(of_cell.baseline)), lambda one: number(one.baseline_us)),
        (numeric(name(of_cell.system)), lambda one: number(one.system_us)),
        (
            numeric(say("Difference [95 %]")),
            lambda one: difference(one.difference_us, one.low_us, one.high_us),
        ),
        (numeric(say("Share of the whole difference")), lambda one: percentage(one.share)),
        (say("Called by"), lambda one: one.callers),
    )
