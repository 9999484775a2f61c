"""Did every trial begin as the plan says: at rest, with cold caches, steady, on the same rows?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.judge.checks.stored_texts import said_again
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import Said, listed, name, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.measurement_parts import Step
from dbdyno.plan.plan import Plan


def cell_cannot_run(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: this system cannot have the setting, or cannot bear the load; nothing was measured."""
    if not measurement.impossible:
        return None
    return on_trial(
        measurement,
        "cell-cannot-run",
        Level.VOID,
        name(measurement.failure) if measurement.failure else say("it could not be run"),
        say(
            "change the setting, the load or the system; --resume tries it again only with --retry"
        ),
    )


def step_undone(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: a step of the procedure could not be taken, or not to its end."""
    undone = [step for step in measurement.procedure if not step.done]
    if not undone:
        return None
    told = listed((_told(step) for step in undone), "; ")
    return on_trial(
        measurement,
        "step-undone",
        Level.DOUBTFUL,
        say("the trial began without what the plan asks for: {steps}", steps=told),
        say("give the lab the right to it or the step more time, or leave it out of the plan"),
    )


def _told(step: Step) -> Said:
    why = said_again(step.detail) if step.detail else say("no reason given")
    return say("{step}: {why}", step=said_again(step.name), why=why)


def no_steady_state(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the load was not steady when the trial began (method.md 1.a.3)."""
    warmed = measurement.until_steady
    if warmed is None or warmed.steady:
        return None
    return on_trial(
        measurement,
        "no-steady-state",
        Level.DOUBTFUL,
        say(
            "after {seconds:.0f} s of warm-up the load was not steady: {why}",
            seconds=warmed.seconds,
            why=said_again(warmed.why),
        ),
        say("raise trial.warmup_cap; if it keeps falling, look for growing data or a filling log"),
    )


def unequal_dataset(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Void: a system held other rows than the baseline (method.md 1.g, dataset equality).

    Digests were taken when the rows had been loaded; a system without one is not judged.
    """
    held: dict[str, set[str]] = {}
    for measurement in measurements:
        if measurement.failure is None and measurement.dataset:
            held.setdefault(measurement.trial.system, set()).add(measurement.dataset)
    baseline = plan.systems[0].label
    wanted = held.get(baseline, set())
    for system, found in held.items():
        if not wanted or (found == wanted and len(found) == 1):
            continue
        yield Finding(
            check="unequal-dataset",
            level=Level.VOID,
            evidence=say(
                "digest of the rows of {system}: {found}; of {baseline}: {wanted}",
                system=system,
                found=listed(sorted(found)),
                baseline=baseline,
                wanted=listed(sorted(wanted)),
            ),
            advice=say("remove the systems' folders in the workspace, and begin a new run"),
            system=system,
        )
