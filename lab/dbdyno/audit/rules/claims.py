"""A publication's claims and changes, held against its own tables.

headline   a claim is a range of ratios (`plan.publication.Claim`): of each of its cells, of some
           cell, of their average (of sums, or a mean of ratios) or of their peaks. A missed
           average or peak is searched for in every subset of the tables (all cells, a value of an
           axis, a load level) and against every other system, and shown beside the value of the
           claim's own cells. A range that holds not in each cell may be of the workloads' means.
           Ratios beside each other are means of a kind. Claims with the same text are of a single
           sentence, which is as true as the least true of them
claims     a claim without cells is a note; so is a doubt about an average, a peak or some cell if
           tables or rows were not read
changes    a column of changes agrees with two columns of its row: as a difference or a ratio; a
           table of ratios with averages or peaks of all its cells, or of another system's; a mean
           of printed ratios with these
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import fmean, geometric_mean
from typing import Final, Literal, NamedTuple

from dbdyno.audit.ledger import LedgerEntry, Severity
from dbdyno.audit.tables import (
    HIDDEN,
    NOPM,
    NUMBER,
    QPS,
    TPS,
    Printed,
    Publication,
    PublishedCell,
    PublishedChange,
    pairs,
    subsets,
)
from dbdyno.language.words import Said, Text, count, listed, name, say
from dbdyno.plan.publication import Claim

Formula = Callable[[Sequence[float], Sequence[float]], float]
"""A ratio of two systems from the numbers of both."""
SHOWN: Final = 3
EXACT_DIGITS: Final = 3
"""Of a ratio that few subsets of the tables have by chance."""
CHANGE: Final = re.compile(rf"({NUMBER.pattern})\s*(%|％|)(?:x|×|倍)?")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "transactions_per_s": (TPS, QPS, NOPM),
    "queries_per_s": (QPS,),
    "new_orders_per_min": (NOPM,),
}
"""Columns of a claim's metric, the likeliest first; others have the metric's name."""


def check(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """The columns of changes, then each sentence of claims."""
    shown = [cell for cell in cells if not HIDDEN.items() <= cell.at.items()]
    yield from _changes(publication, cells)
    if not (publication.is_partly_read and publication.unread):
        yield from _ratios_of_all(publication, shown)
    sentences: dict[str, list[LedgerEntry]] = {}
    for claim in publication.claims:
        entry = _held(claim, cells if HIDDEN.items() <= claim.at.items() else shown)
        if publication.is_partly_read and publication.unread:
            entry = _as_far_as_read(claim, entry)
        sentences.setdefault(" ".join(claim.text.split()), []).append(entry)
    yield from map(_least_true, sentences.values())


def _as_far_as_read(claim: Claim, entry: LedgerEntry) -> LedgerEntry:
    """A note in place of a doubt that tables or rows among the unread may remove."""
    is_of_all = claim.holds != "each"  # a cell against "each" stays against it
    if not is_of_all or entry.severity not in (Severity.CONTRADICTION, Severity.OVER_CLAIM):
        return entry
    return entry.model_copy(
        update={
            "severity": Severity.NOTE,
            "sentence": say("cannot be checked, as not all tables were read"),
        }
    )


def _least_true(entries: Sequence[LedgerEntry]) -> LedgerEntry:
    """The weightiest entry of a sentence's claims, with the evidence of all as weighty."""
    weightiest = min((one.severity for one in entries), key=[*Severity].index)
    first, *others = [one for one in entries if one.severity is weightiest]
    both = ((one.sentence, one.arithmetic) for one in others)
    return first.model_copy(
        update={
            "arithmetic": listed([first.arithmetic, *(part for one in both for part in one)], "; ")
        }
    )


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
    """A subset of the tables, and a ratio of two systems over it, with its limits by rounding."""

    where: Text
    how: Said
    against: str
    ratio: float
    low: float
    high: float
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
            sentence=say("cannot be checked with the printed numbers"),
            arithmetic=say(
                "no table has {metric} of both {subject} and {against} in the claim's cells",
                metric=claim.metric,
                subject=claim.of,
                against=claim.than or claim.of,
            ),
            place=claim.text,
        )
    if claim.holds in ("average", "peak"):
        return _joint(claim, compared, cells)
    agreeing = [one for one in compared if one.supports(claim)]
    opposed = [one for one in compared if not one.supports(claim)]
    holds = bool(agreeing) if claim.holds == "some" else not opposed
    if not holds and (means := _means(claim, compared)):
        return _headline(
            claim,
            Severity.CONFIRMED,
            say(
                "the claimed ratio, {range}, is true for the mean of each workload",
                range=_range(claim),
            ),
            listed(means, "; "),
        )
    shown = agreeing if holds else sorted(opposed, key=partial(_distance, claim), reverse=True)
    return _headline(
        claim,
        Severity.CONFIRMED if holds else Severity.CONTRADICTION,
        say(
            "the claimed ratio, {range}, is true in {count} of {cells}",
            count=len(agreeing),
            cells=count(len(compared), "cell"),
            range=_range(claim),
        ),
        listed((one.text for one in shown[:SHOWN]), "; "),
    )


