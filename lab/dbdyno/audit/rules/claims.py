"""Do the publication's own tables say what its sentences say?

headline   a ratio that a sentence names is looked for in every subset that could have been meant:
           all cells, one value of an axis, one load level; against every other system; as a ratio
           of sums, a mean of ratios, or a ratio of peaks. It is told beside the value of all cells
means      a number called average is the mean of the others
words      a sentence that puts one system before another is held against each cell
figures    a throughput that a sentence names stands in a table
changes    a column of changes is what its two columns give: as a difference of either, or a ratio
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from statistics import geometric_mean
from typing import Final, NamedTuple

from dbdyno.audit.ledger import LedgerEntry, Severity
from dbdyno.audit.publication import (
    NUMBER,
    AuditedClaim,
    Printed,
    Publication,
    PublishedCell,
    pairs,
    subsets,
)
from dbdyno.audit.sentences import (
    ABOUT,
    ABOUT_SHARE,
    AVERAGE,
    BEYOND,
    WITHIN,
    Extent,
    Meaning,
    meaning,
    mentioned,
)
from dbdyno.language.words import Said, listed, say

FAR_SHARE: Final = 0.1
"""What "far" means at least."""
ALIKE_SHARE: Final = 0.03
"""Cells closer than this speak for nobody, unless the sentence knows no exception."""
PEAKS: Final = "ratio of peaks"
SHOWN: Final = 3
CHANGE: Final = re.compile(rf"({NUMBER.pattern})\s*(%|％|)(?:x|×|倍)?")
RATE: Final = re.compile(
    r"(?<![A-Za-z\d.,_-])(\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,9})?|\d{1,15}(?:\.\d{1,9})?)"
    r"\s*(k|万)?\s*(tps|qps)\b",
    re.IGNORECASE,
)
BEFORE_RATE: Final = re.compile(
    rf"(?:(?P<change>\b(?:by|another|additional|extra)|提升|提高|增加|增长|下降|降低|减少|高出|差)了?"
    rf"|(?P<beyond>{BEYOND})|(?P<within>{WITHIN})|(?P<about>{ABOUT}))\s*$",
    re.IGNORECASE,
)
"""How the words before a throughput say it: as a change, or with a bound."""


def check(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """Each claim: its numbers, then its words; one that nothing could be made of is a note."""
    labels = [*publication.systems, *(table.system for table in publication.tables)]
    yield from _changes(publication, cells)
    for claim in publication.claims:
        said = meaning(claim.text, labels, cells, claim.systems or ())
        yield from (
            [*_numbers(claim, said, cells), *_figures(claim, labels, cells), *_words(claim, said)]
            or [_not_checkable(claim, said)]
        )


def _not_checkable(claim: AuditedClaim, said: Meaning) -> LedgerEntry:
    if said.conditional:
        why = say("no cells are known to be those that it speaks of")
    elif not (said.subject and said.other):
        why = say("it is not plain which two systems are compared")
    else:
        why = say("no number and no order of two systems was found in it")
    return LedgerEntry(
        severity=Severity.NOTE,
        rule="claims",
        sentence=say("not checkable from what was printed"),
        arithmetic=why,
        place=claim.text,
    )


# Numbers.


class Wanted(NamedTuple):
    """A ratio that is looked for: what it is about, how it was printed, and its rounding."""

    about: str
    printed: str
    low: float
    high: float

    def agrees(self, value: float) -> bool:
        """Whether a value may have been printed so."""
        return self.low - 1e-9 <= value <= self.high + 1e-9


class Found(NamedTuple):
    """A way in which a number comes out of the tables."""

    where: str
    how: str
    against: str
    value: float
    cells: int

    @property
    def told(self) -> Said:
        """Where, how, and what."""
        return say(
            "{where}, {how}, against {against}: {value:.4g}",
            where=self.where,
            how=self.how,
            against=self.against,
            value=self.value,
        )


def _numbers(
    claim: AuditedClaim, said: Meaning, cells: list[PublishedCell]
) -> Iterator[LedgerEntry]:
    if not (said.subject and said.other):
        return
    for about, number in claim.values.items():
        if entry := _mean_of_others(claim, about, number):
            yield entry
            continue
        fitting = [cell for cell in cells if _is_about(about, cell)] or cells
        wanted = Wanted(about, number.text, number.low, number.high)
        yield _recomputed(claim, said, wanted, fitting)
    if claim.values or said.conditional:
        return
    for ratio in said.ratios:
        wanted = Wanted(said.subject, ratio.text, ratio.low, ratio.high)
        is_bound = ratio.is_range or ratio.low == 0 or ratio.high == float("inf")
        if said.extent is Extent.SOMEWHERE or is_bound:
            yield from _bounded(claim, said, wanted)
        elif pairs(list(said.cells), said.subject, said.other):
            yield _recomputed(claim, said, wanted, list(said.cells), elsewhere=cells)


def _mean_of_others(claim: AuditedClaim, about: str, number: Printed) -> LedgerEntry | None:
    """Whether it is the mean of the claim's other numbers, as its name says."""
    others = [one for name, one in claim.values.items() if name != about]
    if not re.search(r"avg|average|mean|平均", about) or len(others) < 2:
        return None
    mean = sum(one.value for one in others) / len(others)
    half = number.half + sum(one.half for one in others) / len(others)
    holds = abs(mean - number.value) <= half + 1e-9
    return LedgerEntry(
        severity=Severity.CONFIRMED if holds else Severity.CONTRADICTION,
        rule="means",
        sentence=say("{about} is the mean of the other numbers", about=about)
        if holds
        else say("{about} is not the mean of the other numbers", about=about),
        arithmetic=say(
            "mean of {values} = {mean:.4g}, printed {number}",
            values=listed(one.text for one in others),
            mean=mean,
            number=number.text,
        ),
        place=claim.text,
    )


