"""Runs a plan's pilot: before the first block, each system once, to find the rates of an open loop.

What is measured next follows from what the store holds (`plan_pilot`), so that an interrupted pilot
goes on where it was. Its trials are stored as any others, and are no part of the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dbdyno.errors import LoadError
from dbdyno.experiment.arm import run_arm
from dbdyno.experiment.context import Lab
from dbdyno.experiment.forecast import Forecast, pilot_s
from dbdyno.measurement.measurement import Trial
from dbdyno.plan.pilot import next_trial, piloting, resolved
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import setting_names
from dbdyno.servers.base import Instance


def run_pilot(lab: Lab, run_id: str, instances: Mapping[str, Instance]) -> Plan:
    """The plan with the rates that its pilot found, after measuring what the pilot still lacks.

    Raises:
        LoadError: a trial of the pilot failed; what was measured before is stored.
        KeyboardInterrupt: the user stopped it.
    """
    plan = resolved(lab.plan, lab.store.pilots(run_id))
    if not plan.load.needs_pilot or plan.load.pilot:
        return plan
    short = piloting(lab.plan)
    pilot = replace(lab, plan=short, left=[], forecast=Forecast(short))
    rest_s = lab.forecast.seconds_left(lab.left)
    for setting in setting_names(plan.settings):
        for system in plan.systems:
            trials = _trials(pilot, run_id, system.label, setting, rest_s)
            if next_trial(plan, run_id, lab.store.pilots(run_id), system.label, setting):
                run_arm(pilot, instances[system.label], trials)
    return resolved(lab.plan, lab.store.pilots(run_id))


def _trials(lab: Lab, run_id: str, system: str, setting: str, rest_s: float) -> Iterator[Trial]:
    """Each trial once that before it is stored, since what it saw decides.

    Args:
        rest_s: what the run takes after its pilot.
    """
    while True:
        pilots = lab.store.pilots(run_id)
        trial = next_trial(lab.plan, run_id, pilots, system, setting)
        if trial is None:
            return
        lab.left.append(trial)
        lab.forecast.later_s = rest_s + pilot_s(lab.plan, len(pilots) + 1)
        yield trial
        (*_, last) = lab.store.pilots(run_id)
        if last.failure is not None and not last.impossible:
            raise LoadError(
                "the pilot failed, so there are no rates to measure",
                wanted=f"a trial of {system} in {trial.cell.title}",
                found=last.failure,
                hint="look at the server's log; a resumed run repeats this trial, and rates given"
                " in events a second need no pilot",
            )