def _means(claim: Claim, compared: Sequence[Compared]) -> list[Said]:
    """The mean ratio of each workload over its load levels, of one kind for all.

    It is empty unless all are in the range.
    """
    if claim.holds != "each" or not claim.ratio_min or claim.ratio_max is None:
        return []  # "always faster" is a sentence about cells
    workloads: dict[str, list[Compared]] = {}
    for pair in compared:
        workloads.setdefault(pair.cell.workload, []).append(pair)
    if len(workloads) < 2:
        return []
    ways = [
        list(_ways(claim, name(workload or "?"), claim.than or claim.of, of_workload))
        for workload, of_workload in workloads.items()
    ]
    for how in dict.fromkeys(way.how for of_workload in ways for way in of_workload):
        alike = [_of_kind(how, of_workload) for of_workload in ways]
        if all(_is_in_range(claim, way) for way in alike):
            return [way.text for way in alike]
    return []


def _of_kind(how: Said, ways: Sequence[SubsetRatio]) -> SubsetRatio:
    """The ratio of this kind; of a single cell all kinds are the same."""
    return next((way for way in ways if way.how == how), ways[0])


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
    whole = list(_ways(claim, say("the claim's cells"), against, compared))
    agreeing = [one for one in whole if _is_in_range(claim, one)]
    if agreeing:
        sentence = say("the tables give the claimed ratio, {range}", range=_range(claim))
        return _headline(claim, Severity.CONFIRMED, sentence, agreeing[0].text)
    nearest = min(whole, key=partial(_distance, claim))
    ways = [] if claim.than_threads else _ratios(claim, cells)
    elsewhere = [one for one in ways if _is_in_range(claim, one)]
    if not elsewhere:
        sentence = say(
            "no subset of the tables gives the claimed ratio, {range}, of {subject} against "
            "another system",
            range=_range(claim),
            subject=claim.of,
        )
        return _headline(claim, Severity.CONTRADICTION, sentence, nearest.text)
    best = max(
        elsewhere,
        key=lambda way: (way.against == against, _distance(claim, way) <= 0, way.cells),
    )
    sentence = (
        say(
            "the claimed ratio, {range}, is true only for other or fewer cells", range=_range(claim)
        )
        if best.against == against
        else say(
            "the claimed ratio, {range}, is true against {other}, not against {against}",
            range=_range(claim),
            other=best.against,
            against=against,
        )
    )
    arithmetic = say("{part}; {whole}", part=best.text, whole=_of_kind(best.how, whole).text)
    return _headline(claim, Severity.OVER_CLAIM, sentence, arithmetic)