def _is_about(about: str, cell: PublishedCell) -> bool:
    """Whether a number's name ("48G", "32 threads") is that of an axis value or a load level."""
    digits = re.findall(r"\d+", about)
    if not digits:
        return False
    threads = re.search(r"threads?|线程|并发|connections?|连接", about)
    if threads:
        return str(cell.threads) in digits
    return any(re.findall(r"\d+", value) == digits for value in cell.at.values())


def _recomputed(
    claim: AuditedClaim,
    said: Meaning,
    wanted: Wanted,
    cells: list[PublishedCell],
    elsewhere: Sequence[PublishedCell] = (),
) -> LedgerEntry:
    """The subset of the tables, and the comparator, of which a ratio is true.

    Args:
        elsewhere: cells that the sentence may mean beside those that it seems to name.
    """
    every = list(_ratios(cells, said.subject, said.metrics))
    close = [one for one in every if wanted.agrees(one.value)]
    whole = next((one for one in every if one.against == said.other), None)
    shown = {"about": wanted.about, "number": wanted.printed}
    others = () if close else _ratios(list(elsewhere), said.subject, said.metrics)
    for found in others:
        if wanted.agrees(found.value):
            return _headline(
                claim,
                Severity.OVER_CLAIM,
                say("{about}: {number} is what other cells give than it names", **shown),
                say("{told}; {whole}", told=found.told, whole=_beside(whole)),
            )
    if not close:
        return _headline(
            claim,
            Severity.CONTRADICTION,
            say(
                "{about}: {number} comes out of no subset of the tables, for {subject} against any"
                " other system",
                subject=said.subject,
                **shown,
            ),
            _beside(whole),
        )
    averaged = AVERAGE.search(claim.text) is not None

    def fits(one: Found) -> bool:
        return not averaged or one.how != PEAKS

    best = max(close, key=lambda one: (one.against == said.other, fits(one), one.cells))
    most = max((one.cells for one in every if one.against == best.against), default=0)
    if best.against == said.other and best.cells == most and fits(best):
        sentence = say("{about}: {number} is what the tables give", **shown)
        return _headline(claim, Severity.CONFIRMED, sentence, best.told)
    if best.against != said.other:
        sentence = say(
            "{about}: {number} holds against {found}, not against {against}",
            found=best.against,
            against=said.other,
            **shown,
        )
    else:
        sentence = say("{about}: {number} holds for a part of the cells only", **shown)
    told = say("{told}; {whole}", told=best.told, whole=_beside(whole))
    return _headline(claim, Severity.OVER_CLAIM, sentence, told)


