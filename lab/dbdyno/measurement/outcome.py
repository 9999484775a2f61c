"""Facts naming a run in a report."""

from __future__ import annotations

from dbdyno.measurement.parts import Noun


class RunFacts(Noun):
    """A run as a report names it: a stored run, a bundle, or a test's.

    Attributes:
        run_id: the run's name in its workspace.
        created_at: ISO 8601 time with offset.
        dbdyno_version: the dbdyno that ran it.
        plan_hash: `Plan.hash()` of the plan that was run.
        command: the command line that would run it again; holds no password.
        environment: machine, kernel, disk and so on, as `watch.environment` describes them.
        complete: every planned trial has a measurement without failure.
        trials_planned: number of planned trials.
    """

    run_id: str
    created_at: str
    dbdyno_version: str
    plan_hash: str
    command: str
    environment: dict[str, str]
    complete: bool
    trials_planned: int
