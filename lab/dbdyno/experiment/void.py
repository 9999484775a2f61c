"""What is stored of a trial that was never begun: why there is no number."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dbdyno.errors import DbdynoError
from dbdyno.experiment.engine.record import engine_facts_unknown
from dbdyno.experiment.engine.setting import prepared
from dbdyno.measurement.measurement import Measurement, ServerFacts, Trial
from dbdyno.measurement.measurement_parts import Step
from dbdyno.plan.plan import Plan


def never_begun(
    plan: Plan, trial: Trial, why: str, *, impossible: bool, steps: Sequence[Step] = ()
) -> Measurement:
    """A measurement with its reason and without a second of load.

    Args:
        impossible: the same would happen again, so that a resumed run leaves it out.
        steps: what had been done for it until then.
    """
    return Measurement(
        trial=trial,
        started_at=datetime.now().astimezone().isoformat("T", "milliseconds"),
        warmup_s=plan.trial.warmup_s,
        window_s=0.0,
        engine=engine_facts_unknown(plan.distribution.name, prepared(plan, trial.cell)),
        server=ServerFacts(version="", settings={}, status={}, cpu_s=0.0),
        intervals=(),
        failure=why,
        impossible=impossible,
        procedure=tuple(steps),
    )


def reason(error: DbdynoError) -> str:
    """An error as one sentence for a report: what was wanted, what was found, what to try."""
    parts = (("wanted", error.wanted), ("found", error.found), ("try", error.hint))
    told = [f"{name} {text}" for name, text in parts if text]
    return "; ".join([error.message.rstrip("."), *told])
