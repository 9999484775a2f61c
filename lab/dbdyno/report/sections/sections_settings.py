"""Sections on what was compared besides the load: effective settings, and the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.facts import RunFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.report.machine_words import found, what
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table
from dbdyno.report.rows import systems_of
from dbdyno.report.settings import Comparison, compare

HEADING: Final = say("Settings that differ")
ROWS_OPEN_MAX: Final = 40
"""A longer table is folded."""


def settings(plan: Plan, measurements: Sequence[Measurement]) -> Section:
    """What the servers themselves reported, where it is not the same for all systems."""
    compared = compare(measurements, systems_of(plan, measurements))
    if len(compared.systems) < 2:
        return Section(HEADING, ())
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
    return Section(HEADING, tuple(parts))


def _summary(found: Comparison) -> Text:
    return say(
        "Read back from the running servers: {different} with different values, {partial} that not "
        "every system has, {equal} alike everywhere, {ignored} ignored.",
        different=count(len(found.differing), "variable"),
        partial=len(found.partial),
        equal=found.equal,
        ignored=len(found.ignored),
    )


def _table(caption: Text, found: Comparison, rows: Sequence[tuple[Text, ...]]) -> Table:
    columns = (Column(say("Variable")), *(Column(name(system)) for system in found.systems))
    return Table(caption, columns, tuple(rows), folded=len(rows) > ROWS_OPEN_MAX)


def environment(run: RunFacts) -> Section:
    """The machine and its software."""
    rows = tuple((what(key), found(value)) for key, value in run.environment.items())
    table = Table(say("Where it ran"), (Column(say("What")), Column(say("Found"))), rows)
    return Section(say("Environment"), (table,) if rows else ())
