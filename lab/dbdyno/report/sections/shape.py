"""The section on how evenly the systems worked: slow seconds, dips, stalls, recovery, tail.

One table of what each system did, one of two systems side by side. What happened in each run
is in the charts of its seconds and in report.json: a mean of runs would hide the one that stalled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from dbdyno.judge.beside.stability import Stability
from dbdyno.judge.beside.stability_pairs import DIPS, STALLS, CountPair
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.measurement import Cell
from dbdyno.report.numbers import NONE, TOO_FEW, number, percentage
from dbdyno.report.parts import Column, Items, Paragraph, Section, Table

HEADING: Final = say("Stability")
EXPLAINED: Final = (
    say(
        "Slow seconds: the share of seconds below 80 % of the window's median rate; the median of"
        " the runs, as is p99 / p50."
    ),
    say(
        "Dips: seconds in a row below 70 % of it; recovery lasts from a dip's begin until 95 % are"
        " reached again. Of all runs together, as are stalls."
    ),
    say("Stalls: 0.2 s or more in which transactions ran and no statement was answered."),
)
COMPARED: Final = say(
    "Counts are the system's against the baseline's, in the blocks that both have. They are no"
    " verdicts."
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
    Column(say("Slow seconds"), numeric=True),
    Column(say("Dips"), numeric=True),
    Column(say("Stalls"), numeric=True),
    Column(say("Longest recovery, s"), numeric=True),
    Column(name("p99 / p50"), numeric=True),
)


def _row(cell: Cell, system: str, runs: Sequence[Stability]) -> tuple[Text, ...]:
    tail = _median(run.latency_p99_over_p50 for run in runs)
    return (
        name(cell.title),
        name(system),
        name(f"{len(runs)}"),
        percentage(_median(run.low_share for run in runs)),
        _dips(runs),
        _stalls(runs),
        _recovery(runs),
        TOO_FEW if tail is None else number(tail),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _dips(runs: Sequence[Stability]) -> Text:
    if all(run.low_share is None for run in runs):
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
        Column(say("Stalls"), numeric=True),
        Column(say("Dips"), numeric=True),
    )
    counts = {
        (one.cell, one.baseline, one.system, one.what): _counted(one)
        for one in judgement.stability_counts
    }
    pairs = dict.fromkeys(place[:3] for place in counts)
    rows = tuple(
        (
            name(cell.title),
            name(system),
            name(baseline),
            counts.get((cell, baseline, system, STALLS), NONE),
            counts.get((cell, baseline, system, DIPS), NONE),
        )
        for cell, baseline, system in pairs
    )
    return Table(say("Stalls and dips of two systems"), columns, rows)


def _counted(one: CountPair) -> Text:
    return say("{system} against {baseline}", system=one.system_total, baseline=one.baseline_total)
