"""Sections on what the work took: costs of a transaction, the machine while it was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Final

from dbdyno.cost import COSTS, Cost, per_event, source_of
from dbdyno.measurement import Cell, Measurement
from dbdyno.measurement_watch import WatchSample
from dbdyno.plan import Plan
from dbdyno.report.numbers import NONE, count, number
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table
from dbdyno.report.trials import Attempt, cells_of, sound, systems_of

Read = Callable[[WatchSample], float | None]
MACHINE: Final[tuple[tuple[str, int, Read], ...]] = (
    ("user", 2, lambda s: s.host_cpu_user),
    ("system", 2, lambda s: s.host_cpu_system),
    ("I/O wait", 2, lambda s: s.host_cpu_iowait),
    ("stolen", 2, lambda s: s.host_cpu_steal),
    ("idle", 2, lambda s: s.host_cpu_idle),
    ("waits for CPU, %", 1, lambda s: _percent(s.pressure_cpu_some)),
    ("waits for I/O, %", 1, lambda s: _percent(s.pressure_io_some)),
    ("waits for memory, %", 1, lambda s: _percent(s.pressure_memory_some)),
    ("disk read, MB/s", 2, lambda s: s.disk_read_bytes_per_s / 1e6),
    ("disk written, MB/s", 2, lambda s: s.disk_written_bytes_per_s / 1e6),
    ("disk flushes/s", 1, lambda s: s.disk_flushes_per_s),
    ("server RSS, MB", 0, lambda s: s.server_rss_bytes / 1e6),
)
"""Columns of the machine's table: heading, decimals, what is read off a sample."""


def costs(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """One table for each cell: what one transaction cost on each system."""
    measurements = [attempt.measurement for attempt in attempts]
    systems = systems_of(plan, measurements)
    tables = [
        _cell_table(cell, systems, {s: sound(attempts, cell, s) for s in systems})
        for cell in cells_of(plan, measurements)
        if any(sound(attempts, cell, system) for system in systems)
    ]
    if not tables:
        return Section("Costs per transaction", ())
    head = Paragraph(
        "What one transaction took in the measured window, total over total of all sound trials; "
        "in brackets the lowest and the highest trial. Systems are counted by the same counter "
        "where all of them have it; docs/costs.md says what each counter leaves out."
    )
    watched: list[Part] = [Paragraph(text) for text in _cost_of_watching(attempts)]
    return Section("Costs per transaction", (head, *tables, *watched))


def _cell_table(cell: Cell, systems: Sequence[str], trials: dict[str, list[Measurement]]) -> Table:
    columns = (
        Column("Cost"),
        Column("Unit"),
        *(Column(system, numeric=True) for system in systems),
        Column("Counted by"),
    )
    rows = (_row(cost, [trials[system] for system in systems]) for cost in COSTS)
    return Table(cell.title, columns, tuple(row for row in rows if row))


def _row(cost: Cost, groups: Sequence[list[Measurement]]) -> tuple[str, ...] | None:
    """The cost on each system; None where nobody counted it."""
    common = source_of(cost, [measurement for group in groups for measurement in group])
    sources = [common or source_of(cost, group) for group in groups]
    values = [
        _with_range(cost, group, [per_event(source, part) for part in (group, *_each(group))])
        if source
        else NONE
        for source, group in zip(sources, groups, strict=True)
    ]
    if all(value == NONE for value in values):
        return None
    names = dict.fromkeys(source.name for source in sources if source)
    return (cost.label, cost.unit, *values, "; ".join(names))


def _each(group: Sequence[Measurement]) -> list[list[Measurement]]:
    return [[measurement] for measurement in group]


def _with_range(cost: Cost, group: Sequence[Measurement], values: list[float | None]) -> str:
    whole, *single = values
    known = [value for value in single if value is not None]
    text = number(whole, cost.decimals)
    if len(group) < 2 or len(known) < 2:
        return text
    low, high = number(min(known), cost.decimals), number(max(known), cost.decimals)
    return text if low == high else f"{text} ({low}–{high})"


def _cost_of_watching(attempts: Sequence[Attempt]) -> list[str]:
    """What the readings themselves took, where it was measured."""
    measurements = [attempt.measurement for attempt in attempts]
    own = [s.watch_cpu for m in measurements for s in m.watch_measured if s.watch_cpu is not None]
    series = [m.status_seconds for m in measurements if m.status_seconds is not None]
    took_ms = [took for one in series for took in one.took_ms]
    cpu_ms = [one.server_cpu_ms for one in series if one.server_cpu_ms is not None]
    said = []
    if own:
        said.append(f"reading host and processes took {number(statistics.mean(own), 3)} cores")
    if took_ms:
        said.append(f"an answer of the server's counters took {_ms(took_ms)} in the median")
    if cpu_ms:
        said.append(f"and cost the server {_ms(cpu_ms)} of CPU before the load")
    told = [f"What watching cost, one reading a second: {', '.join(said)}."] if said else []
    troubles = [one.trouble for one in series if one.trouble]
    if troubles:
        told.append(f"Readings are missing in {count(len(troubles), 'trial')}: {troubles[0]}.")
    return told


def _ms(values: Sequence[float]) -> str:
    return f"{number(statistics.median(values))} ms"


def machine(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """The whole machine's means over the measured windows, a row for each cell and system."""
    measurements = [attempt.measurement for attempt in attempts]
    rows = []
    for cell in cells_of(plan, measurements):
        for system in systems_of(plan, measurements):
            trials = sound(attempts, cell, system)
            samples = [sample for trial in trials for sample in trial.watch_measured]
            if samples:
                means = (_mean(samples, read, decimals) for _, decimals, read in MACHINE)
                rows.append((cell.title, system, *means))
    columns = (
        Column("Cell"),
        Column("System"),
        *(Column(name, numeric=True) for name, *_ in MACHINE),
    )
    caption = "Means over the measured windows; CPU in cores, waits as shares of time (PSI, some)"
    table = Table(caption, columns, tuple(rows), folded=True)
    return Section("Machine", (table,) if rows else ())


def _mean(samples: Sequence[WatchSample], read: Read, decimals: int) -> str:
    values = [value for sample in samples if (value := read(sample)) is not None]
    return number(statistics.mean(values), decimals) if values else NONE


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100
