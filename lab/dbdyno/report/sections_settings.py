"""Sections on what was compared besides the load: effective settings, and the machine."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.report.facts import RunFacts
from dbdyno.report.numbers import count
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table
from dbdyno.report.settings import Comparison, compare
from dbdyno.report.trials import systems_of

ROWS_OPEN_MAX = 40
"""A longer table is folded."""


def settings(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """What the servers themselves reported, where it is not the same for all systems."""
    found = compare(measurements, systems_of(plan, measurements))
    if len(found.systems) < 2:
        return Section("Settings that differ", ())
    parts: list[Part] = [Paragraph(_summary(found))]
    if found.differing:
        parts.append(_table("Variables with different values", found, found.differing))
    if found.partial:
        parts.append(_table("Variables that not every system has", found, found.partial))
    if found.ignored:
        parts.append(
            Paragraph(
                "Ignored, because they tell instances apart and not configurations: "
                f"{', '.join(found.ignored)}."
            )
        )
    return Section("Settings that differ", tuple(parts))


def _summary(found: Comparison) -> str:
    different = count(len(found.differing), "variable")
    return (
        f"Read back from the running servers: {different} with different values, "
        f"{len(found.partial)} that not every system has, {found.equal} alike everywhere, "
        f"{len(found.ignored)} ignored."
    )


def _table(caption: str, found: Comparison, rows: Sequence[tuple[str, ...]]) -> Table:
    columns = (Column("Variable"), *(Column(system) for system in found.systems))
    return Table(caption, columns, tuple(rows), folded=len(rows) > ROWS_OPEN_MAX)


def environment(run: RunFacts) -> Section:
    """The machine and its software."""
    rows = tuple((name, value) for name, value in run.environment.items())
    table = Table("Where it ran", (Column("What"), Column("Found")), rows)
    return Section("Environment", (table,) if rows else ())
