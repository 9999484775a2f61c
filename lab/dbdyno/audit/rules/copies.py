"""Numbers of two measurements that agree by more than chance.

copies     throughputs of two rows, within 5 % of each other, are equal by chance in 1 of so many
           as lie between them at their last place: a row was copied if chance gives its equal
           numbers in 1 of 1,000,000, or derived if its last digits agree. Percentiles lie on a grid
           and are left out. Tables under other headings may restate a measurement
digits     the last three digits of two systems' throughputs in a cell agree by chance in 1 of
           1,000, the decimals of two mean latencies in 1 of 100 or fewer: their differences are
           then whole thousands of a unit, or whole milliseconds. Counted over all cells of two
           systems

Both hold within a publication, and between publications that are audited together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from dbdyno.audit.ledger import LedgerEntry, Severity
from dbdyno.audit.tables import (
    HIDDEN,
    MEAN,
    QPS,
    SECTION,
    TPS,
    Printed,
    Publication,
    PublishedCell,
    PublishedTable,
    pairs,
)
from dbdyno.language.words import Said, listed, say

NEAR: Final = 0.05
"""Distance of systems of the same speed, whose numbers may be equal by chance; less where the other
numbers of two rows lie nearer, as at a fixed rate."""
TAIL: Final = 3
SAME_MIN: Final = 2
ALIKE_MIN: Final = 3
"""Least number of agreeing cells for an entry."""
CHANCE: Final = 1e-6
NEGLIGIBLE: Final = 1e-30
"""A chance that is left out, so that long rows take linear time."""
SHOWN: Final = 4


def check(publication: Publication, cells: Sequence[PublishedCell]) -> Iterator[LedgerEntry]:
    """Rows that stand twice, and systems with agreeing digits, within a publication."""
    if publication.has_rate:
        return  # all systems have the throughput that was asked for
    alike = set()
    for first, second in combinations(dict.fromkeys(cell.system for cell in cells), 2):
        if entry := _digits_of(cells, first, second):
            alike.add(frozenset((first, second)))
            yield entry
    rows = _rows_of(publication)
    for row, other in combinations(rows, 2):
        if not _is_one_measurement(row[0], other[0]):
            beside = frozenset((row[0].system, other[0].system))
            yield from _copied(row, other, say_tails=beside not in alike)


def between(first: Publication, second: Publication) -> Iterator[LedgerEntry]:
    """The same between two publications; equal labels are taken for equal systems.

    A row in both for the same version of a system was measured once and printed twice.
    """
    if first.has_rate or second.has_rate:
        return
    for row in _rows_of(first):
        for other in _rows_of(second):
            system = row[0].system
            same = other[0].system == system and (
                _version(first, system) == _version(second, system)
            )
            if same and _is_one_measurement(row[0], other[0]):
                yield from _printed_twice(row, other)
            else:
                yield from _copied(row, other, say_tails=False)
    ours, theirs = "%s (1)", "%s (2)"
    cells = [
        cell.model_copy(update={"system": name % cell.system})
        for name, of in ((ours, first), (theirs, second))
        for cell in of.cells()
    ]
    for system in dict.fromkeys(table.system for table in first.tables):
        for other_system in dict.fromkeys(table.system for table in second.tables):
            if entry := _digits_of(cells, ours % system, theirs % other_system):
                yield entry


def _version(publication: Publication, system: str) -> str:
    """The version that its author gives; empty for one found in the words of a page."""
    is_found = f"systems.{system}" in publication.places
    return "" if is_found else publication.systems.get(system, "")


_Row = tuple[PublishedTable, str, tuple[Printed, ...]]


def _rows_of(publication: Publication) -> list[_Row]:
    """The throughput rows of each table, with the publication's workload as a default."""
    return [
        (table.model_copy(update={"workload": table.workload or publication.workload}), m, values)
        for table in publication.tables
        for m, values in table.values.items()
        if m in (TPS, QPS)
    ]


def _copied(first: _Row, second: _Row, *, say_tails: bool) -> Iterator[LedgerEntry]:
    """Two rows of a metric; the same cells printed twice are a single measurement."""
    (cell, metric, values), (other, other_metric, others) = first, second
    if metric != other_metric:
        return
    if same := _same_numbers(first, second):
        yield LedgerEntry(
            severity=Severity.CONTRADICTION,
            rule="copies",
            sentence=say(
                "{count} numbers of two different measurements are the same to the last digit:"
                " {first} and {second}",
                count=len(same),
                first=_title(cell),
                second=_title(other),
            ),
            arithmetic=_told(first[1], same),
        )
        return
    tails = [_same_tail(a, b) for a, b in zip(values, others, strict=False)] if say_tails else []
    if sum(tails) >= SAME_MIN and chance_of([10.0**-TAIL] * len(tails), sum(tails)) < CHANCE:
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="copies",
            sentence=say(
                "{count} numbers of two different measurements end with the same three digits:"
                " {first} and {second}",
                count=sum(tails),
                first=_title(cell),
                second=_title(other),
            ),
            arithmetic=say("by chance in one of {chance:.0e}", chance=1 / CHANCE),
        )


