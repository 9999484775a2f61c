"""Trials whose seconds have stalls and dips put in."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.measurement.measurement import Measurement
from support import making
from support.making import A


def trial(
    rates: tuple[float, ...],
    system: str = A,
    block: int = 0,
    silences_s: Mapping[int, float] | None = None,
    **same: object,
) -> Measurement:
    """A trial of these seconds.

    Args:
        silences_s: longest silence that ended in a measured second, by its place; 1 ms elsewhere.
    """
    made = making.measurement(
        system,
        block,
        tps=sum(rates) / len(rates),
        rates=rates,
        window_s=len(rates),
        histograms=False,
        **same,  # type: ignore[arg-type]
    )
    first = len(made.intervals) - len(rates)
    silent = {first + place: seconds for place, seconds in (silences_s or {}).items()}
    intervals = tuple(
        interval.model_copy(update={"silence_ns_max": int(silent.get(place, 0.001) * 1e9)})
        for place, interval in enumerate(made.intervals)
    )
    return making.changed(made, intervals=intervals)