def _ratios(claim: Claim, cells: list[PublishedCell]) -> Iterator[SubsetRatio]:
    """Every ratio of the claimed system to another, over every subset of the tables."""
    for against in dict.fromkeys(one.system for one in cells if one.system != claim.of):
        beside = {one.key: other for one, other in pairs(cells, claim.of, against)}
        own = [one for one in cells if one.system == claim.of and one.key in beside]
        for where, kept in subsets(own):
            for metric in COLUMNS.get(claim.metric, (claim.metric,)):
                compared = [
                    Compared(one, one.values[metric], other.values[metric])
                    for one in kept
                    if metric in one.values
                    and metric in (other := beside[one.key]).values
                    and other.values[metric].value > 0
                ]
                if compared:
                    yield from _ways(claim, name(where), against, compared)


def _ways(
    claim: Claim, where: Text, against: str, compared: Sequence[Compared]
) -> Iterator[SubsetRatio]:
    """The possible meanings of an average, or a peak."""
    if claim.holds == "peak":
        ways: dict[Said, Formula] = {say("ratio of peaks"): _ratio_of_peaks}
    else:
        ways = {say("ratio of sums"): _ratio_of_sums}
        if len(compared) > 1:
            ways[say("mean of ratios")] = _mean_of_ratios
        if len(compared) > 1 and min(pair.ratio for pair in compared) > 0:
            ways[say("geometric mean of ratios")] = _geometric_mean_of_ratios
    own, other = [pair.own for pair in compared], [pair.other for pair in compared]
    for how, formula in ways.items():
        yield SubsetRatio(
            where,
            how,
            against,
            formula([n.value for n in own], [n.value for n in other]),
            formula([n.low for n in own], [n.high for n in other]),
            formula([n.high for n in own], [n.low for n in other]),
            len(compared),
        )


def _ratio_of_peaks(own: Sequence[float], other: Sequence[float]) -> float:
    return max(own) / max(other)


def _ratio_of_sums(own: Sequence[float], other: Sequence[float]) -> float:
    return sum(own) / sum(other)


def _mean_of_ratios(own: Sequence[float], other: Sequence[float]) -> float:
    return fmean(a / b for a, b in zip(own, other, strict=True))


def _geometric_mean_of_ratios(own: Sequence[float], other: Sequence[float]) -> float:
    return geometric_mean(a / b for a, b in zip(own, other, strict=True))


def _is_in_range(claim: Claim, way: SubsetRatio) -> bool:
    return claim.ratio_min - 1e-9 <= way.high and way.low <= claim.ratio_bound + 1e-9


def _distance(claim: Claim, compared: Compared | SubsetRatio) -> float:
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
    """Printed changes that contradict every two numbers of their row; the others share an entry."""
    held = 0
    rows: dict[object, dict[str, PublishedCell]] = {}
    for cell in cells:
        rows.setdefault(cell.key, {})[cell.system] = cell
    for change in publication.changes:
        workload = change.workload or publication.workload
        row = rows.get((workload, change.threads, tuple(sorted(change.at.items()))), {})
        both = [row.get(system) for system in change.systems]
        numbers = [cell.values.get(change.metric) if cell else None for cell in both]
        if not all(numbers) or not (match := CHANGE.fullmatch(change.text.strip())):
            continue
        printed, is_percent = Printed(text=match[1].lstrip("+")), bool(match[2])
        if any(_is_change(printed, *pair, is_percent=is_percent) for pair in _pairs_in(row)):
            held += 1
            continue
        first, second = (number for number in numbers if number)
        yield LedgerEntry(
            severity=Severity.CONTRADICTION,
            rule="changes",
            sentence=say("a printed change does not follow from its two numbers"),
            arithmetic=say(
                "{first} and {second}: a change of {change:+.1%}, printed {text}",
                first=first.text,
                second=second.text,
                change=second.value / first.value - 1 if first.value else 0.0,
                text=change.text,
            ),
            place=next(cell for cell in both if cell).title,
        )
    if held:
        yield LedgerEntry(
            severity=Severity.CONFIRMED,
            rule="changes",
            sentence=say("{count} printed changes follow from their numbers", count=held),
            arithmetic=say("each was compared with two numbers of its row"),
        )


