"""Print numbers: one place, so that tables, sentences and charts agree on every digit.

A benchmark can carry four significant digits; more would pretend. Thousands are parted by a narrow
no-break space, which no locale mistakes for a decimal point. A ratio is printed as a change (0.769
→ −23.1 %), by the judge's own `wording`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from dbdyno.judge.estimate import Estimate
from dbdyno.judge.interval import Typical
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import BlockLimit, RateLimit, RateSearch
from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import PARTED, Text, listed, name, phrase, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, Metric
from dbdyno.plan.known import Fact, Known
from dbdyno.report.tell import verdicts as wording
from dbdyno.report.tell.measured import metric_label
from dbdyno.report.tell.terms import Sentence, fitting
from dbdyno.report.tell.verdicts import sentence
from dbdyno.stats.open_loop import RateSide

NONE: Final = name("—")
"""Stands for a missing number."""
UNKNOWN_PERCENTILE: Final = (
    Sentence(phrase("not enough requests"), Fact.HERE),
    Sentence(phrase("not printed"), Fact.ELSEWHERE),
)
"""A percentile with fewer than 100 requests beyond it (docs/how-it-works/stability.md), or that
another tool's log or table does not have."""
SIGNIFICANT_DIGITS: Final = 4
DECIMALS_BELOW_ONE: Final = 3


def number(value: float | None, decimals_max: int = 2) -> Text:
    """Four significant digits, thousands parted; whole numbers keep all their digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return name("0")
    exponent = math.floor(math.log10(abs(value)))
    most = decimals_max if abs(value) >= 1 else max(decimals_max, DECIMALS_BELOW_ONE)
    decimals = min(max(SIGNIFICANT_DIGITS - 1 - exponent, 0), most)
    return name(f"{value:,.{decimals}f}".replace(",", PARTED).replace("-", "−"))


def metric_value(judgement: Judgement, cell: Cell, system: str, metric: Metric) -> Text:
    """A table's cell for one system: a number, a reason for a missing percentile, or a dash."""
    value = judgement.value(cell, system, metric.name)
    return NONE if value is None else measured_value(value.value, metric, judgement.known)


def measured_value(value: float | None, metric: Metric, known: Known) -> Text:
    """A measurement's value, printed as `metric_value` does."""
    if value is None:
        return too_few(known) if metric.quantile is not None else NONE
    return number(value, metric.decimals)


def too_few(known: Known) -> Text:
    """Text for a percentile without a value: "not enough requests", or for another tool's run "not
    printed"."""
    return fitting(UNKNOWN_PERCENTILE, known)


def change(ratio: float | None) -> Text:
    """A ratio as a change: 0.769 → "−23.1 %"; a dash without a ratio."""
    return NONE if ratio is None or not math.isfinite(ratio) else name(wording.change(ratio))


def change_with_interval(estimate: Estimate | None) -> Text:
    """A ratio with its 95 % interval: "−23.1 % [−25.0, −21.2]"; a dash without a ratio."""
    return NONE if estimate is None else _said(wording.change_with_interval(estimate))


def interval(ratio: float | None, low: float | None, high: float | None) -> Text:
    """A ratio and the ends of its interval as the changes they mean; a dash without a ratio."""
    return _said(wording.interval_text(ratio, low, high))


def typical_value(typical: Typical | None) -> Text:
    """A typical value with its interval: "63.2 [60.1, 66.5]"; a dash without a value."""
    if typical is None:
        return NONE
    return _with_ends(typical, lambda value: number(value, 1))


def coefficient(typical: Typical | None) -> Text:
    """As `typical_value`, with three significant digits however small: "0.00042 [0.0004, …]"."""
    if typical is None:
        return NONE
    return _with_ends(typical, lambda value: f"{value:.3g}".replace("-", "−"))


def signed(value: float) -> Text:
    """A difference: "+30.2", "−4.1"; four significant digits."""
    return name(f"+{number(value)}") if value > 0 else number(value)


def difference(value: float, low: float, high: float) -> Text:
    """A difference with its interval: "+30.2 [+28.1, +32.3]"."""
    return name(f"{signed(value)} [{signed(low)}, {signed(high)}]")


def percentage(value: float | None) -> Text:
    """A share to three significant digits: 0.0312 → "3.12 %"; a dash without a value."""
    return NONE if value is None else name(f"{value * 100:.3g} %".replace("-", "−"))


def _with_ends(typical: Typical, printed: Callable[[float], str]) -> Text:
    if typical.low is None or typical.high is None:
        return name(printed(typical.value))
    return name(f"{printed(typical.value)} [{printed(typical.low)}, {printed(typical.high)}]")


def _said(value: str | None) -> Text:
    return NONE if value is None else name(value)


def decided(verdict: Verdict) -> Text:
    """A verdict's ratio with the interval behind its word; a dash without a ratio."""
    return wording.change_decided(verdict) or NONE


