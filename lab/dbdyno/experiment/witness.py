"""Collects the evidence around trials, each piece when it disturbs nobody.

    before an arm, no server up    the machine's speed; once a run what the generator can do
    after a system's first trial   its query plans
    after a system's last trial    the rows that are left; then, of the baseline, whether twice
                                   the generator's threads are faster

Asking reads tables, and a reading before a trial would warm caches that are to be cold. Evidence
that cannot be had is left out; it never ends a run.
"""

from __future__ import annotations

from typing import Final

from dbdyno.errors import ServerError
from dbdyno.experiment import dataset_digest, doubled_threads, probe, query_plans
from dbdyno.experiment.context import Lab
from dbdyno.experiment.engine import ceiling
from dbdyno.measurement.measurement import Trial
from dbdyno.measurement.measurement_evidence import Evidence, Probe
from dbdyno.servers import endpoint_reference
from dbdyno.servers.base import Instance, Server

BLOCKS_MIN: Final = 3
"""No run ends as decided before that many blocks."""


def before_arm(lab: Lab, instance: Instance) -> Probe:
    """The machine's speed now; and once a run the generator's ceilings."""
    for workload in lab.plan.workloads:
        first = next((t for t in lab.left if t.cell.workload == workload.label), None)
        if first is not None and workload.label not in lab.ceilings:
            lab.progress.stage(f"{workload.label}: how fast the load is without a server")
            lab.ceilings[workload.label] = lab.makers.ceiling(lab.plan, first)
    is_ours = not endpoint_reference.is_endpoint(instance.spec.reference)
    return probe.take(instance.folder if is_ours else None)


def after_trial(lab: Lab, server: Server, trial: Trial, at_rest: Probe | None) -> Evidence:
    """What is known around a trial that has just ended well."""
    if trial.system not in lab.query_plans:
        lab.query_plans[trial.system] = query_plans.take(lab.plan, server)
    reached = lab.ceilings.get(trial.cell.workload)
    known = Evidence(
        probe=at_rest,
        ceiling_per_s=reached,
        ceiling_threads=None if reached is None else ceiling.THREADS,
        query_plans=lab.query_plans[trial.system],
    )
    if not _is_last(lab, trial):
        return known
    left = _left(lab, server)
    return known.model_copy(
        update={**left, "doubled_threads": doubled_threads.take(lab, server, trial)}
    )


def _is_last(lab: Lab, trial: Trial) -> bool:
    """Whether this may be the system's last trial: of the run, or of a block that may end it."""
    may_end = lab.plan.design.stop == "decided" and trial.block >= BLOCKS_MIN - 1
    place = (trial.system, trial.control)
    left = [
        one
        for one in lab.left
        if (one.system, one.control) == place and one != trial and lab.refusal(one) is None
    ]
    return not any(other.block == trial.block or not may_end for other in left)


def _left(lab: Lab, server: Server) -> dict[str, object]:
    """The rows that are there now, where it was told at the beginning which were loaded."""
    if not lab.dataset.get(server.label):
        return {}
    lab.progress.stage(f"{server.label}: counting the rows that are left")
    try:
        tables = dataset_digest.tables(lab.plan, server)
    except ServerError:
        return {}
    rows = {name: rows for name, rows, _ in tables}
    return {"rows_after": rows, "dataset_after": dataset_digest.digest(tables)}