def _ratios_of_all(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """Ratios over all load levels; a page seldom says how it took them."""
    for change in publication.changes:
        if change.metric:
            continue
        mean = _mean_held(change) if change.mean_of else None
        if mean and mean.severity is Severity.CONFIRMED:
            yield mean
            continue
        ways = [
            _held(claim, cells)
            for order in (change.systems, change.systems[::-1])
            for claim in _claims_of(change, *order)
        ]
        held = [way for way in ways if way.severity is Severity.CONFIRMED]
        if mean and not held:
            yield mean
            continue
        elsewhere = [way for way in ways if way.severity is Severity.OVER_CLAIM]
        is_exact = len(change.text.replace(".", "").lstrip("0")) >= EXACT_DIGITS
        best = next(iter([*held, *(elsewhere if is_exact else ()), *ways]))
        severity = best.severity
        if severity is Severity.CONTRADICTION or (severity is Severity.OVER_CLAIM and not is_exact):
            severity = Severity.NOTE
        yield best.model_copy(update={"rule": "changes", "severity": severity})


def _mean_held(change: PublishedChange) -> LedgerEntry:
    """A printed mean against the printed ratios beside it; only a note, as it may be of others.

    Its last digit may have been cut off in place of rounded.
    """
    printed, ratios = Printed(text=change.text), change.mean_of
    mean = fmean(ratio.value for ratio in ratios)
    room = 2 * printed.half + fmean(ratio.half for ratio in ratios) + 1e-9
    follows = abs(mean - printed.value) <= room
    return LedgerEntry(
        severity=Severity.CONFIRMED if follows else Severity.NOTE,
        rule="changes",
        sentence=say("a printed mean follows from its ratios")
        if follows
        else say("a printed mean does not follow from its ratios"),
        arithmetic=say(
            "mean of {ratios}: {mean:.5g}, printed {text}",
            ratios=listed(ratio.text for ratio in ratios),
            mean=mean,
            text=change.text,
        ),
        place=f"{' / '.join(change.systems)}: {change.text} ({change.place})",
    )


def _claims_of(change: PublishedChange, of: str, than: str) -> Iterator[Claim]:
    """A printed ratio as one of averages, or of peaks."""
    ratio = Printed(text=change.text)
    threads = (change.threads,) if change.threads else ()
    ways: tuple[Literal["average", "peak"], ...] = ("average", "peak")
    for holds in ways:
        yield Claim(
            text=f"{' / '.join(change.systems)}: {change.text} ({change.place})",
            of=of,
            than=than,
            threads=threads,
            at=change.at,
            ratio_min=ratio.low,
            ratio_max=ratio.high,
            holds=holds,
        )


def _pairs_in(row: Mapping[str, PublishedCell]) -> Iterator[tuple[Printed, Printed]]:
    """Every two numbers of a row that a change may compare: of two systems, in a metric."""
    for first, second in combinations(row.values(), 2):
        for metric in first.values.keys() & second.values.keys():
            yield first.values[metric], second.values[metric]


def _is_change(printed: Printed, first: Printed, second: Printed, *, is_percent: bool) -> bool:
    """Tests if a number is a difference or a ratio of two, as a share, in percent, or itself.

    Its last digit may have been cut off in place of rounded.
    """
    if first.value <= 0 or second.value <= 0:
        return True  # of nothing there is no change that could be held against it
    up, down = second.value / first.value, first.value / second.value
    rounding = max(up, down) * (first.half / first.value + second.half / second.value)
    difference = abs(second.value - first.value)
    room = 2 * printed.half + 1e-9
    if not is_percent and abs(difference - abs(printed.value)) <= room + first.half + second.half:
        return True
    return any(
        abs(unit * way - printed.value) <= room + unit * rounding
        for unit in ((100,) if is_percent else (1, 100))
        for way in (up - 1, down - 1, 1 - up, 1 - down, up, down)
    )
