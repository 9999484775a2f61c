"""The section on how throughput grows with threads: fitted laws, peaks, and why there are none.

Points are in the tables and charts of the results; here is what the Universal Scalability Law makes
of them. A refusal stands where the number would be, so that nobody looks for a peak in vain.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.judge.beside.peaks import PeakRatio
from dbdyno.judge.beside.scalability import Scalability
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, say
from dbdyno.report.numbers import NONE, coefficient, ratio_with_interval, typical_value
from dbdyno.report.parts import Column, Paragraph, Part, Section, Table

HEADING = say("Scalability")
EXPLAINED = say(
    "The law X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) is fitted to the load levels of each block by"
    " itself: λ is the throughput of one thread, σ what its fellows make it wait, κ what it costs"
    " to keep them in step. The values are typical of the blocks, with 95 % intervals over them. A"
    " peak is given only where the load levels go past it."
)


def scalability(judgement: Judgement) -> Section:
    """Laws, peaks and their comparison; empty where no ladder is long enough."""
    found = judgement.scalability
    if not found:
        return Section(HEADING, ())
    parts: list[Part] = [Paragraph(EXPLAINED), _laws(found)]
    if judgement.peaks:
        parts.append(_peaks(judgement.peaks))
    return Section(HEADING, tuple(parts))


def _laws(found: Sequence[Scalability]) -> Table:
    columns = (
        Column(say("Workload")),
        Column(say("System")),
        Column(say("Peak at threads [95 %]"), numeric=True),
        Column(say("TPS at the peak [95 %]"), numeric=True),
        Column(say("λ, TPS of one thread [95 %]"), numeric=True),
        Column(say("σ [95 %]"), numeric=True),
        Column(say("κ [95 %]"), numeric=True),
        Column(say("Not said, and why")),
    )
    return Table(say("Fitted scalability"), columns, tuple(_law(one) for one in found))


def _law(one: Scalability) -> tuple[Text, ...]:
    law, peak = one.law, one.peak
    return (
        _ladder(one),
        name(one.system),
        typical_value(peak.threads if peak else None, 1),
        typical_value(peak.per_s if peak else None, 1),
        typical_value(law.per_s_of_one if law else None, 1),
        coefficient(law.sigma if law else None),
        coefficient(law.kappa if law else None),
        one.why or NONE,
    )


def _peaks(found: Sequence[PeakRatio]) -> Table:
    columns = (
        Column(say("Workload")),
        Column(say("System")),
        Column(say("Against")),
        Column(say("Threads at the peak [95 %]"), numeric=True),
        Column(say("TPS at the peak [95 %]"), numeric=True),
    )
    rows = tuple(
        (
            _ladder(one),
            name(one.system),
            name(one.baseline),
            ratio_with_interval(one.threads),
            ratio_with_interval(one.per_s),
        )
        for one in found
    )
    return Table(say("Peaks compared within blocks"), columns, rows)


def _ladder(one: Scalability | PeakRatio) -> Text:
    return name(one.workload if one.setting == "default" else f"{one.workload}, {one.setting}")
