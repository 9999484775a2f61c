"""Where a difference in throughput comes from: CPU per transaction, or CPU that was used.

Transactions/s are server cores used over server CPU of a transaction, so of two systems

    ln(TPS ratio) = −ln(CPU per transaction ratio) + ln(CPU used ratio)

holds exactly. The first part is the systems' own work. The second is CPU that one of them had and
the other had not: because others took it, or because it waited, or because the load took the rest.
Nothing is said where the server's CPU is unknown, where the cell is not about throughput, or where
the ratio is of parts of the windows only: CPU was taken over whole ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Final

from dbdyno.judge.audit import Sound
from dbdyno.judge.estimate import Pairs
from dbdyno.judge.verdict import Verdict
from dbdyno.judge.wording import change
from dbdyno.language.words import Said, phrase, say
from dbdyno.measurement.disturbance import disturbance_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.parts import Noun
from dbdyno.plan.controls import TRUTH

EFFECT_MIN: Final = 0.005
"""A part that changes throughput by less is not spoken of."""
Parts = tuple[float, float]
"""Logarithms of what work and use did to throughput."""
TAKEN_MIN: Final = 0.01
"""From this share of the host's CPU on, what others took more is named as a cause."""


class Accounting(Noun):
    """The parts of one ratio of throughputs; geometric means over the verdict's blocks.

    Attributes:
        ratio: of transactions/s, over whole windows: `by_work` × `by_use`.
        by_work: what CPU per transaction did to it; below 1 the system needs more than the
            baseline.
        by_use: what CPU used did to it: cores that the server used, against the baseline's.
        taken: share of the host's CPU that others took beside the system more than beside the
            baseline; None where nobody watched.
        blocks: sound pairs behind it.
    """

    cell: Cell
    baseline: str
    system: str
    ratio: float
    by_work: float
    by_use: float
    taken: float | None
    blocks: int


def accountings(pairs: Pairs, verdicts: Iterable[Verdict]) -> Iterator[Accounting]:
    """One for each verdict on throughput whose servers' CPU is known."""
    for verdict in verdicts:
        made = _accounting(pairs, verdict)
        if made is not None:
            yield made


def _accounting(pairs: Pairs, verdict: Verdict) -> Accounting | None:
    cell = verdict.cell
    below, above = (pairs.arm(cell, one) for one in (verdict.baseline, verdict.system))
    blocks = [block for block in below if block in above]
    if verdict.metric != PRIMARY.name or not blocks:
        return None
    both = [(below[block], above[block]) for block in blocks]
    known: list[Parts] = []
    for block in blocks:
        again = pairs.again(cell, verdict.baseline, block)
        parts = [_parts(one, above[block]) for one in (below[block], *again)]
        if None in parts:
            return None
        known.append(_mean(part for part in parts if part is not None))
    by_work, by_use = map(math.exp, _mean(known))
    if abs(math.log(by_work * by_use / (verdict.estimate.ratio or 1.0))) > EFFECT_MIN:
        return None
    return Accounting(
        cell=verdict.cell,
        baseline=verdict.baseline,
        system=verdict.system,
        ratio=by_work * by_use,
        by_work=by_work,
        by_use=by_use,
        taken=_taken(both),
        blocks=len(both),
    )


def _mean(parts: Iterable[Parts]) -> Parts:
    work, use = (fmean(logs) for logs in zip(*parts, strict=True))
    return work, use


def _parts(baseline: Sound, system: Sound) -> Parts | None:
    """Logarithms of both parts in one block; the server's CPU was taken over whole windows.

    What is planted into a control's load takes work from the server, and so CPU that it uses.
    """
    below, above = baseline.measurement, system.measurement
    counted = [(m.events, m.server.cpu_s, m.window_s) for m in (below, above)]
    if any(value <= 0 for trial in counted for value in trial):
        return None
    (events, cpu_s, window_s), (events_of, cpu_s_of, window_s_of) = counted
    work = math.log((cpu_s / events) / (cpu_s_of / events_of))
    use = math.log((cpu_s_of / window_s_of) / (cpu_s / window_s))
    return work, use + math.log(TRUTH[baseline.trial.control])


def _taken(both: Iterable[tuple[Sound, Sound]]) -> float | None:
    seen = [tuple(disturbance_of(one.measurement) for one in pair) for pair in both]
    shares = [above.share - below.share for below, above in seen if below and above]
    return fmean(shares) if len(shares) == len(seen) else None


# Words for each pair of directions in which work and use moved throughput (1: up, −1: down).
SENTENCES: Final[Mapping[tuple[int, int], str]] = {
    (-1, -1): phrase(
        "of {total}, {work} is more server CPU per transaction; the rest, {use}, is less CPU used"
    ),
    (-1, 0): phrase("{total} is more server CPU per transaction; both used as much CPU"),
    (-1, 1): phrase(
        "more server CPU per transaction alone would be {work}; more CPU used makes it {total}"
    ),
    (0, -1): phrase("{total} is less CPU used; a transaction takes as much server CPU on both"),
    (0, 1): phrase("{total} is more CPU used; a transaction takes as much server CPU on both"),
    (1, -1): phrase(
        "less server CPU per transaction alone would be {work}; less CPU used makes it {total}"
    ),
    (1, 0): phrase("{total} is less server CPU per transaction; both used as much CPU"),
    (1, 1): phrase(
        "of {total}, {work} is less server CPU per transaction; the rest, {use}, is more CPU used"
    ),
}
TAKEN: Final[Mapping[int, str]] = {
    -1: phrase(
        "of {total}, {work} is more server CPU per transaction; the rest, {use}, is CPU that it "
        "did not get: others took {taken:.1%} of the host's CPU more beside it"
    ),
    0: phrase(
        "{total} is CPU that it did not get: others took {taken:.1%} of the host's CPU more beside "
        "it; a transaction takes as much server CPU on both"
    ),
    1: phrase(
        "less server CPU per transaction alone would be {work}; CPU that it did not get makes it "
        "{total}: others took {taken:.1%} of the host's CPU more beside it"
    ),
}
"""Where less CPU was used and others took more of it."""


def accounting_text(found: Accounting) -> Said | None:
    """Both parts in one clause; None where neither is worth a word.

    >>> "of −38.9 %, −22.6 % is more server CPU per transaction; the rest, −21.1 %, is CPU that …"
    """
    work, use = _direction(found.by_work), _direction(found.by_use)
    if not work and not use:
        return None
    is_taken = use < 0 and (found.taken or 0.0) >= TAKEN_MIN
    return say(
        TAKEN[work] if is_taken else SENTENCES[work, use],
        total=change(found.ratio),
        work=change(found.by_work),
        use=change(found.by_use),
        taken=found.taken or 0.0,
    )


def _direction(part: float) -> int:
    if abs(math.log(part)) < EFFECT_MIN:
        return 0
    return 1 if part > 1 else -1
