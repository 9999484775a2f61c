"""A verdict as a sentence, and a ratio as a change: 0.769 → "−23.1 %".

The one place for both, so that stdout, tables, charts and files agree on every digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.beside.accounting import Accounting
from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.beside.scalability import NoFit
from dbdyno.judge.estimate import Estimate
from dbdyno.judge.finding import Reason
from dbdyno.judge.standstill import Standstill
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import PARTED, Said, Text, clauses, count, listed, name, phrase, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import BLOCKS_FEW, BLOCKS_LOOKED_AHEAD, BLOCKS_MIN
from dbdyno.report.tell import lists
from dbdyno.report.tell.findings import check_name
from dbdyno.report.tell.lists import Values
from dbdyno.report.tell.measured import METRICS, metric_label
from dbdyno.report.tell.terms import term
from dbdyno.stats.open_loop import RateSide

THIN: Final = PARTED
MULTIPLE_FROM: Final = 10.0
"""From this ratio on, a multiple (×12.3) says more than a percentage."""


def sentence(verdict: Verdict) -> Said:
    """The verdict in plain words with its numbers.

    >>> "B is slower than A: TPS −23.1 % [−25.0, −21.2], 3 blocks (few)"
    """
    return filled_in(verdict, _numbers(verdict), needed(verdict))


def filled_in(judged: Verdict | GridSummary, numbers: Iterable[Said], needed: Said) -> Said:
    """The sentence of a word, for a cell or several together."""
    return say(
        SENTENCES[judged.word],
        system=judged.system,
        baseline=judged.baseline,
        margin=judged.margin * 100,
        numbers=clauses(numbers),
        needed=needed,
    )


SENTENCES: Final = {
    Word.BETTER: phrase("{system} is faster than {baseline}: {numbers}"),
    Word.WORSE: phrase("{system} is slower than {baseline}: {numbers}"),
    Word.EQUIVALENT: phrase("{system} and {baseline} are the same within {margin:g} %: {numbers}"),
    Word.UNDECIDED: phrase("not enough data for {system} against {baseline}: {numbers}; {needed}"),
    Word.VOID: phrase("{system} against {baseline} is void: {numbers}"),
    Word.NO_VERDICT: phrase("{system} against {baseline} has no verdict: {numbers}"),
}


def change(ratio: float) -> Said:
    """A ratio as a change: 0.769 → "−23.1 %", 12.3 → "×12.3"."""
    return name(_bare(ratio) + ("" if ratio >= MULTIPLE_FROM else " %"))


def change_with_interval(estimate: Estimate) -> Said | None:
    """A ratio with its 95 % interval: "−23.1 % [−25.0, −21.2]"; None without a ratio."""
    return interval_text(estimate.ratio, estimate.low, estimate.high)


def change_decided(verdict: Verdict) -> Said | None:
    """The ratio with the interval behind the word, which may be wider than the cell's own."""
    change = interval_text(verdict.estimate.ratio, verdict.low, verdict.high)
    if verdict.standstill is None:
        return change
    return without_ratio(stood_still(verdict.standstill, verdict.baseline, verdict.system), change)


def without_ratio(still: Said, change: Text | None) -> Said:
    """The text in place of a ratio if a system stood still; `change` is from the other blocks."""
    if change is None:
        return say("none ({stood_still})", stood_still=still)
    return say("{change} in the other blocks ({stood_still})", change=change, stood_still=still)


def stood_still(standstill: Standstill, baseline: str, system: str) -> Said:
    """Systems that stood still, with the number of blocks: "B stood still in 3 of 3 blocks"."""
    pairs = count(standstill.pairs, "block")
    clause = phrase("{who} stood still in {times} of {pairs}")
    parts = [
        say(clause, who=who, times=times, pairs=pairs)
        for who, times in ((system, standstill.system), (baseline, standstill.baseline))
        if times
    ]
    if standstill.both:
        parts.append(
            say("both stood still in {times} of {pairs}", times=standstill.both, pairs=pairs)
        )
    return listed(parts)


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
        yield say("{metric} {change}", metric=metric_label(BY_NAME[verdict.metric]), change=change)
    if verdict.blocks < BLOCKS_MIN:
        yield from map(reason, verdict.reasons)
    else:
        yield blocks_in_words(verdict.blocks)


def blocks_in_words(blocks: int) -> Said:
    """Number of blocks, with a word if they are few."""
    counted = count(blocks, "block")
    return say("{blocks} (few)", blocks=counted) if blocks < BLOCKS_FEW else counted


