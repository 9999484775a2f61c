"""A verdict as a sentence, and a ratio as the change it means: 0.769 → "−23.1 %".

The one place for both, so that stdout, tables, charts and files agree on every digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dbdyno.judge.estimate import Estimate
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import PARTED, Said, Text, clauses, count, name, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.plan.plan import BLOCKS_FEW, BLOCKS_LOOKED_AHEAD, BLOCKS_MIN

THIN: Final = PARTED
MULTIPLE_FROM: Final = 10.0
"""From that ratio on, a multiple (×12.3) says more than a percentage."""


def sentence(verdict: Verdict) -> Said:
    """The verdict in plain words with its numbers.

    >>> "B is worse than A: TPS −23.1 % [−25.0, −21.2], 3 blocks (few)"
    """
    return say(
        SENTENCES[verdict.word],
        system=verdict.system,
        baseline=verdict.baseline,
        margin=verdict.margin * 100,
        numbers=clauses(_numbers(verdict)),
        needed=needed(verdict),
    )


SENTENCES: Final = {
    Word.BETTER: phrase("{system} is better than {baseline}: {numbers}"),
    Word.WORSE: phrase("{system} is worse than {baseline}: {numbers}"),
    Word.EQUIVALENT: phrase(
        "{system} and {baseline} are equivalent within {margin:g} %: {numbers}"
    ),
    Word.UNDECIDED: phrase("{system} against {baseline} is undecided: {numbers}; {needed}"),
    Word.VOID: phrase("{system} against {baseline} is void: {numbers}"),
    Word.NO_VERDICT: phrase("{system} against {baseline} has no verdict: {numbers}"),
}


def change(ratio: float) -> Said:
    """A ratio as a change: 0.769 → "−23.1 %", 12.3 → "×12.3"."""
    return name(_bare(ratio) + ("" if ratio >= MULTIPLE_FROM else " %"))


def change_with_interval(estimate: Estimate | ControlOutcome) -> Said | None:
    """A ratio with its 95 % interval: "−23.1 % [−25.0, −21.2]"; None without a ratio."""
    return interval_text(estimate.ratio, estimate.low, estimate.high)


def change_decided(verdict: Verdict) -> Said | None:
    """The ratio with the interval that gave the word, which may be wider than the cell's own."""
    change = interval_text(verdict.estimate.ratio, verdict.low, verdict.high)
    if verdict.standstill is not None:
        return without_ratio(verdict.standstill.said(verdict.baseline, verdict.system), change)
    if change is None or verdict.cells == 1:
        return change
    return say("{change} adjusted for {cells} cells", change=change, cells=verdict.cells)


def without_ratio(stood_still: Said, change: Text | None) -> Said:
    """What stands in place of a ratio where one stood still; `change` is that of other blocks."""
    if change is None:
        return say("none ({stood_still})", stood_still=stood_still)
    return say("{change} in the others ({stood_still})", change=change, stood_still=stood_still)


def interval_text(ratio: float | None, low: float | None, high: float | None) -> Said | None:
    """A ratio and the ends of its interval as the changes they mean."""
    if ratio is None:
        return None
    if low is None or high is None:
        return change(ratio)
    return name(f"{change(ratio)} [{_bare(low)}, {_bare(high)}]")


def duration(seconds: float) -> Said:
    """Seconds as a person says them: `45 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes_of_hour = divmod(minutes, 60)
    if hours:
        return say("{hours} h {minutes:02} min", hours=hours, minutes=minutes_of_hour)
    if minutes:
        return say("{minutes} min {seconds:02} s", minutes=minutes, seconds=rest)
    return say("{seconds} s", seconds=rest)


def _numbers(verdict: Verdict) -> Iterator[Said]:
    change = change_decided(verdict)
    if change is not None and verdict.word is not Word.VOID:
        yield say("{metric} {change}", metric=BY_NAME[verdict.metric].label, change=change)
    if verdict.blocks < BLOCKS_MIN:
        yield from verdict.reasons
    elif verdict.blocks < BLOCKS_FEW:
        yield say("{blocks} (few)", blocks=count(verdict.blocks, "block"))
    else:
        yield count(verdict.blocks, "block")


def needed(verdict: Verdict) -> Said:
    """How many blocks would decide and how long the missing ones take, or what else would."""
    blocks = verdict.blocks_needed
    if blocks is None and verdict.standstill is not None:
        return say("blocks without a ratio are not decided by more of them")
    if verdict.steady_after_s is not None:
        return say(
            "the rates had not settled: warm up for about {time}",
            time=duration(verdict.steady_after_s),
        )
    if blocks is None:
        return say(
            "to decide would take more than {most} blocks", most=_parted(BLOCKS_LOOKED_AHEAD)
        )
    if verdict.seconds_needed is None:
        return say("to decide would take about {blocks} blocks", blocks=_parted(blocks))
    return say(
        "to decide would take about {blocks} blocks, {more} more in about {time}",
        blocks=_parted(blocks),
        more=_parted(blocks - verdict.blocks),
        time=duration(verdict.seconds_needed),
    )


def _parted(count: int) -> str:
    return f"{count:,}".replace(",", THIN)


def _bare(ratio: float) -> str:
    """One decimal, a true minus sign, no percent sign."""
    if ratio >= MULTIPLE_FROM:
        return f"×{ratio:,.1f}".replace(",", THIN)
    text = f"{(ratio - 1) * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
