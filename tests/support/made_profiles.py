"""Makes sampled stacks with chosen costs of functions, and trials that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import StackProfile
from support import making

CALLERS = "connection;handle_query;execute"
SAMPLES_PER_US = 10
"""Samples of a function that costs 1 µs per transaction."""
NOISE = 0.03
"""Standard deviation of a function's cost from trial to trial, as a share."""


def profile(
    costs_us: Mapping[str, float],
    random: np.random.Generator | None = None,
    sampler: Literal["perf", "gdb"] = "perf",
) -> StackProfile:
    """Stacks of functions with these costs; with `random`, costs and counts scatter."""
    counts = {function: us * SAMPLES_PER_US for function, us in costs_us.items()}
    if random is not None:
        counts = {
            function: int(random.poisson(count * random.lognormal(0, NOISE)))
            for function, count in counts.items()
        }
    return StackProfile(
        sampler=sampler,
        period_us=1000.0,
        window_s=10,
        events=1000 * SAMPLES_PER_US,
        sampler_cpu_s=0.5,
        stacks={f"{CALLERS};{function}": round(count) for function, count in counts.items()},
    )


def sampled_trials(
    baseline: StackProfile, system: StackProfile, blocks: int = 3, **same: Any
) -> list[Measurement]:
    """Sound trials of both systems in every block, each with its system's profile."""
    return [
        making.changed(one, profile=baseline if one.trial.system == making.A else system)
        for one in making.pairs((0.9,) * blocks, server_cpu_s=10.0, **same)
    ]