def needed(verdict: Verdict) -> Said:
    """Number of blocks to a decision with the time for the missing ones, or another way to it."""
    if verdict.blocks_needed is None and verdict.standstill is not None:
        return say("more blocks cannot decide this: where a system stands still there is no ratio")
    if verdict.steady_after_s is not None:
        return say(
            "throughput had not settled: warm up for about {time}",
            time=duration(verdict.steady_after_s),
        )
    if verdict.blocks_needed is None and any(one.kind == "cpu-taken" for one in verdict.reasons):
        return say("other processes took CPU: measure again when the machine is quiet")
    return more_blocks(verdict.blocks_needed, verdict.blocks, verdict.seconds_needed)


def more_blocks(needed: int | None, blocks: int, seconds: float | None) -> Said:
    """Number of blocks to a decision, with the time for the missing ones if it is known."""
    if needed is None:
        return say("a decision needs more than {most} blocks", most=_parted(BLOCKS_LOOKED_AHEAD))
    if seconds is None:
        return say("a decision needs about {blocks} blocks", blocks=_parted(needed))
    return say(
        "a decision needs about {blocks} blocks: {more} more, in about {time}",
        blocks=_parted(needed),
        more=_parted(needed - blocks),
        time=duration(seconds),
    )


def _parted(count: int) -> str:
    return f"{count:,}".replace(",", THIN)


def _bare(ratio: float) -> str:
    """One decimal, a true minus sign, no percent sign."""
    if ratio >= MULTIPLE_FROM:
        return f"×{ratio:,.1f}".replace(",", THIN)
    text = f"{(ratio - 1) * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


# Reasons: clauses that weaken or explain a word, and refusals of a scaling law.


def reason(why: Reason) -> Said:
    """The clause of a verdict's reason, or of a refusal."""
    return REASONS[why.kind](why.values)


def shared_reasons(verdicts: Sequence[Verdict]) -> list[Said]:
    """Reasons in which all verdicts agree, told once for all; empty for a single verdict."""
    every = [[reason(why) for why in verdict.reasons] for verdict in verdicts]
    several = len(every) > 1
    return [why for why in every[0] if all(why in of for of in every)] if several else []


def few_blocks(blocks: int) -> Said:
    """The reason behind "(few)" in a sentence."""
    return say("few blocks: {blocks} ({good} or more recommended)", blocks=blocks, good=BLOCKS_FEW)


def size_undecided(margin: float) -> Said:
    """The reason of a difference that is proven, and may be smaller than the margin."""
    return say(
        "not enough data to say whether the difference exceeds the margin of {margin:g} %",
        margin=margin * 100,
    )


def _checks(times: Mapping[str, int]) -> Said:
    """Names of checks, with how often each fired if more than once."""
    return listed(
        check_name(check)
        if number == 1
        else say("{check} ({times}×)", check=check_name(check), times=number)
        for check, number in times.items()
    )


def _alone(values: Values) -> Said:
    word = term(values["word"])
    return say(
        "the 95 % interval of this cell alone would say {word}; among {cells} cells this could be "
        "chance",
        word=say("{word} beyond the margin", word=word) if values["material"] else word,
        cells=values["cells"],
    )


SIDES: Final = {
    RateSide.ABOVE: phrase("above all measured rates"),
    RateSide.BELOW: phrase("below all measured rates"),
    RateSide.UNKNOWN: phrase("unknown (too few requests)"),
}


def _limit_outside(values: Values) -> Said:
    places = (
        say(
            "{where} in {count} of {blocks} blocks",
            where=say(SIDES[RateSide(side)]),
            count=times,
            blocks=values["blocks"],
        )
        for side, times in values["sides"].items()
    )
    return say(
        "the rate at which {system} meets the limit is {places}; give other rates with --rates",
        system=values["system"],
        places=listed(places),
    )


def _too_few_levels(values: Values) -> Said:
    why = say(
        "{whole} of {blocks} blocks have a valid trial at every load level; a fit needs {least}",
        whole=values["whole"],
        blocks=values["blocks"],
        least=values["least"],
    )
    if not values["levels"]:
        return why
    return say(
        "{why} (some blocks have none at {levels})", why=why, levels=_threads(values["levels"])
    )


def _lack_of_fit(values: Values) -> Said:
    seen = {"off": change(values["off"]), "level": _threads(values["levels"])}
    if "most" in values:
        most = name(change(1 + values["most"]).removeprefix("+"))
        return say(
            "poor fit: at {level} throughput differs by {off} from the fitted curve, over {most}",
            **seen,
            most=most,
        )
    return say(
        "poor fit: the blocks deviate from the fitted curve in the same way, most at {level} "
        "({off}), which is hardly chance (p = {chance})",
        **seen,
        chance=f"{values['chance']:.1g}",
    )


