"""A comparison in a sentence or two, as a person would say it.

    Compared with mysql:5.7.22, mysql:8.0.15 reads 13 % faster (1 to 30 %) and writes 55 % slower
    (51 to 58 %). Not enough data for oltp_insert (−3 to +9 %).

A few answers are named, many are counted by word. Numbers are rounded to what a person remembers;
tables and verdicts have all their digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import PARTED, Said, count, listed, name, phrase, say
from dbdyno.measurement.metric import BY_NAME, Better
from dbdyno.report.rows import workload_name
from dbdyno.report.tell.levels import Answer, ratio_of
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.verdicts import stood_still

NAMED_MAX: Final = 4
"""Most answers that are named; more are counted."""
TIMES_FROM: Final = 2.0
"""From this ratio on "2.3 times as fast" says more than "130 % faster"."""
WHOLE_FROM: Final = 0.1
"""From this share on a percentage is rounded to a whole number."""
VERBS: Final[Mapping[str, Said]] = {
    "oltp_read_only": say("reads"),
    "oltp_write_only": say("writes"),
    "oltp_read_write": say("reads and writes"),
}
"""Workloads for which a verb says what they do."""
DIFFERENT: Final = (Word.BETTER, Word.WORSE)
MISSING: Final[Mapping[Word, str]] = {
    Word.UNDECIDED: phrase("Not enough data for {places}."),
    Word.NO_VERDICT: phrase("Too few blocks for {places}."),
    Word.VOID: phrase("No usable trials for {places}."),
}
FEW_REQUESTS: Final = phrase("Too few requests in a trial for {places}.")
COUNTED: Final[Mapping[Word, str]] = {
    Word.BETTER: phrase("faster in {count}"),
    Word.WORSE: phrase("slower in {count}"),
    Word.EQUIVALENT: phrase("the same in {count}"),
    Word.UNDECIDED: phrase("not enough data in {count}"),
    Word.VOID: phrase("void in {count}"),
    Word.NO_VERDICT: phrase("no verdict in {count}"),
}
SPOKEN: Final[Mapping[Word, str]] = {
    **COUNTED,
    Word.UNDECIDED: phrase("without enough data in {count}"),
    Word.NO_VERDICT: phrase("without enough blocks in {count}"),
    Word.VOID: phrase("without usable trials in {count}"),
}
"""Counts of words as predicates of a system."""


def headline(answers: Sequence[Answer]) -> list[Said]:
    """Tell the answers of a comparison, for its workloads or cells; empty without any."""
    if not answers:
        return []
    return list(_named(answers)) if len(answers) <= NAMED_MAX else [_counted(answers)]


def _named(answers: Sequence[Answer]) -> Iterator[Said]:
    """Decided answers, then those without an answer by what is missing."""
    if decided := [_decided(answer) for answer in answers if answer.word not in MISSING]:
        yield say(
            "Compared with {baseline}, {system} {answers}.",
            baseline=answers[0].baseline,
            system=answers[0].system,
            answers=_series(decided),
        )
    missing = [answer for answer in answers if answer.word in MISSING]
    for template in (*MISSING.values(), FEW_REQUESTS):
        if places := [_undecided(answer) for answer in missing if _lack(answer) == template]:
            yield say(template, places=_series(places))


def _lack(answer: Answer) -> str:
    """The sentence about what an answer lacks."""
    if isinstance(answer, Verdict) and answer.lacks_requests:
        return FEW_REQUESTS
    return MISSING[answer.word]


def _counted(answers: Sequence[Answer]) -> Said:
    """Number of answers with each word, and the range of their differences."""
    first, counts = answers[0], []
    is_of_workloads = isinstance(first, GridSummary)
    for word, template in SPOKEN.items():
        if alike := [answer for answer in answers if answer.word is word]:
            part = say(template, count=len(alike))
            sizes = [ratio - 1 for ratio in map(ratio_of, alike) if ratio is not None]
            if word in DIFFERENT and sizes:
                part = say("{part} ({size})", part=part, size=_range(sizes))
            counts.append(part)
    return say(
        "Compared with {baseline} in {answers}, {system} is {counts}.",
        baseline=first.baseline,
        answers=count(len(answers), "workload") if is_of_workloads else count(len(answers), "cell"),
        system=first.system,
        counts=_series(counts),
    )


def _series(parts: Sequence[Said]) -> Said:
    """Parts as a person lists them: "a, b and c"."""
    return listed([listed(parts[:-1]), parts[-1]], " and ") if len(parts) > 1 else parts[0]


def _place(answer: Answer) -> Said:
    """The workload with its setting; the whole cell in an open loop, which has several rates."""
    if isinstance(answer, GridSummary):
        return name(workload_name(answer.workload, answer.setting))
    if answer.cell.rate_per_s is not None:
        return cell_title(answer.cell)
    return name(workload_name(*answer.cell.ladder))


def _decided(answer: Answer) -> Said:
    """A decided answer as a predicate of the system: "reads 13 % faster (1 to 30 %)"."""
    place, metric = _place(answer), BY_NAME[answer.metric]
    if isinstance(answer, Verdict) and answer.standstill is not None:
        still = stood_still(answer.standstill, answer.baseline, answer.system)
        return say("has no ratio in {place}: {still}", place=place, still=still)
    margin, is_alike = _percent(answer.margin), answer.word is Word.EQUIVALENT
    if metric.better is Better.LOWER:
        where = {"metric": metric_label(metric), "place": place}
        if is_alike:
            return say("has the same {metric} (within {margin}) in {place}", margin=margin, **where)
        return say(_LOWER if answer.word is Word.BETTER else _HIGHER, **_sizes(answer), **where)
    size = say("equally fast (within {margin})", margin=margin) if is_alike else _speed(answer)
    if verb := VERBS.get(place):
        return say("{verb} {size}", verb=verb, size=size)
    return say("is {size} in {place}", size=size, place=place)


_LOWER: Final = phrase("has a {size} lower {metric} ({range}) in {place}")
_HIGHER: Final = phrase("has a {size} higher {metric} ({range}) in {place}")
_FASTER: Final = phrase("{size} faster ({range})")
_SLOWER: Final = phrase("{size} slower ({range})")


def _speed(answer: Answer) -> Said:
    """A difference in speed with its interval: "13 % faster (1 to 30 %)"."""
    ratio = ratio_of(answer)
    if ratio is not None and ratio >= TIMES_FROM:
        times = phrase("{ratio:.1f} times as fast ({low:.1f} to {high:.1f} times)")
        return say(times, ratio=ratio, low=answer.low, high=answer.high)
    return say(_FASTER if answer.word is Word.BETTER else _SLOWER, **_sizes(answer))


def _sizes(answer: Answer) -> dict[str, Said]:
    """Size and range of a decided difference, without sign."""
    ratio, ends = ratio_of(answer), (answer.low, answer.high)
    if ratio is None:
        raise ValueError(f"{answer.word} without a ratio")
    shares = [end - 1 for end in ends if end is not None]
    return {"size": name(_percent(ratio - 1)), "range": _range(shares)}


def _undecided(answer: Answer) -> Said:
    """The place of an answer with its interval: "oltp_insert (−3 to +9 %)"."""
    place = _place(answer)
    if answer.low is None or answer.high is None:
        return place
    low, high = _signed(answer.low - 1), _signed(answer.high - 1)
    return say("{place} ({low} to {high} %)", place=place, low=low, high=high)


def _range(shares: Sequence[float]) -> Said:
    """The range of differences without their sign, the smallest first: "1 to 30 %"."""
    ends = sorted(map(abs, shares))
    low, high = _rounded(ends[0]), _percent(ends[-1])
    return name(high) if f"{low} %" == high else say("{low} to {high}", low=low, high=high)


def _percent(share: float) -> str:
    return f"{_rounded(share)} %"


def _rounded(share: float) -> str:
    """A share in per cent without its sign: "13", "0.5"."""
    percent = abs(share) * 100
    if abs(share) >= WHOLE_FROM:
        return f"{percent:,.0f}".replace(",", PARTED)
    return f"{percent:.1f}".removesuffix(".0")


def _signed(share: float) -> str:
    """A share in per cent with its sign: "+13", "−0.5", "0"."""
    rounded = _rounded(share)
    return rounded if rounded == "0" else f"{'+' if share > 0 else '−'}{rounded}"
