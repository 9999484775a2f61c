"""A publication's claims and changes, held against its own tables.

headline   a claim is a range of ratios (`plan.publication.Claim`): of each of its cells, of some
           cell, of their average (of sums, or a mean of ratios) or of their peaks. A missed
           average or peak is searched for in every subset of the tables (all cells, a value of an
           axis, a load level) and against every other system, and shown beside the value of the
           claim's own cells
claims     a claim without cells is a note
changes    a column of changes agrees with its two columns: as a difference of either, or a ratio
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import geometric_mean
from typing import Final, NamedTuple

from dbdyno.audit.ledger import LedgerEntry, Severity
from dbdyno.audit.tables import (
    NUMBER,
    QPS,
    TPS,
    Printed,
    Publication,
    PublishedCell,
    pairs,
    subsets,
)
from dbdyno.language.words import Said, Text, count, listed, name, say
from dbdyno.plan.publication import Claim

SHOWN: Final = 3
CHANGE: Final = re.compile(rf"({NUMBER.pattern})\s*(%|％|)(?:x|×|倍)?")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "transactions_per_s": (TPS, QPS),
    "queries_per_s": (QPS,),
}
"""Columns of a claim's metric, the likeliest first; others have the metric's name."""


def check(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """The columns of changes, then each claim."""
    yield from _changes(publication, cells)
    for claim in publication.claims:
        yield _held(claim, cells)


class Compared(NamedTuple):
    """A cell of a claim, with the printed numbers of both systems."""

    cell: PublishedCell
    own: Printed
    other: Printed

    @property
    def ratio(self) -> float:
        """Of the numbers as they were printed."""
        return self.own.value / self.other.value

    def supports(self, claim: Claim) -> bool:
        """Tests if the ratio, with its rounding, may lie in the claim's range."""
        high = self.own.high / self.other.low if self.other.low > 0 else float("inf")
        return self.own.low / self.other.high <= claim.ratio_bound and high >= claim.ratio_min

    @property
    def text(self) -> Said:
        """The cell with both numbers."""
        return say(
            "{cell}: {own} against {other}",
            cell=self.cell.title,
            own=self.own.text,
            other=self.other.text,
        )


class SubsetRatio(NamedTuple):
    """A subset of the tables, and a ratio of two systems over it."""

    where: Text
    how: Said
    against: str
    ratio: float
    cells: int

    @property
    def text(self) -> Said:
        """The subset, the formula and the ratio."""
        return say(
            "{where}, {how}, against {against}: {value:.4g}",
            where=self.where,
            how=self.how,
            against=self.against,
            value=self.ratio,
        )


def _held(claim: Claim, cells: list[PublishedCell]) -> LedgerEntry:
    """A claim against its cells."""
    compared = _compared(claim, cells)
    if not compared:
        return LedgerEntry(
            severity=Severity.NOTE,
            rule="claims",
            sentence=say("not checkable from what was printed"),
            arithmetic=say(
                "no table has {metric} of {subject} beside that of {against} in the claim's cells",
                metric=claim.metric,
                subject=claim.of,
                against=claim.than or claim.of,
            ),
            place=claim.text,
        )
    if claim.holds in ("average", "peak"):
        return _joint(claim, compared, cells)
    agreeing = [one for one in compared if one.supports(claim)]
    opposed = [one for one in compared if one not in agreeing]
    holds = bool(agreeing) if claim.holds == "some" else not opposed
    shown = agreeing if holds else sorted(opposed, key=partial(_distance, claim), reverse=True)
    return _headline(
        claim,
        Severity.CONFIRMED if holds else Severity.CONTRADICTION,
        say(
            "the claimed ratio, {range}, holds in {count} of {cells}",
            count=len(agreeing),
            cells=count(len(compared), "cell"),
            range=_range(claim),
        ),
        listed((one.text for one in shown[:SHOWN]), "; "),
    )


def _compared(claim: Claim, cells: Sequence[PublishedCell]) -> list[Compared]:
    """The claim's cells, in the first of its columns common to both systems."""
    others = {one.key: one for one in cells if one.system == (claim.than or claim.of)}
    for metric in COLUMNS.get(claim.metric, (claim.metric,)):
        compared = []
        for cell in cells:
            workload, threads, at = cell.key
            beside = others.get((workload, claim.than_threads or threads, at))
            own, other = cell.values.get(metric), beside.values.get(metric) if beside else None
            if (
                own
                and other
                and other.value > 0
                and beside is not cell
                and _is_claimed(claim, cell)
            ):
                compared.append(Compared(cell, own, other))
        if compared:
            return compared
    return []


def _is_claimed(claim: Claim, cell: PublishedCell) -> bool:
    return (
        cell.system == claim.of
        and cell.workload in (claim.workloads or (cell.workload,))
        and cell.threads in (claim.threads or (cell.threads,))
        and claim.at.items() <= cell.at.items()
    )


