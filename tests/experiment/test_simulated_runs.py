"""Whole runs in a scripted world, seed by seed: whatever happens, nothing is lost or left behind.

A run is begun, ended by whatever the seed lets happen, and resumed in a new lab until it is
complete. After each end no server runs; what was stored stays as it was; at the end every trial of
the plan is stored once without failure, and each failure has a reason.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from dbdyno.errors import DbdynoError
from dbdyno.experiment import runner
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.measurement.disturbance import current
from dbdyno.store.store import Store
from support import making
from support.fakes import Progress
from support.world import Killed, World

SEEDS = int(os.environ.get("DBDYNO_RUN_SEEDS", "50"))
"""1,000 in `make nightly`."""
LABS_MAX = 60
PLAN = making.plan(threads=(8,), blocks=2, window_s=3, warmup_s=1)
TRIAL_S_MAX = 4 + 30 + 120 + 60
"""Warm-up, window, drain and the engine's patience, and a minute for all else."""
MEMORY = Path("/dev/shm")


@pytest.mark.timeout(1800)  # minutes for a thousand seeds, more of them on a slow machine
def test_nothing_is_lost_and_nobody_is_left() -> None:
    happened: Counter[str] = Counter()
    labs = 0
    for seed in range(SEEDS):
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            try:
                counts = lived_through(seed, Path(folder))
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise
            happened += counts
            labs += counts["lab"]
    del happened["lab"]
    sys.stdout.write(f"{SEEDS} runs, {labs} labs, lost or doubled: 0; {dict(happened)}\n")
    # The rarest of them comes once in some 200 runs.
    assert len(happened) == 12 or SEEDS < 1000, "every kind of misfortune came"


def lived_through(seed: int, folder: Path) -> Counter[str]:
    """A run through all that its seed has in store, to its end."""
    happened: Counter[str] = Counter()
    planned = {trial.place for trial in trials_of(PLAN, "")}
    with Store.open(folder) as store:
        run_id = store.create_run(PLAN, "dbdyno compare", {}, len(planned)).run_id
    kept: list[str] = []
    for lab in range(LABS_MAX):
        world = World(seed=seed * LABS_MAX + lab, chance=0.012 / (1 + lab))
        with Store.open(folder) as store, world.lab():
            began_s, before = world.clock.now_s, len(store.measurements(run_id))
            with suppress(DbdynoError, KeyboardInterrupt, Killed):
                stored_run = store.run(run_id)
                progress = Progress(hand_over=world.hand_over)
                runner.run(store, stored_run, folder, progress, world.makers)
        happened.update(world.happened)
        happened["lab"] += 1
        assert world.running() == [], world.happened
        with Store.open(folder) as store:
            every = store.measurements(run_id)
            finished = store.run(run_id).finished_at is not None
        suspended_s = 10_000 * sum(what == "suspend" for what in world.happened)
        tried = len(every) - before + 1
        assert world.clock.now_s - began_s <= suspended_s + tried * TRIAL_S_MAX
        keys = [f"{one.trial.key} {one.started_at}" for one in every]
        assert keys[: len(kept)] == kept, "what was stored stays"
        kept = keys
        sound = [one.trial.place for one in current(every) if one.failure is None]
        assert len(set(sound)) == len(sound), "no trial twice"
        assert all(one.failure.strip() for one in every if one.failure is not None)
        if finished and set(sound) == planned:
            return happened
    raise AssertionError(f"not complete after {LABS_MAX} labs: {happened}")
