"""Rates within a latency limit as words: the same in the conclusion, in sections and on stdout."""

from __future__ import annotations

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import BlockLimit, RateLimit, RateSearch
from dbdyno.judge.wording import sentence
from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.numbers import NONE, number
from dbdyno.stats.open_loop import Side

SIDES = {Side.ABOVE: "≥ ", Side.BELOW: "< ", Side.BETWEEN: ""}
"""What stands before the rate of a block."""


def sentences(judgement: Judgement) -> list[Text]:
    """The answer in plain words, one sentence for each verdict, or for a system that is alone."""
    told: list[Text] = []
    for search in judgement.slo:
        told += [
            say("{place}: {verdict}.", place=title(search), verdict=sentence(verdict))
            for verdict in search.verdicts
        ]
        told.append(
            say(
                "{place}: {systems}.",
                place=title(search),
                systems=listed(
                    (
                        say("{system} sustains {rate}", system=one.system, rate=_rate(one))
                        for one in search.limits
                    ),
                    "; ",
                ),
            )
        )
    return told


def title(search: RateSearch) -> Text:
    """Workload, setting and limit."""
    return say(
        "{workload}{setting}, {label} within {limit:g} ms",
        workload=search.workload,
        setting="" if search.setting == "default" else f", {search.setting}",
        label=BY_NAME[search.metric].label,
        limit=search.limit_ms,
    )


def interval(limit: RateLimit) -> Text:
    """Its 95 % interval; a dash below three blocks."""
    if limit.low is None or limit.high is None:
        return NONE
    return name(f"{number(limit.low, 1)}, {number(limit.high, 1)}")


def in_block(block: BlockLimit) -> Text:
    """The rate of one block, or on which side of all rates it lies."""
    if block.rate_per_s is None:
        return NONE
    return name(f"{SIDES[block.side]}{number(block.rate_per_s, 1)}")


def _rate(limit: RateLimit) -> Text:
    """The rate with its interval, or on which side of all rates it lies."""
    if limit.rate_per_s is not None:
        rate = number(limit.rate_per_s, 1)
        if limit.low is None:
            return say("{rate} events/s", rate=rate)
        return say("{rate} events/s [{interval}]", rate=rate, interval=interval(limit))
    sides = dict.fromkeys(in_block(block) for block in limit.by_block)
    return say("{sides} events/s", sides=listed(sides, " / "))