def _bounded(claim: AuditedClaim, said: Meaning, wanted: Wanted) -> Iterator[LedgerEntry]:
    """A ratio that is reached somewhere ("up to"), or that none falls below ("over 30 %")."""
    beside = [one for one in _beside_each_other(said) if one[2].value > 0]
    if not beside:
        return
    ratios = sorted(((a.value / b.value, cell) for cell, a, b in beside), key=itemgetter(0))
    shown = {"about": wanted.about, "number": wanted.printed}
    far_end = ratios[0] if said.direction < 0 else ratios[-1]
    told = say("{cell}: {ratio:.4g}", cell=far_end[1].title, ratio=far_end[0])
    if said.extent is Extent.SOMEWHERE:
        ways = _ratios(list(said.cells), said.subject, said.metrics)
        peak = next((one for one in ways if _is_peak(one, said, wanted)), None)
        holds = wanted.agrees(far_end[0]) or peak is not None
        yield _headline(
            claim,
            Severity.CONFIRMED if holds else Severity.CONTRADICTION,
            say("{about}: {number} is what the tables give", **shown)
            if holds
            else say("{about}: {number} is not the farthest that the tables give", **shown),
            peak.told if peak and not wanted.agrees(far_end[0]) else told,
        )
        return
    reached = [cell for ratio, cell in ratios if wanted.agrees(ratio)]
    whole = sum(a.value for _, a, _ in beside) / sum(b.value for _, _, b in beside)
    if len(reached) == len(ratios):
        severity = Severity.CONFIRMED
    else:
        severity = Severity.OVER_CLAIM if wanted.agrees(whole) else Severity.CONTRADICTION
    yield _headline(
        claim,
        severity,
        say(
            "{about}: {number} is reached in {count} of {cells} cells",
            count=len(reached),
            cells=len(ratios),
            **shown,
        ),
        say("{told}; of the sums: {whole:.4g}", told=told, whole=whole),
    )


def _is_peak(found: Found, said: Meaning, wanted: Wanted) -> bool:
    """Whether "the peak is 30 % higher" is a ratio of the two systems' peaks."""
    return found.how == PEAKS and found.against == said.other and wanted.agrees(found.value)


def _headline(claim: AuditedClaim, severity: Severity, sentence: Said, told: Said) -> LedgerEntry:
    return LedgerEntry(
        severity=severity, rule="headline", sentence=sentence, arithmetic=told, place=claim.text
    )


def _beside(whole: Found | None) -> Said:
    if whole is None:
        return say("the two systems have no cell in common")
    return say(
        "all {cells} cells, {how}, against {against}: {value:.4g}",
        cells=whole.cells,
        how=whole.how,
        against=whole.against,
        value=whole.value,
    )


def _ratios(cells: list[PublishedCell], subject: str, metrics: Sequence[str]) -> Iterator[Found]:
    """Every ratio of the subject's values to another system's; all cells come first."""
    others = dict.fromkeys(cell.system for cell in cells if cell.system != subject)
    for against in others:
        beside = pairs(cells, subject, against)
        known = {cell.key: (cell, other) for cell, other in beside}
        for where, kept in subsets([cell for cell, _ in beside]):
            both = [known[cell.key] for cell in kept]
            for metric in metrics:
                values = [
                    (a.values[metric].value, b.values[metric].value)
                    for a, b in both
                    if metric in a.values and metric in b.values and b.values[metric].value > 0
                ]
                if values:
                    yield from _ways(where, against, values)


