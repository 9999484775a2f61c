"""The section on how evenly the systems worked: jitter, dips, stalls, recovery, tail, rhythm.

One table of what each system did, one of the differences within blocks. What happened in each run
is in the charts of its seconds and in report.json: a mean of runs would hide the one that stalled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from dbdyno.judge import Judgement
from dbdyno.judge.stability import Stability
from dbdyno.judge.stability_pairs import DIPS, JITTER, STALLS, TAIL, CountPair
from dbdyno.measurement import Cell
from dbdyno.report.numbers import NONE, TOO_FEW, number, percentage, ratio_with_interval
from dbdyno.report.parts import Column, Items, Paragraph, Section, Table
from dbdyno.words import Text, name, say

HEADING: Final = say("Stability")
EXPLAINED: Final = (
    say(
        "Jitter: how far a second lies from the running median of eleven, as a share of the"
        " window's median rate; the median of the runs, as are slow seconds, p99 / p50 and ρ1."
    ),
    say("Slow seconds: the share of seconds below 80 % of the window's median rate."),
    say(
        "Dips: seconds in a row below 70 % of it; recovery lasts from a dip's begin until 95 % are"
        " reached again. Of all runs together, as are stalls."
    ),
    say("Stalls: 0.2 s or more in which transactions ran and no statement was answered."),
    say(
        "ρ1: how alike neighbouring seconds are, from 0 to 1. Rhythm: seconds after which a run"
        " repeats itself, where it did so three times at least and beyond chance."
    ),
)
COMPARED: Final = say(
    "Changes are of ratios within blocks, with 95 % intervals; more is less even. Counts are the"
    " system's against the baseline's; p is how likely chance alone turns the signs of the blocks'"
    " differences so (below six blocks it cannot be small)."
)


def stability(judgement: Judgement) -> Section:
    """What each system did, then the differences; empty without a sound trial."""
    found = judgement.stability
    if not found:
        return Section(HEADING, ())
    runs: dict[tuple[Cell, str], list[Stability]] = {}
    for one in found:
        runs.setdefault((one.cell, one.system), []).append(one)
    rows = tuple(_row(cell, system, of_both) for (cell, system), of_both in runs.items())
    own = Table(say("How evenly each system worked"), _COLUMNS, rows)
    differences = _differences(judgement)
    if not differences.rows:
        return Section(HEADING, (Items(EXPLAINED), own))
    return Section(HEADING, (Items(EXPLAINED), own, Paragraph(COMPARED), differences))


_COLUMNS: Final = (
    Column(say("Cell")),
    Column(say("System")),
    Column(say("Runs"), numeric=True),
    Column(say("Jitter"), numeric=True),
    Column(say("Slow seconds"), numeric=True),
    Column(say("Dips"), numeric=True),
    Column(say("Stalls"), numeric=True),
    Column(say("Longest recovery, s"), numeric=True),
    Column(name("p99 / p50"), numeric=True),
    Column(say("ρ1"), numeric=True),
    Column(say("Rhythm, s"), numeric=True),
)


def _row(cell: Cell, system: str, runs: Sequence[Stability]) -> tuple[Text, ...]:
    tail = _median(run.latency_p99_over_p50 for run in runs)
    return (
        name(cell.title),
        name(system),
        name(f"{len(runs)}"),
        percentage(_median(run.jitter for run in runs)),
        percentage(_median(run.low_share for run in runs)),
        _dips(runs),
        _stalls(runs),
        _recovery(runs),
        TOO_FEW if tail is None else number(tail),
        number(_median(run.rho1 for run in runs)),
        _rhythm(runs),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _rhythm(runs: Sequence[Stability]) -> Text:
    periods = [run.period_s for run in runs if run.period_s is not None]
    if not periods:
        return NONE
    return say(
        "{period} in {count} of {runs} runs",
        period=number(median(periods), 1),
        count=len(periods),
        runs=len(runs),
    )


def _dips(runs: Sequence[Stability]) -> Text:
    if all(run.jitter is None for run in runs):
        return NONE
    count = sum(len(run.dips) for run in runs)
    if not count:
        return name("0")
    total_s = math.fsum(run.dip_s_total for run in runs)
    return say("{count}, {seconds} s in all", count=count, seconds=number(total_s, 1))


def _stalls(runs: Sequence[Stability]) -> Text:
    listened = [run for run in runs if run.stalls is not None]
    if not listened:
        return NONE
    count = sum(len(run.stalls or ()) for run in listened)
    if not count:
        return name("0")
    return say(
        "{count}, longest {longest} s, {seconds} s in all",
        count=count,
        longest=number(max(run.stall_s_longest for run in listened)),
        seconds=number(math.fsum(run.stall_s_total for run in listened)),
    )


def _recovery(runs: Sequence[Stability]) -> Text:
    dips = [dip for run in runs for dip in run.dips]
    if any(dip.recovered_s is None for dip in dips):
        return say("not within the window")
    return number(max((dip.recovered_s or 0.0 for dip in dips), default=None), 1)


def _differences(judgement: Judgement) -> Table:
    columns = (
        Column(say("Cell")),
        Column(say("System")),
        Column(say("Against")),
        Column(say("Jitter [95 %]"), numeric=True),
        Column(name("p99 / p50 [95 %]"), numeric=True),
        Column(say("Stalls"), numeric=True),
        Column(say("Dips"), numeric=True),
    )
    ratios = {
        (one.cell, one.baseline, one.system, one.measure): ratio_with_interval(one.ratio)
        for one in judgement.stability_ratios
    }
    counts = {
        (one.cell, one.baseline, one.system, one.what): _counted(one)
        for one in judgement.stability_counts
    }
    pairs = dict.fromkeys(place[:3] for place in (*ratios, *counts))
    rows = tuple(
        (
            name(cell.title),
            name(system),
            name(baseline),
            ratios.get((cell, baseline, system, JITTER), NONE),
            ratios.get((cell, baseline, system, TAIL), TOO_FEW),
            counts.get((cell, baseline, system, STALLS), NONE),
            counts.get((cell, baseline, system, DIPS), NONE),
        )
        for cell, baseline, system in pairs
    )
    return Table(say("Evenness compared within blocks"), columns, rows)


def _counted(one: CountPair) -> Text:
    if one.system_total == one.baseline_total == 0:
        return say("0 against 0")
    return say(
        "{system} against {baseline} (p = {chance:.2g})",
        system=one.system_total,
        baseline=one.baseline_total,
        chance=one.p,
    )