def _threads(levels: Sequence[int]) -> Said:
    if len(levels) == 1:
        return count(levels[0], "thread")
    return say("{levels} threads", levels=listed([str(level) for level in levels]))


IN_ONE_RUN: Final = {
    True: phrase("the earlier run does not compare their {metric} in this cell"),
    False: phrase("this run does not compare their {metric} in this cell"),
}
"""By whether the comparison is new."""


def differs(what: str, first: str, second: str) -> Said:
    """A condition that is not the same in two runs."""
    return say(
        "{what} was {first} in the earlier run and is {second} in this run",
        what=what,
        first=first,
        second=second,
    )


REASONS: Final[Mapping[str, Callable[[Values], Said]]] = {
    "too-few-blocks": lambda values: say(
        "{sound}; a verdict needs {least}",
        sound=count(values["blocks"], "valid block"),
        least=values["least"],
    ),
    "few-requests": lambda values: say(
        "{percentile} needs {needed} requests in each trial, one had {requests}: use a window of "
        "{window_s} s or more",
        **{**values, "percentile": METRICS[values["metric"]]},
    ),
    "few-blocks": lambda values: few_blocks(values["blocks"]),
    "size-undecided": lambda values: size_undecided(values["margin"]),
    "void": lambda values: say(
        "{lost} left out: {checks}",
        lost=count(values["trials"], "void trial"),
        checks=_checks(values["checks"]),
    ),
    "doubtful": lambda values: say("doubtful: {checks}", checks=_checks(values["checks"])),
    "stands-still": lists.stands_still,
    "alone": _alone,
    "most-blocks": lambda values: say(
        "this run is limited to {most}; a new run with more blocks would probably have enough data",
        most=count(values["blocks"], "block"),
    ),
    "warm-up": lambda values: say(
        "throughput had not settled: this may change the ratio by {low} to {high}, and the "
        "interval allows for it",
        low=change(1 + values["low"]),
        high=change(1 + values["high"]),
    ),
    "cpu-taken": lambda values: say(
        "other processes took CPU during the trials of {system}: this may change the ratio by "
        "{part}, and the interval allows for it",
        system=values["system"],
        part=change(1 + values["part"]),
    ),
    "limit-outside": _limit_outside,
    "in-one-run": lambda values: say(
        IN_ONE_RUN[values["is_new"]], metric=metric_label(BY_NAME[values["metric"]])
    ),
    "unlike": lambda values: differs(**values),
    "stood-still-before": lambda values: say(
        "{who} stood still in the earlier run, so there is no ratio to compare with", **values
    ),
    NoFit.CLIENT_BOUND: lambda values: say(
        "the load generator limited throughput at {levels}", levels=_threads(values["levels"])
    ),
    NoFit.STANDSTILL: lambda values: say(
        "the system stood still at {levels}: the curve cannot fit a throughput of 0",
        levels=_threads(values["levels"]),
    ),
    NoFit.FEW_BLOCKS: _too_few_levels,
    NoFit.NO_PEAK: lambda values: say("no peak up to {threads} threads", **values),
    NoFit.PEAK_NOT_REACHED: lambda values: say(
        "peak not reached: it lies beyond {threads} threads", **values
    ),
    NoFit.FALLS_FROM_START: lambda values: say(
        "throughput falls from {level} on", level=_threads(values["levels"])
    ),
    NoFit.SUPER_LINEAR: lambda values: say(
        "super-linear: throughput per thread changes by {gain} from {first} to {more}",
        more=_threads(values["more"]),
        gain=change(values["gain"]),
        first=_threads(values["first"]),
    ),
    NoFit.LACK_OF_FIT: _lack_of_fit,
}


FACTORS: Final = phrase(
    "server CPU per transaction × {cost}, server CPU in total × {use}, so throughput × {ratio}"
)
FACTORS_TAKEN: Final = phrase(
    "{factors}; other processes took {taken:.1%} more of the host's CPU during the trials of "
    "{system}"
)


def accounting(parts: Accounting) -> Said | None:
    """The two factors of a difference; None where both are too small for a word.

    >>> "server CPU per transaction × 2.11, in total × 1.12, so throughput × 0.535"
    """
    if parts.directions == (0, 0):
        return None
    factors = say(
        FACTORS,
        cost=f"{1 / parts.by_work:.3g}",
        use=f"{parts.by_use:.3g}",
        ratio=f"{parts.ratio:.3g}",
    )
    if not parts.is_taken:
        return factors
    return say(FACTORS_TAKEN, factors=factors, taken=parts.taken or 0.0, system=parts.system)
