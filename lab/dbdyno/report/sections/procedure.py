"""What was done between the measured windows, how often, and how long it took.

A reader who repeats the experiment needs it, and so does one who asks why a run took so long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from dbdyno.judge.checks.stored_texts import said_again
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.measurement_parts import Step
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import number, seconds
from dbdyno.report.parts import Column, Table
from dbdyno.report.rows import systems_of


def asked(plan: Plan) -> Iterator[Text]:
    """What the plan asks for beyond a restart on restored data, a sentence each."""
    procedure, trial = plan.procedure, plan.trial
    if procedure.fresh_data == "once":
        yield say(
            "The dataset is restored before the run's first trial only; later ones find it grown."
        )
    if procedure.drop_caches:
        yield say("The operating system's caches are dropped before each start.")
    if procedure.purge_binlogs:
        yield say("Binary logs are purged before each trial.")
    if procedure.settle_cap_s > 0:
        yield say(
            "Between two trials on one server it is waited until changed pages are written and old "
            "row versions are purged, {most} at most.",
            most=seconds(procedure.settle_cap_s),
        )
    if trial.until_steady:
        yield say(
            "Before each trial its load runs until the rate is steady (MSER-5 and change points "
            "with long-run variance), {most} at most.",
            most=seconds(trial.warmup_cap_s),
        )


def table(plan: Plan, measurements: Sequence[Measurement]) -> Table | None:
    """Every kind of step on every system; None where no step was kept."""
    rows = []
    for system in systems_of(plan, measurements):
        taken: dict[Text, list[Step]] = {}
        for measurement in measurements:
            if measurement.trial.system == system:
                for step in measurement.procedure:
                    taken.setdefault(said_again(step.name), []).append(step)
        rows += [(name(system), kind, *_row(steps)) for kind, steps in taken.items()]
    if not rows:
        return None
    columns = (
        Column(say("System")),
        Column(say("Step")),
        Column(say("Times"), numeric=True),
        Column(say("Not done"), numeric=True),
        Column(say("Median s"), numeric=True),
        Column(say("Longest s"), numeric=True),
        Column(say("In all s"), numeric=True),
    )
    return Table(say("Steps before trials, and their time"), columns, tuple(rows))


def _row(steps: Sequence[Step]) -> tuple[Text, ...]:
    took = [step.seconds for step in steps]
    undone = sum(not step.done for step in steps)
    return (
        name(f"{len(steps)}"),
        name(f"{undone}"),
        *(number(value, 1) for value in (median(took), max(took), sum(took))),
    )
