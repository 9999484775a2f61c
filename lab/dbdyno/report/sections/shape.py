"""Sections on details hidden by a mean: scalability, stability over time, outlying runs, machines.

A mean of runs would hide a run that stalled; charts of its seconds and report.json show each run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from dbdyno.judge.beside.outliers import Outlier
from dbdyno.judge.beside.scalability import Scalability
from dbdyno.judge.beside.stability import DIPS, STALLS, CountPair, Stability
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.known import Known
from dbdyno.plan.plan import BLOCKS_FEW
from dbdyno.report.numbers import (
    NONE,
    change,
    coefficient,
    number,
    percentage,
    too_few,
    typical_value,
)
from dbdyno.report.parts import Column, Items, Paragraph, Section, Table, numeric, table
from dbdyno.report.rows import workload_name
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.verdicts import reason

# Scalability: the Universal Scalability Law fitted to each ladder. Where it has no peak, the
# table says why.

SCALABILITY = say("Scalability")
SCALABILITY_EXPLAINED = say(
    "The curve X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) (Universal Scalability Law) is fitted to "
    "the load levels of each block separately: λ is the throughput of one thread, σ the cost of "
    "waiting for other threads (contention), κ the cost of keeping threads consistent "
    "(coherency). Values are means over the blocks, with 95 % intervals. A peak is given only if "
    "load levels go beyond it."
)


def scalability(judgement: Judgement) -> Section:
    """Laws and their peaks; empty where no ladder is long enough."""
    scalabilities = judgement.scalability
    if not scalabilities:
        return Section(SCALABILITY, ())
    return Section(SCALABILITY, (Paragraph(SCALABILITY_EXPLAINED), _laws(scalabilities)))


def _laws(scalabilities: Sequence[Scalability]) -> Table:
    columns = (
        Column(say("Workload")),
        Column(say("System")),
        numeric(say("Peak at threads [95 %]")),
        numeric(say("TPS at the peak [95 %]")),
        numeric(say("λ, TPS of one thread [95 %]")),
        numeric(say("σ [95 %]")),
        numeric(say("κ [95 %]")),
        Column(say("Why there is no fit or peak")),
    )
    return Table(say("Fitted scalability"), columns, tuple(_law(one) for one in scalabilities))


def _law(scalability: Scalability) -> tuple[Text, ...]:
    law, peak = scalability.law, scalability.peak
    return (
        name(workload_name(scalability.workload, scalability.setting)),
        name(scalability.system),
        typical_value(peak.threads if peak else None),
        typical_value(peak.per_s if peak else None),
        typical_value(law.per_s_of_one if law else None),
        coefficient(law.sigma if law else None),
        coefficient(law.kappa if law else None),
        reason(scalability.why) if scalability.why else NONE,
    )


# How evenly each system worked, from second to second.

STABILITY: Final = say("Stability")
STABILITY_EXPLAINED: Final = (
    say(
        "Slow seconds: share of seconds with less than 80 % of the trial's median throughput. "
        "The table shows the median of all trials, also for p99 / p50."
    ),
    say(
        "Dips: consecutive seconds below 70 % of the median throughput. Recovery lasts from the "
        "start of a dip until throughput reaches 95 % of the median again. Dips and stalls are "
        "counted over all trials."
    ),
    say(
        "Stalls: 0.2 s or more in which transactions were in progress but the server answered "
        "no statement."
    ),
)
COMPARED: Final = say(
    "This table compares the counts of a system and of the baseline in all blocks that are "
    "valid for both. The counts are not verdicts."
)


def stability(judgement: Judgement) -> Section:
    """Stability of each system, then the differences; empty without a sound trial."""
    stabilities = judgement.stability
    if not stabilities:
        return Section(STABILITY, ())
    runs: dict[tuple[Cell, str], list[Stability]] = {}
    for stability in stabilities:
        runs.setdefault((stability.cell, stability.system), []).append(stability)
    own = table(
        say("How evenly each system worked"),
        runs.values(),
        (say("Cell"), lambda of: cell_title(of[0].cell)),
        (say("System"), lambda of: of[0].system),
        (numeric(say("Trials")), len),
        (
            numeric(say("Slow seconds")),
            lambda of: percentage(_median(run.low_share for run in of)),
        ),
        (numeric(say("Dips")), _dips),
        (numeric(say("Stalls")), _stalls),
        (numeric(say("Longest recovery, s")), _recovery),
        (numeric(name("p99 / p50")), lambda of: _tail(of, judgement.known)),
    )
    differences = _differences(judgement)
    if not differences.rows:
        return Section(STABILITY, (Items(STABILITY_EXPLAINED), own))
    return Section(STABILITY, (Items(STABILITY_EXPLAINED), own, Paragraph(COMPARED), differences))


def _tail(runs: Sequence[Stability], known: Known) -> Text:
    tail = _median(run.latency_p99_over_p50 for run in runs)
    return too_few(known) if tail is None else number(tail)


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
    pairs: dict[tuple[Cell, str, str], dict[str, Text]] = {}
    for both in judgement.stability_counts:
        pairs.setdefault((both.cell, both.system, both.baseline), {})[both.what] = _counted(both)
    return table(
        say("Stalls and dips of two systems"),
        pairs.items(),
        (say("Cell"), lambda pair: cell_title(pair[0][0])),
        (say("System"), lambda pair: pair[0][1]),
        (say("Against"), lambda pair: pair[0][2]),
        (numeric(say("Stalls")), lambda pair: pair[1].get(STALLS, NONE)),
        (numeric(say("Dips")), lambda pair: pair[1].get(DIPS, NONE)),
    )


def _counted(pair: CountPair) -> Text:
    return say(
        "{system} against {baseline}", system=pair.system_total, baseline=pair.baseline_total
    )


# Outlying runs. They still count in every mean and interval.

OUTLIERS: Final = say("Outlying trials")
RULE: Final = say(
    "Outlying trials are listed here and still count in every number. A trial is outlying if "
    "its throughput (at a fixed rate: p99) differs from the system's other trials of the cell "
    "by more than the margin, and by more than chance explains (generalised extreme Studentised "
    "deviate, Rosner 1983, about 5 % false alarms). At least {least} trials are needed.",
    least=BLOCKS_FEW,
)


def outliers(judgement: Judgement) -> Section:
    """Outlying runs; empty without a trial."""
    if not judgement.values:
        return Section(OUTLIERS, ())
    listed = tuple(map(_outlier, judgement.outliers)) or (say("No trial is outlying."),)
    return Section(OUTLIERS, (Paragraph(RULE), Items(listed)))


def _outlier(outlier: Outlier) -> Text:
    return say(
        "{system}, {cell}, block {block}: {metric} {change} against the system's other {runs} "
        "trials.",
        system=outlier.system,
        cell=cell_title(outlier.cell),
        block=outlier.block + 1,
        metric=metric_label(BY_NAME[outlier.metric]),
        change=change(outlier.ratio),
        runs=outlier.runs - 1,
    )


def from_run_to_run(judgement: Judgement) -> tuple[Section, ...]:
    """Stability, outlying runs, machines."""
    return stability(judgement), outliers(judgement), machines(judgement)


# Machines: the comparison on each machine with blocks.

MACHINES = say("Machines")
MACHINES_EXPLAINED = say(
    "Each block ran completely on one of several machines. The verdicts hold for these machines."
)


def machines(judgement: Judgement) -> Section:
    """The comparisons by machine; empty if all blocks ran on one machine."""
    if not judgement.machines:
        return Section(MACHINES, ())
    rows = table(
        say("Throughput ratio by machine"),
        judgement.machines,
        (say("Cell"), lambda one: cell_title(one.cell)),
        (say("System"), lambda one: one.system),
        (say("Machine"), lambda one: one.machine),
        (numeric(say("Blocks")), lambda one: str(one.blocks)),
        (numeric(say("Difference")), lambda one: change(one.ratio)),
    )
    return Section(MACHINES, (Paragraph(MACHINES_EXPLAINED), rows))
