"""An arm of a block: one system's ladder of trials at one setting, on a fresh server.

The plan's procedure decides how data are restored and the server is prepared (`procedure`). After
a failed trial the next trial gets a restored dataset and a new server. A cell impossible on this
system (no thread pool, too few connections) is stored as void with the reason; the others run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dbdyno.errors import CellError, DbdynoError, LostError, ServerError, UsageError
from dbdyno.experiment.context import LoadRecord, RunContext
from dbdyno.experiment.data import disk
from dbdyno.experiment.engine.record import engine_facts_unknown
from dbdyno.experiment.engine.spec import prepared, start_keys
from dbdyno.experiment.evidence import after_trial, before_arm
from dbdyno.experiment.procedure import (
    Steps,
    before_start,
    before_trial,
    catch_up,
    start,
)
from dbdyno.experiment.trial import INTERRUPTED, OnInterval, run_trial
from dbdyno.experiment.watch.neighbours import busiest, disturbance_line
from dbdyno.measurement.disturbance import disturbed
from dbdyno.measurement.measurement import Measurement, ServerFacts, Trial
from dbdyno.measurement.parts import Probe, Step, TrialEvidence
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import Instance, Server
from dbdyno.servers.reference import is_endpoint

DIED: Final = "the server died before the trial; its last words: "


def run_arm(context: RunContext, instance: Instance, trials: Iterable[Trial]) -> None:
    """Run these trials, all of one system, setting and block, and store each as it ends.

    The next trial is taken from `trials` after the previous trial is stored.

    Raises:
        KeyboardInterrupt: stopped by the user; the running trial is stored as failed.
        LoadError, ServerError: no trial can run on this system; completed trials are stored.
    """
    arm = _Arm(context, instance)
    try:
        for trial in trials:
            measurement = arm.measure(trial)
            context.store.append(measurement)
            context.schedule.ended(trial)
            context.progress.end(trial, measurement, context.schedule.seconds_left(running=1))
            if measurement.failure == INTERRUPTED or context.interrupted:
                raise KeyboardInterrupt
            if context.plan.procedure.restart == "cell":
                arm.stop()
    except KeyboardInterrupt:
        arm.kill()
        raise
    finally:
        arm.stop()


@dataclass
class _Arm:
    """The server of an arm while it runs.

    Attributes:
        broken: reason of a failed start, by the workload with keys of its own; other trials with
            the same keys are not tried.
        probe: the machine's speed before the server was started.
    """

    context: RunContext
    instance: Instance
    server: Server | None = None
    broken: dict[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    steps: Steps = field(default_factory=Steps)

    def measure(self, trial: Trial) -> Measurement:
        """Prepare and run a trial; its measurement is returned in any case."""
        context, self.steps = self.context, Steps()
        schedule = context.schedule
        left_s = schedule.seconds_left(running=int(self.server is not None))
        context.progress.begin(trial, schedule.number, schedule.total, left_s)
        if (known := context.refusal(trial)) is not None:
            return self._void(trial, known, impossible=True)
        disk.check_during(context.folders)
        try:
            return self._measure(trial)
        except LostError as error:  # before or behind its load; what is lost is placed anew
            self._give_up()
            void = self._void(trial, reason(error), impossible=False)
            return void.model_copy(update={"lost": True})
        except UsageError as error:
            place = trial.cell.key if self._own_keys(trial) else trial.cell.setting
            context.refused[trial.system, place] = reason(error)
            return self._void(trial, reason(error), impossible=True)
        except CellError as error:
            context.refused[trial.system, trial.cell.key] = reason(error)
            return self._void(trial, reason(error), impossible=True)

    def _measure(self, trial: Trial) -> Measurement:
        context = self.context
        if self.server is not None and not self.server.alive():  # it died after the trial before
            self._give_up()
        server = self.server or self._start(trial)
        if server is None:
            return self._void(trial, self.broken[self._keys_of(trial)], impossible=False)
        began = time.monotonic()
        before_trial(context, self.instance, server, self.steps)
        catch_up(server, self.steps)
        context.forecast.prepared(time.monotonic() - began)
        if not server.alive():
            self._give_up()
            return self._void(trial, DIED + (server.last_words() or "none"), impossible=False)
        measured = run_trial(
            context.plan,
            trial,
            server,
            self._on_interval(trial),
            context.makers.command,
            context.makers.engine,
        )
        seen = disturbed(measured, context.plan.design.disturbance_max)
        if seen and (busy := busiest(server.pid)):
            context.progress.note(disturbance_line(seen, busy))
        evidence = TrialEvidence(probe=self.probe)
        if measured.failure or not measured.server.status:  # it answered nobody
            self._give_up()
        else:
            evidence = after_trial(context, server, trial, self.probe)
        load = context.loads.get(self.instance.spec.label, LoadRecord())
        return measured.model_copy(
            update={
                "evidence": evidence,
                "certificate": context.certificate,
                "procedure": (*self.steps.taken, *measured.procedure),
                "dataset": load.rows,
                "rows_short": dict(load.short),
                "load": load.name,
            }
        )

    def stop(self) -> None:
        """Stop the server, if any; an error while stopping is only shown.

        If the next start discards its data, the server is killed instead: writing back gigabytes of
        changed pages takes minutes, and would disturb the next system.
        """
        if self.server is None:
            return
        began = time.monotonic()
        server, self.server = self.server, None
        is_ours = not is_endpoint(self.instance.spec.reference)
        doing = "stopping the server" if is_ours else "logging out"
        self.context.progress.stage(f"{server.label}: {doing}")
        try:
            if server.alive() and self.context.is_restored_at_start(server.label):
                server.kill()
            else:
                server.stop()  # which says how one that is dead had ended
        except ServerError as error:
            self.context.as_loaded.discard(server.label)
            self.context.progress.note(f"{server.label}: {error.message}")
        self.context.forecast.added(time.monotonic() - began)

    def kill(self) -> None:
        """Kill the server, if any, so that an interrupt does not wait."""
        server, self.server = self.server, None
        if server is not None:
            server.kill()

    def _give_up(self) -> None:
        """Stop a server whose data may be damaged; the next start restores them."""
        self.context.as_loaded.discard(self.instance.spec.label)
        self.stop()

    def _start(self, trial: Trial) -> Server | None:
        """Start a server with the trial's setting; None, with the reason kept, if it does not
        start.

        If a system never started, with nothing varied, the error is raised: later starts would fail
        too.
        """
        context, setting = self.context, trial.cell.setting
        if self._keys_of(trial) in self.broken:
            return None
        of_setting = start_keys(context.plan, trial.system, setting, context.dataset_bytes)
        keys = {**self._own_keys(trial), **of_setting}
        self.probe = before_arm(context, self.instance)
        before_start(context, self.instance, self.steps)
        try:
            self.server = start(context, self.instance, keys, self.steps)
        except ServerError as error:
            context.as_loaded.discard(self.instance.spec.label)
            if not keys and trial.system not in context.started:
                raise
            self.broken[self._keys_of(trial)] = reason(error)
        else:
            context.started.add(trial.system)
        return self.server

    def _own_keys(self, trial: Trial) -> Mapping[str, SettingValue]:
        """Settings of the system in this workload only."""
        system = self.context.plan.system(trial.system)
        return system.workload_settings.get(trial.cell.workload, {})

    def _keys_of(self, trial: Trial) -> str:
        """The workload with settings of its own for this start, else an empty text."""
        return trial.cell.workload if self._own_keys(trial) else ""

    def _void(self, trial: Trial, why: str, *, impossible: bool) -> Measurement:
        steps = self.steps.taken
        return never_begun(self.context.plan, trial, why, impossible=impossible, steps=steps)

    def _on_interval(self, trial: Trial) -> OnInterval:
        context = self.context

        def report(interval: Mapping[str, Any]) -> None:
            left_s = context.schedule.seconds_left(into_s=interval["at_s"], running=1)
            context.progress.interval(trial, interval, left_s)
            disk.check_during(context.folders)

        return report


def never_begun(
    plan: Plan, trial: Trial, why: str, *, impossible: bool, steps: Sequence[Step] = ()
) -> Measurement:
    """The stored measurement of a trial that did not begin: a reason, no load.

    Args:
        impossible: True if it would always fail, so a resumed run leaves it out.
        steps: steps of the procedure completed for it.
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
    """An error as a sentence for a report: expectation, observation, remedy."""
    parts = (("wanted", error.wanted), ("found", error.found), ("try", error.hint))
    details = [f"{name} {text}" for name, text in parts if text]
    return "; ".join([error.message.rstrip("."), *details])