def _same_numbers(first: _Row, second: _Row) -> list[Printed]:
    """Numbers that two rows of a metric share to the last digit; empty if chance explains them.

    Zeros at the end may be how far a number was rounded.
    """
    (_, metric, values), (_, other_metric, others) = first, second
    pairs_of = list(zip(values, others, strict=False))
    same = [one for one, other in pairs_of if one.value == other.value]
    if metric != other_metric or len(same) < SAME_MIN:
        return []
    apart = [abs(b.value / a.value - 1) for a, b in pairs_of if a.value != b.value and a.value]
    near = min(NEAR, max(apart, default=NEAR))
    chances = [min(1.0, 1 / (near * int(_digits(one).rstrip("0") or "1"))) for one in values]
    return same if chance_of(chances[: len(others)], len(same)) < CHANCE else []


def _told(metric: str, numbers: Sequence[Printed]) -> Said:
    return say("{metric}: {values}", metric=metric, values=listed(v.text for v in numbers))


def _printed_twice(first: _Row, second: _Row) -> Iterator[LedgerEntry]:
    if same := _same_numbers(first, second):
        yield LedgerEntry(
            severity=Severity.NOTE,
            rule="copies",
            sentence=say(
                "{system} has the same numbers in both publications: it was measured once, not "
                "together with each of the other systems",
                system=_title(first[0]),
            ),
            arithmetic=_told(first[1], same),
        )


def _digits_of(cells: Sequence[PublishedCell], first: str, second: str) -> LedgerEntry | None:
    """Entry for two systems with agreeing digits in more cells than by chance."""
    chances: list[float] = []
    alike: list[Said] = []
    for cell, other in pairs(list(cells), first, second):
        for metric, number, its in _comparable(cell, other):
            if metric == MEAN:
                chances.append(10.0**-number.decimals)
                is_alike = _same_fraction(number, its)
            else:
                chances.append(10.0**-TAIL)
                is_alike = _same_tail(number, its)
            if is_alike:
                alike.append(say("{one} and {other}", one=number.text, other=its.text))
    if len(alike) < ALIKE_MIN or (chance := chance_of(chances, len(alike))) >= CHANCE:
        return None
    return LedgerEntry(
        severity=Severity.OVER_CLAIM,
        rule="digits",
        sentence=say(
            "{alike} of {count} numbers of {first} and {second} differ by whole thousands of their"
            " last place or by whole milliseconds: they were not measured independently",
            alike=len(alike),
            count=len(chances),
            first=first,
            second=second,
        ),
        arithmetic=say(
            "{pairs}; by chance, only one in {times:.0e} publications has so many",
            pairs=listed(alike[:SHOWN], "; "),
            times=1 / max(chance, 1e-12),
        ),
    )


def _comparable(
    first: PublishedCell, second: PublishedCell
) -> Iterator[tuple[str, Printed, Printed]]:
    """Independent numbers: transactions or else queries, and the mean."""
    rates = [m for m in (TPS, QPS) if m in first.values and m in second.values]
    for metric in rates[:1]:
        number, its = first.values[metric], second.values[metric]
        if min(len(_digits(number)), len(_digits(its))) > TAIL + 1 and not _round(number, its):
            yield metric, number, its
    if MEAN in first.values and MEAN in second.values:
        number, its = first.values[MEAN], second.values[MEAN]
        if number.decimals == its.decimals >= 2 and not _round(number, its):
            yield MEAN, number, its


def _round(first: Printed, second: Printed) -> bool:
    """Tests if both end with a zero, as numbers with a coarser rounding do."""
    return _digits(first).endswith("0") and _digits(second).endswith("0")


def chance_of(chances: Sequence[float], alike: int) -> float:
    """Probability of at least so many of independent events, each with its chance."""
    first, so_many = 0, [1.0]  # the chance of exactly `first` events, of one more, and so on
    for chance in chances:
        stays = [*((1 - chance) * one for one in so_many), 0.0]
        grows = [0.0, *(chance * one for one in so_many)]
        so_many = [a + b for a, b in zip(stays, grows, strict=True)]
        while so_many[-1] < NEGLIGIBLE:
            so_many.pop()
        while so_many[0] < NEGLIGIBLE:
            so_many.pop(0)
            first += 1
    return sum(so_many[max(0, alike - first) :])


def _title(table: PublishedTable) -> str:
    parts = (table.system, table.workload, *(f"{k} {v}" for k, v in table.at.items()))
    return ", ".join(part for part in parts if part)


def _digits(number: Printed) -> str:
    known = number.text[: min(0, number.dropped) or None]
    return (known + "0" * number.dropped).replace(".", "").lstrip("0+-")


def _same_tail(number: Printed, other: Printed) -> bool:
    """Tests if different numbers of equal precision have the same last digits."""
    if number.decimals != other.decimals or number.value == other.value or _round(number, other):
        return False
    first, second = _digits(number), _digits(other)
    return min(len(first), len(second)) > TAIL + 1 and first[-TAIL:] == second[-TAIL:]


def _same_fraction(number: Printed, other: Printed) -> bool:
    """Tests if different times of equal precision differ by whole milliseconds."""
    if number.value == other.value:
        return False
    places = number.decimals
    return _digits(number)[-places:].zfill(places) == _digits(other)[-places:].zfill(places)


def _is_one_measurement(first: PublishedTable, second: PublishedTable) -> bool:
    (at, other_at) = (
        {name: value for name, value in table.at.items() if name not in (SECTION, *HIDDEN)}
        for table in (first, second)
    )
    return (first.system, first.workload, at) == (second.system, second.workload, other_at)
