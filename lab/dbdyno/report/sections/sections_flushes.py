"""Section on what stood behind each commit: flushes of the log, as server and disks counted them.

Settings are promises; these are the deeds. A table for all cells whose events always write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.checks.checks_durable import disk_flushes, log_syncs
from dbdyno.judge.checks.invariant import always_writes
from dbdyno.judge.checks.promises import commit_is_waited_for
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.cost import Source, per_event
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import number
from dbdyno.report.parts import Column, Paragraph, Section, Table
from dbdyno.report.rows import Attempt, cells_of, sound, systems_of

HEADING: Final = say("Flushes per commit")
DECIMALS: Final = 3
SOURCES: Final = (
    Source(say("Syncs of the log, server's count"), log_syncs),
    Source(say("Flushes, disks' count"), disk_flushes),
)


def flushes(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """One row for each cell and system; no section where no workload always writes."""
    measurements = [attempt.measurement for attempt in attempts]
    rows = []
    for cell in cells_of(plan, measurements):
        for system in systems_of(plan, measurements):
            trials = [m for m in sound(attempts, cell, system) if always_writes(m, plan)]
            if trials:
                rows.append((name(cell.title), name(system), *_row(trials)))
    columns = (
        Column(say("Cell")),
        Column(say("System")),
        Column(say("Promised before the answer")),
        Column(say("Least that can keep it"), numeric=True),
        *(Column(source.name, numeric=True) for source in SOURCES),
    )
    head = Paragraph(
        say(
            "A connection waits for its commit, so one flush can answer one commit of each "
            "connection at most: with N connections a durable commit takes 1/N flushes or more. "
            "The disks' count is the whole machine's."
        )
    )
    caption = say("Per committed event, total over total of all sound trials")
    return Section(HEADING, (head, Table(caption, columns, tuple(rows))) if rows else ())


def _row(trials: Sequence[Measurement]) -> tuple[Text, ...]:
    waited = {commit_is_waited_for(trial.server.settings) for trial in trials}
    promised = say("yes") if waited == {True} else say("no") if waited == {False} else say("both")
    return (
        promised,
        number(1 / trials[0].trial.cell.threads, DECIMALS),
        *(number(per_event(source, trials), DECIMALS) for source in SOURCES),
    )
