"""One arm of a block: one system's ladder of trials on a freshly started server.

The dataset is restored before each start, so that every arm begins with the same bytes. A trial
that failed may have left anything behind; the next one gets a restored dataset and a new server.
When the plan gives the generator cores of its own, the server is kept off them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from dbdyno.bench.engine_process import keep_on
from dbdyno.bench.lab import Lab
from dbdyno.bench.trial import INTERRUPTED, run_trial
from dbdyno.errors import ServerError
from dbdyno.measurement import Measurement, Trial
from dbdyno.servers.base import Instance, Server


def run_arm(lab: Lab, instance: Instance, trials: list[Trial]) -> None:
    """Runs these trials, all of one system and block, and stores each as it ends.

    Raises:
        KeyboardInterrupt: the user stopped it; the trial that was running is stored as failed.
        LoadError, ServerError: nothing can be run on this system; what was run is stored.
    """
    server: Server | None = None
    try:
        for trial in trials:
            if server is not None and not server.alive():  # it died after the trial before
                _stop(lab, server)
                server = None
            if server is None:
                server = _fresh(lab, instance)
            measurement = _run_and_store(lab, trial, server)
            if measurement.failure == INTERRUPTED:
                raise KeyboardInterrupt
            if measurement.failure or lab.plan.procedure.restart == "cell":
                _stop(lab, server)
                server = None
    finally:
        if server is not None:
            _stop(lab, server)


def _fresh(lab: Lab, instance: Instance) -> Server:
    began = time.monotonic()
    label = instance.spec.label
    lab.progress.stage(f"{label}: restoring the dataset")
    instance.restore()
    lab.progress.stage(f"{label}: starting the server")
    server = instance.start()
    if (pin := lab.plan.procedure.pin) and server.pid:
        keep_on(server.pid, sorted(os.sched_getaffinity(0) - set(pin)))
    lab.forecast.started(time.monotonic() - began)
    return server


def _stop(lab: Lab, server: Server) -> None:
    """Stops a server whose data is restored before it is used again: how it ends is only told."""
    began = time.monotonic()
    lab.progress.stage(f"{server.label}: stopping the server")
    try:
        server.stop()
    except ServerError as error:
        lab.progress.stage(f"{server.label}: {error.message}")
    lab.forecast.stopped(time.monotonic() - began)


def _run_and_store(lab: Lab, trial: Trial, server: Server) -> Measurement:
    def tell(interval: Mapping[str, Any]) -> None:
        left_s = lab.forecast.seconds_left(lab.left, into_s=interval["at_s"], running=1)
        lab.progress.interval(trial, interval, left_s)

    left_s = lab.forecast.seconds_left(lab.left, running=1)
    lab.progress.begin(trial, lab.number(), lab.total, left_s)
    measurement = run_trial(lab.plan, trial, server, tell, lab.makers.command)
    lab.store.append(measurement)
    lab.left.remove(trial)
    lab.progress.end(trial, measurement, lab.forecast.seconds_left(lab.left, running=1))
    return measurement
