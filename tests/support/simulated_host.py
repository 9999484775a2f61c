"""A host whose trials take a known time and no server: what is left is the cost of spreading."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from dbdyno.fleet.hosts import Event, Host
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.plan import Plan
from dbdyno.store.reading import StoredRun
from support import making

TRIAL_S = 0.6


class SimulatedHost(Host):
    """Sleeps for each trial, then tells a made measurement of it."""

    def run_block(
        self, run: StoredRun, plan: Plan, trials: Sequence[Trial], later: Sequence[Trial]
    ) -> None:
        """As `Host.run_block`."""
        for trial in trials:
            self._events.put(Event(self.name, "begin", trial))
            time.sleep(TRIAL_S)
            made = self.measured(trial)
            self._events.put(
                Event(self.name, "end", trial, made.model_copy(update={"trial": trial}))
            )

    def measured(self, trial: Trial) -> Measurement:
        """What a trial sees."""
        return making.measurement(trial.system, threads=trial.cell.threads)


class DyingHost(SimulatedHost):
    """Others disturb each block, and its host dies behind the first one and hangs behind the
    second; repeats are quiet."""

    def run_block(
        self, run: StoredRun, plan: Plan, trials: Sequence[Trial], later: Sequence[Trial]
    ) -> None:
        """As `Host.run_block`."""
        SimulatedHost.run_block(self, run, plan, trials, later)
        if trials[0].repeat == 0:
            how = signal.SIGSTOP if trials[0].block else signal.SIGKILL
            os.kill(os.getpid(), how)

    def measured(self, trial: Trial) -> Measurement:
        """Half of four cores are others' at first."""
        others = 0.0 if trial.repeat else 2.0
        return making.measurement(trial.system, threads=trial.cell.threads, other_cpu=others)
