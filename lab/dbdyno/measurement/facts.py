"""What a report must know about a run besides its plan, its measurements and the judgement on them.

The store knows these facts; the report does not read the store, so that a report can be written
from anything that has them: a stored run, an imported log, a test.
"""

from __future__ import annotations

from dbdyno.measurement.measurement_parts import Noun


class RunFacts(Noun):
    """One run as a report names it.

    Attributes:
        run_id: the run's name in its workspace.
        created_at: ISO 8601 time with offset.
        dbdyno_version: the dbdyno that ran it.
        plan_hash: `Plan.hash()` of the plan that was run.
        command: the command line that would run it again; holds no password.
        environment: machine, kernel, disk and so on, as `bench.environment` describes them.
        complete: every planned trial has a measurement without failure.
        trials_planned: trials the plan asks for.
    """

    run_id: str
    created_at: str
    dbdyno_version: str
    plan_hash: str
    command: str
    environment: dict[str, str]
    complete: bool
    trials_planned: int
