"""How long a block takes here, read off when trials began: what more blocks would cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import median

from dbdyno.measurement.measurement import Measurement


def block_seconds(measurements: Sequence[Measurement]) -> float | None:
    """Seconds from the beginning of one block to that of the next, in the median.

    With one block it is the time of its loads, which leaves out starts and restored data; None
    without a trial, or where nobody noted when trials began. A pause between two labs that worked
    on the run is one block of many, so the median does not mind it.
    """
    begun: dict[int, float] = {}
    for one in measurements:
        at_s = _at_s(one.started_at)
        if at_s is not None:
            block = one.trial.block
            begun[block] = min(at_s, begun.get(block, at_s))
    steps = [begun[block + 1] - begun[block] for block in begun if block + 1 in begun]
    rising = [step for step in steps if step > 0]
    if rising:
        return median(rising)
    loads_s = sum(one.warmup_s + one.window_s for one in measurements if one.trial.block in begun)
    return loads_s / len(begun) if loads_s else None


def _at_s(started_at: str) -> float | None:
    try:
        return datetime.fromisoformat(started_at).timestamp()
    except ValueError:
        return None