def _ways(where: str, against: str, values: Sequence[tuple[float, float]]) -> Iterator[Found]:
    own, other = (sum(column) for column in zip(*values, strict=True))
    count = len(values)
    yield Found(where, "ratio of sums", against, own / other, count)
    if count > 1:
        ratios = [a / b for a, b in values]
        yield Found(where, "mean of ratios", against, sum(ratios) / count, count)
        if min(ratios) > 0:
            middle = geometric_mean(ratios)
            yield Found(where, "geometric mean of ratios", against, middle, count)
        peak = max(a for a, _ in values) / max(b for _, b in values)
        yield Found(where, PEAKS, against, peak, count)


# Figures.


def _figures(
    claim: AuditedClaim, labels: Sequence[str], cells: list[PublishedCell]
) -> Iterator[LedgerEntry]:
    """A throughput in the sentence that stands in no table of the one system that it names."""
    named = {label for _, label in mentioned(claim.text, labels)}
    if len(named) != 1:
        return
    for match in rates_in(claim.text, labels):
        metric = match[3].lower()
        own = [c for c in cells if c.system in named and metric in c.values]
        said = _said_rate(match)
        if not own or said is None:
            continue
        value, low, high = said
        near = [c for c in own if low <= c.values[metric].high and c.values[metric].low <= high]
        closest = min(own, key=lambda c: abs(c.values[metric].value - value))
        yield LedgerEntry(
            severity=Severity.CONFIRMED if near else Severity.CONTRADICTION,
            rule="figures",
            sentence=say("{number} stands in a table", number=match[0])
            if near
            else say("{number} stands in no table of that system", number=match[0]),
            arithmetic=say(
                "{cell}: {value}",
                cell=(near[0] if near else closest).title,
                value=(near[0] if near else closest).values[metric].text,
            ),
            place=claim.text,
        )


def rates_in(text: str, labels: Iterable[str]) -> list[re.Match[str]]:
    """The throughputs in a sentence; the version behind a system ("MySQL 8.0 TPS") is none."""
    for label in sorted(set(filter(None, labels)), key=len, reverse=True):
        name = rf"(?<![A-Za-z0-9_.-]){re.escape(label)}(?![A-Za-z0-9_])"
        version = r"(?:[\s-]*v?\d{1,2}(?:\.\d{1,2})+)?"
        text = re.sub(name + version, lambda match: " " * len(match[0]), text, flags=re.IGNORECASE)
    return [*RATE.finditer(text)]


def _said_rate(match: re.Match[str]) -> tuple[float, float, float] | None:
    """A throughput as it is said, and between what it lies; None for a change of one.

    Zeros at the end may stand for digits that were left out: by a twentieth at most.
    """
    factor = {"k": 1e3, "万": 1e4}.get((match[2] or "").lower(), 1.0)
    said = Printed(text=match[1].replace(",", ""))
    zeros = 0 if "." in said.text else len(said.text) - len(said.text.rstrip("0"))
    behind = match.string[match.end() :]
    before = BEFORE_RATE.search(match.string[: match.start()])
    if before and before["change"]:
        return None
    half = max(said.half, min(0.5 * 10.0**zeros, ABOUT_SHARE * said.value))
    if (before and before["about"]) or re.match(r"\s*左右", behind):
        half = max(half, ABOUT_SHARE * said.value)
    low, high = (said.value - half) * factor, (said.value + half) * factor
    if (before and before["beyond"]) or re.match(r"\s*以上", behind):
        high = float("inf")
    elif before and before["within"] and before["within"].lower() != "up to":
        low = 0.0
    return said.value * factor, low, high


# Changes.


def _changes(publication: Publication, cells: list[PublishedCell]) -> Iterator[LedgerEntry]:
    """Printed changes that their own two numbers do not give; all that hold are one entry."""
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
    """Whether a number is a difference or a ratio of two, as a share or in percent."""
    if first.value <= 0 or second.value <= 0:
        return True  # of nothing there is no change that could be held against it
    up, down = second.value / first.value, first.value / second.value
    rounding = max(up, down) * (first.half / first.value + second.half / second.value)
    return any(
        abs(unit * way - printed.value) <= printed.half + unit * rounding + 1e-9
        for unit in ((100,) if is_percent else (1, 100))
        for way in (up - 1, down - 1, 1 - up, 1 - down, up, down)
    )


