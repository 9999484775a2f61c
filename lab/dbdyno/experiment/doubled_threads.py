"""Is a load faster with twice the generator's threads? Then the generator was what was measured.

Slices of load as `turns` says, on the baseline's server after its last trial of the run. It is load
beyond the plan, so it comes after everything that is measured with these data, and whatever goes
wrong with it costs no trial: then this is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dbdyno.errors import LoadError
from dbdyno.experiment.context import Lab
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.experiment.engine.record import measured_of
from dbdyno.experiment.engine.spec import run_spec
from dbdyno.experiment.turns import WARMUP_SHARE, highest_loads, slice_s, turns
from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.measurement.measurement_evidence import DoubledThreads, ThreadsSlice
from dbdyno.plan.controls import directory_of
from dbdyno.servers import endpoint_reference, process
from dbdyno.servers.base import Server
from dbdyno.stats.draw import draw

PATIENCE_S: Final = 60.0
"""How long the engine may take for logins and its end, beyond twice the slices' lengths."""


def take(lab: Lab, server: Server, trial: Trial) -> tuple[DoubledThreads, ...]:
    """What the run's workloads reach by turns, on the server of a trial that has ended well.

    Empty for all but the baseline, and where a later trial uses its data on. A workload is left out
    that was asked before, whose threads cannot be doubled, or whose load broke off. An interrupt is
    kept in `lab.interrupted`: the trial is to be stored before the run ends.
    """
    if trial.control or trial.system != lab.plan.systems[0].label or _is_used_on(lab, trial):
        return ()
    found: list[DoubledThreads] = []
    try:
        for cell in _left_to_ask(lab, trial):
            lab.progress.stage(f"{cell.workload}: is it faster with twice the load's threads?")
            found += _Turns(lab, server, trial.model_copy(update={"cell": cell})).seen()
    except KeyboardInterrupt:
        lab.interrupted = True
    lab.forecast.after_last_s = 0.0
    return tuple(found)


def _left_to_ask(lab: Lab, trial: Trial) -> list[Cell]:
    """The cells to be asked about on the trial's server; the run is read only if there are any."""
    refused = [key for system, key in lab.refused if system == trial.system]
    asked = highest_loads(lab.plan, trial.cell.setting, refused)
    stored = lab.store.measurements(trial.run_id) if asked else []
    known = {one.workload for m in stored for one in m.evidence.doubled_threads}
    return [cell for cell in asked if cell.workload not in known]


def _is_used_on(lab: Lab, trial: Trial) -> bool:
    """Whether a later trial begins on the rows that this one left."""
    is_endpoint = endpoint_reference.is_endpoint(lab.plan.systems[0].reference)
    if lab.plan.procedure.fresh_data == "start" and not is_endpoint:
        return False
    place = directory_of(trial.system, trial.control)
    left = [one for one in lab.left if one != trial]
    return any(directory_of(one.system, one.control) == place for one in left)


class _Turns:
    """The slices of one cell, which is the trial's."""

    def __init__(self, lab: Lab, server: Server, trial: Trial) -> None:
        self._lab, self._server, self._trial = lab, server, trial
        self._slice_s = slice_s(lab.plan)

    def seen(self) -> list[DoubledThreads]:
        """The slices, if all were run; one before them warms up and tells the usual threads."""
        cell = self._trial.cell
        usual = [one.threads for one in self._run([0])]
        if not usual or cell.threads < 2 * usual[0]:
            return []
        slices = self._run([times * usual[0] for times in turns(self._lab.plan)])
        if not slices:
            return []
        return [
            DoubledThreads(
                workload=cell.workload,
                connections=cell.threads,
                setting=cell.setting,
                slice_s=self._slice_s,
                slices=tuple(slices),
            )
        ]

    def _run(self, threads: Sequence[int]) -> list[ThreadsSlice]:
        """Slices with so many threads each (0: as many as the engine takes by itself); none where
        the load could not be run to its end."""
        specs = [self._spec(number, count) for number, count in enumerate(threads)]
        try:
            records = self._records(specs)
        except LoadError:
            return []
        slices = [slice_of(record) for record in records]
        return [one for one in slices if one is not None] if None not in slices else []

    def _spec(self, number: int, threads: int) -> dict[str, Any]:
        """A slice's load; its requests are drawn for itself, so that none is warm from another."""
        lab, cell = self._lab, self._trial.cell
        about = ("generator threads", threads == 0, cell.key)
        return {
            **run_spec(lab.plan, self._trial, self._server),
            "threads": threads,
            "seed": draw(lab.plan.seed, number, *about) >> 1,
            "warmup_s": self._slice_s * WARMUP_SHARE,
            "window_s": self._slice_s,
        }

    def _records(self, specs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The engine's records; none if they do not come in time."""
        lab, there = self._lab, process.inside(self._server.endpoint.namespace)
        with EngineProcess(
            "slices",
            {"slices": specs},
            system=self._trial.system,
            cores=lab.plan.procedure.pin,
            command=(*there, *lab.makers.command),
        ) as engine:
            told = engine.message(len(specs) * 2 * self._slice_s + PATIENCE_S)
        return [] if told is None else list(told.value["records"])


def slice_of(record: Mapping[str, Any]) -> ThreadsSlice | None:
    """What an engine's record says of a slice; None if it broke off or completed nothing."""
    measured = measured_of(record)
    events = sum(one.events for one in measured)
    if record.get("failure") is not None or events == 0:
        return None
    seconds = measured[-1].end_s - measured[0].start_s
    return ThreadsSlice(threads=record["threads"], rate_per_s=events / seconds)