def seconds(value: float) -> Text:
    """A duration: "15 s", "0.5 s"."""
    return name(f"{value:g} s")


def share(value: float) -> Text:
    """A share as a percentage without sign: 0.02 → "2 %"."""
    return name(f"{value * 100:g} %")


def mebibytes(size: float) -> Text:
    """A size in MiB, or in GiB from 10 GiB on."""
    mib = size / 2**20
    return name(f"{number(mib / 1024, 1)} GiB" if mib >= 10 * 1024 else f"{number(mib, 0)} MiB")


# The machine's features, which a run stores under short English names. Names and values outside
# these tables stay as they are.

FEATURES: Final[Mapping[str, Text]] = {
    "cpu": say("cpu"),
    "cores": say("cores"),
    "memory": say("memory"),
    "swap": say("swap"),
    "kernel": say("kernel"),
    "distribution": say("distribution"),
    "virtualisation": say("virtualisation"),
    "governor": say("governor"),
    "clocksource": say("clocksource"),
    "filesystem": say("filesystem"),
    "storage": say("storage"),
    "storage_kind": say("kind of storage"),
    "io_scheduler": say("I/O scheduler"),
    "numa_nodes": say("NUMA nodes"),
    "transparent_huge_pages": say("transparent huge pages"),
}
VALUES: Final[Mapping[str, Text]] = {
    "unknown": say("unknown"),
    "none seen": say("none seen"),
    "virtual machine": say("virtual machine"),
    "container": say("container"),
    "virtual": say("virtual disk"),
    "virtual (virtio)": say("virtual disk (virtio)"),
    "virtual (Xen)": say("virtual disk (Xen)"),
    "rotational": say("rotating disk"),
    "memory": say("memory"),
}
PRODUCT: Final = re.compile(r"virtual machine \((.+)\)")
CORES: Final = re.compile(r"(\d+) logical, (\d+) usable")


def what(feature: str) -> Text:
    """A feature's name."""
    return FEATURES.get(feature, name(feature))


def value_of(value: str) -> Text:
    """A feature's value, in translatable words where they are known."""
    if cores := CORES.fullmatch(value):
        return say("{logical} logical, {usable} usable", logical=cores[1], usable=cores[2])
    parts = [_found(part) for part in value.split(", ")]
    return listed(part or name("") for part in parts) if all(parts) else name(value)


def _found(value: str) -> Text | None:
    """Translatable words for a single value; None for an unknown value."""
    if product := PRODUCT.fullmatch(value):
        return say("virtual machine ({product})", product=product[1])
    return VALUES.get(value)


# Rates within a latency limit: the same words in the conclusion, in sections and on stdout.

SIDES = {RateSide.ABOVE: "≥ ", RateSide.BELOW: "< ", RateSide.BETWEEN: ""}
"""Sign before the rate of a block."""


def sentences(judgement: Judgement) -> list[Text]:
    """Sentences on rates within a latency limit: each verdict, then the rate sustained by each
    system."""
    lines: list[Text] = []
    for search in judgement.slo:
        lines += [
            say("{place}: {verdict}.", place=title(search), verdict=sentence(verdict))
            for verdict in search.verdicts
        ]
        lines.append(
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
    return lines


def title(search: RateSearch) -> Text:
    """Workload, setting and limit."""
    return say(
        "{workload}{setting}, {label} within {limit:g} ms",
        workload=search.workload,
        setting="" if search.setting == "default" else f", {search.setting}",
        label=metric_label(BY_NAME[search.metric]),
        limit=search.limit_ms,
    )


def limit_interval(limit: RateLimit) -> Text:
    """The 95 % interval of a limit; a dash if it is missing."""
    if limit.low is None or limit.high is None:
        return NONE
    return name(f"{number(limit.low, 1)}, {number(limit.high, 1)}")


def in_block(block: BlockLimit) -> Text:
    """The rate of a block; with ≥ or < if it lies above or below all rates."""
    if block.rate_per_s is None:
        return NONE
    return name(f"{SIDES[block.side]}{number(block.rate_per_s, 1)}")


def _rate(limit: RateLimit) -> Text:
    """The rate with its interval, and on which side of all rates it lies in how many blocks."""
    outside = [block for block in limit.by_block if block.side is not RateSide.BETWEEN]
    sides = listed(dict.fromkeys(map(in_block, outside)), " / ")
    if limit.rate_per_s is None:
        return say("{sides} transactions/s", sides=sides)
    rate = number(limit.rate_per_s, 1)
    if outside:
        return say(
            "{rate} transactions/s in {count} of {blocks} blocks, in the others {sides}",
            rate=rate,
            count=limit.blocks,
            blocks=len(limit.by_block),
            sides=sides,
        )
    if limit.low is None:
        return say("{rate} transactions/s", rate=rate)
    return say("{rate} transactions/s [{interval}]", rate=rate, interval=limit_interval(limit))