# Words.

Beside = tuple[PublishedCell, Printed, Printed]


def _words(claim: AuditedClaim, said: Meaning) -> Iterator[LedgerEntry]:
    """An order of two systems, cell by cell, as far as the sentence says that it reaches."""
    beside = _beside_each_other(said)
    if said.direction == 0 or said.conditional or not beside:
        return
    against_it = [one for one in beside if _speaks_against(one, said)]
    for_it = [one for one in beside if said.direction * (one[1].value - one[2].value) > 0]
    if said.extent is Extent.AVERAGE:
        holds = said.direction * sum(own.value - other.value for _, own, other in beside) > 0
    elif said.extent is Extent.SOMEWHERE:
        holds = bool(for_it)
    elif said.extent is Extent.MOSTLY:
        holds = 2 * len(for_it) > len(beside)
    else:
        holds = not against_it
    if not holds:
        yield _opposed(claim, said, against_it, beside)
    yield from _not_far(claim, said, beside)
    if holds:
        yield _word(
            claim,
            Severity.CONFIRMED,
            say("all {cells} cells agree", cells=len(beside))
            if not against_it
            else say("{count} of {cells} cells agree", count=len(for_it), cells=len(beside)),
            say("{subject} beside {against}", subject=said.subject, against=said.other),
        )


def _beside_each_other(said: Meaning) -> list[Beside]:
    """The cells that both systems have, with the first metric that any of them was printed in."""
    both = pairs(list(said.cells), said.subject, said.other) if said.subject else []
    for metric in said.metrics:
        found = [
            (cell, cell.values[metric], other.values[metric])
            for cell, other in both
            if metric in cell.values and metric in other.values
        ]
        if found:
            return found
    return []


def _speaks_against(one: Beside, said: Meaning) -> bool:
    _, own, other = one
    if said.extent is Extent.ALWAYS:
        return said.direction * (own.value - other.value) <= 0
    return said.direction * (own.value - other.value) < -ALIKE_SHARE * other.value


def _opposed(
    claim: AuditedClaim, said: Meaning, against_it: Sequence[Beside], beside: Sequence[Beside]
) -> LedgerEntry:
    always = said.extent is Extent.ALWAYS
    shown = {"count": len(against_it), "cells": len(beside)}
    return _word(
        claim,
        Severity.CONTRADICTION if always or len(against_it) == len(beside) else Severity.OVER_CLAIM,
        say(
            "{count} of {cells} cells say the opposite of a sentence that knows no exception",
            **shown,
        )
        if always
        else say("{count} of {cells} cells say the opposite", **shown),
        listed((_cell(one) for one in against_it[:SHOWN]), "; "),
    )


def _not_far(claim: AuditedClaim, said: Meaning, beside: Sequence[Beside]) -> Iterator[LedgerEntry]:
    near = [one for one in beside if abs(one[1].value - one[2].value) < FAR_SHARE * one[2].value]
    if said.far and near and said.extent not in (Extent.SOMEWHERE, Extent.AVERAGE):
        yield _word(
            claim,
            Severity.OVER_CLAIM,
            say(
                "the two are within {share:.0%} of each other in {count} of {cells} cells, which is"
                " not far",
                share=FAR_SHARE,
                count=len(near),
                cells=len(beside),
            ),
            _cell(near[0]),
        )


def _cell(one: Beside) -> Said:
    cell, own, other = one
    return say("{cell}: {own} against {other}", cell=cell.title, own=own.text, other=other.text)


def _word(claim: AuditedClaim, severity: Severity, sentence: Said, told: Said) -> LedgerEntry:
    return LedgerEntry(
        severity=severity, rule="words", sentence=sentence, arithmetic=told, place=claim.text
    )
