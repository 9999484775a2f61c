"""What was done between the measured windows, how often, and how long it took.

A reader who repeats the experiment needs it, and so does one who asks why a run took so long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from dbdyno.measurement import Measurement, Step
from dbdyno.plan import Plan
from dbdyno.report.numbers import number, seconds
from dbdyno.report.parts import Column, Table
from dbdyno.report.trials import systems_of


def asked(plan: Plan) -> Iterator[str]:
    """What the plan asks for beyond a restart on restored data, a sentence each."""
    procedure, trial = plan.procedure, plan.trial
    if procedure.fresh_data == "once":
        yield "The dataset is restored before the run's first trial only; later ones find it grown."
    if procedure.drop_caches:
        yield "The operating system's caches are dropped before each start."
    if procedure.purge_binlogs:
        yield "Binary logs are purged before each trial."
    if procedure.settle_cap_s > 0:
        yield (
            "Between two trials on one server it is waited until changed pages are written and old "
            f"row versions are purged, {seconds(procedure.settle_cap_s)} at most."
        )
    if trial.until_steady:
        yield (
            "Before each trial its load runs until the rate is steady (MSER-5 and change points "
            f"with long-run variance), {seconds(trial.warmup_cap_s)} at most."
        )


def table(plan: Plan, measurements: Sequence[Measurement]) -> Table | None:
    """Every kind of step on every system; None where no step was kept."""
    rows = []
    for system in systems_of(plan, measurements):
        taken: dict[str, list[Step]] = {}
        for measurement in measurements:
            if measurement.trial.system == system:
                for step in measurement.procedure:
                    taken.setdefault(step.name, []).append(step)
        rows += [(system, name, *_row(steps)) for name, steps in taken.items()]
    if not rows:
        return None
    columns = (
        Column("System"),
        Column("Step"),
        Column("Times", numeric=True),
        Column("Not done", numeric=True),
        Column("Median s", numeric=True),
        Column("Longest s", numeric=True),
        Column("In all s", numeric=True),
    )
    return Table("Steps before trials, and their time", columns, tuple(rows))


def _row(steps: Sequence[Step]) -> tuple[str, ...]:
    took = [step.seconds for step in steps]
    undone = sum(not step.done for step in steps)
    return (
        str(len(steps)),
        str(undone),
        *(number(value, 1) for value in (median(took), max(took), sum(took))),
    )