def _joint(claim: Claim, compared: Sequence[Compared], cells: list[PublishedCell]) -> LedgerEntry:
    """The ratio of all of a claim's cells, or else the part of the tables with this ratio."""
    against = claim.than or claim.of
    values = [(one.own.value, one.other.value) for one in compared]
    whole = list(_ways(claim, say("the claim's cells"), against, values))
    agreeing = [one for one in whole if _is_in_range(claim, one.ratio)]
    if agreeing:
        sentence = say("the claimed ratio, {range}, is that of the tables", range=_range(claim))
        return _headline(claim, Severity.CONFIRMED, sentence, agreeing[0].text)
    beside = whole[0].text
    ways = [] if claim.than_threads else _ratios(claim, cells)
    elsewhere = [one for one in ways if _is_in_range(claim, one.ratio)]
    if not elsewhere:
        sentence = say(
            "the claimed ratio, {range}, comes out of no subset of the tables, for {subject}"
            " against any other system",
            range=_range(claim),
            subject=claim.of,
        )
        return _headline(claim, Severity.CONTRADICTION, sentence, beside)
    best = max(elsewhere, key=lambda one: (one.against == against, one.cells))
    sentence = (
        say("the claimed ratio, {range}, holds for other or fewer cells only", range=_range(claim))
        if best.against == against
        else say(
            "the claimed ratio, {range}, holds against {other}, not against {against}",
            range=_range(claim),
            other=best.against,
            against=against,
        )
    )
    arithmetic = say("{part}; {whole}", part=best.text, whole=beside)
    return _headline(claim, Severity.OVER_CLAIM, sentence, arithmetic)


def _ratios(claim: Claim, cells: list[PublishedCell]) -> Iterator[SubsetRatio]:
    """Every ratio of the claimed system to another, over every subset of the tables."""
    for against in dict.fromkeys(one.system for one in cells if one.system != claim.of):
        beside = {one.key: other for one, other in pairs(cells, claim.of, against)}
        own = [one for one in cells if one.system == claim.of and one.key in beside]
        for where, kept in subsets(own):
            for metric in COLUMNS.get(claim.metric, (claim.metric,)):
                values = [
                    (one.values[metric].value, other.values[metric].value)
                    for one in kept
                    if metric in one.values
                    and metric in (other := beside[one.key]).values
                    and other.values[metric].value > 0
                ]
                if values:
                    yield from _ways(claim, name(where), against, values)


def _ways(
    claim: Claim, where: Text, against: str, values: Sequence[tuple[float, float]]
) -> Iterator[SubsetRatio]:
    """The possible meanings of an average, or a peak."""
    own, other = zip(*values, strict=True)
    count, ratios = len(values), [a / b for a, b in values]
    if claim.holds == "peak":
        yield SubsetRatio(where, say("ratio of peaks"), against, max(own) / max(other), count)
        return
    yield SubsetRatio(where, say("ratio of sums"), against, sum(own) / sum(other), count)
    if count > 1:
        yield SubsetRatio(where, say("mean of ratios"), against, sum(ratios) / count, count)
        if min(ratios) > 0:
            yield SubsetRatio(
                where, say("geometric mean of ratios"), against, geometric_mean(ratios), count
            )


def _is_in_range(claim: Claim, ratio: float) -> bool:
    return claim.ratio_min - 1e-9 <= ratio <= claim.ratio_bound + 1e-9


def _distance(claim: Claim, compared: Compared) -> float:
    """From the claim's range."""
    return max(claim.ratio_min - compared.ratio, compared.ratio - claim.ratio_bound)


def _range(claim: Claim) -> Said:
    if claim.ratio_max is None:
        return say("{least:.5g} or more", least=claim.ratio_min)
    if not claim.ratio_min:
        return say("{most:.5g} or less", most=claim.ratio_max)
    return say("{least:.5g} to {most:.5g}", least=claim.ratio_min, most=claim.ratio_max)


def _headline(claim: Claim, severity: Severity, sentence: Said, arithmetic: Said) -> LedgerEntry:
    return LedgerEntry(
        severity=severity,
        rule="headline",
        sentence=sentence,
        arithmetic=arithmetic,
        place=claim.text,
    )


def _changes(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """Printed changes that contradict their two numbers; the correct ones share an entry."""
    held = 0
    known = {(cell.system, *cell.key): cell for cell in cells}
    for change in publication.changes:
        workload = change.workload or publication.workload
        key = (workload, change.threads, tuple(sorted(change.at.items())))
        both = [known.get((system, *key)) for system in change.systems]
        numbers = [one.values.get(change.metric) if one else None for one in both]
        if not all(numbers) or not (match := CHANGE.fullmatch(change.text.strip())):
            continue
        first, second = (one for one in numbers if one)
        printed = Printed(text=match[1].lstrip("+"))
        if _is_change(printed, first, second, is_percent=bool(match[2])):
            held += 1
            continue
        cell = next(one for one in both if one)
        yield LedgerEntry(
            severity=Severity.CONTRADICTION,
            rule="changes",
            sentence=say("a printed change is not that of its two numbers"),
            arithmetic=say(
                "{first} and {second}: a change of {change:+.1%}, printed {text}",
                first=first.text,
                second=second.text,
                change=second.value / first.value - 1 if first.value else 0.0,
                text=change.text,
            ),
            place=cell.title,
        )
    if held:
        yield LedgerEntry(
            severity=Severity.CONFIRMED,
            rule="changes",
            sentence=say("{count} printed changes are those of their numbers", count=held),
            arithmetic=say("each held against the two columns beside it"),
        )


def _is_change(printed: Printed, first: Printed, second: Printed, *, is_percent: bool) -> bool:
    """Tests if a number is a difference or a ratio of two, as a share or in percent."""
    if first.value <= 0 or second.value <= 0:
        return True  # of nothing there is no change that could be held against it
    up, down = second.value / first.value, first.value / second.value
    rounding = max(up, down) * (first.half / first.value + second.half / second.value)
    return any(
        abs(unit * way - printed.value) <= printed.half + unit * rounding + 1e-9
        for unit in ((100,) if is_percent else (1, 100))
        for way in (up - 1, down - 1, 1 - up, 1 - down, up, down)
    )
