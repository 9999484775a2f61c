"""A host whose trials take a known time and no server: what is left is the cost of spreading."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dbdyno.fleet.hosts import Event, Host
from dbdyno.measurement.measurement import Trial
from dbdyno.plan.plan import Plan
from dbdyno.store.reading import StoredRun
from support import making

TRIAL_S = 0.6


class SimulatedHost(Host):
    """Sleeps for each trial, then tells a made measurement of it."""

    def run_block(self, run: StoredRun, plan: Plan, trials: Sequence[Trial]) -> None:
        """As `Host.run_block`."""
        for trial in trials:
            self._events.put(Event(self.name, "begin", trial))
            time.sleep(TRIAL_S)
            made = making.measurement(trial.system, threads=trial.cell.threads)
            self._events.put(
                Event(self.name, "end", trial, made.model_copy(update={"trial": trial}))
            )
