"""How numbers are printed: one place, so that tables, sentences and charts agree on every digit.

Four significant digits are what a benchmark can carry; more would pretend. Thousands are parted by
a narrow no-break space, which no locale mistakes for a decimal point. A ratio is printed as the
change it means (0.769 → −23.1 %), by the judge's own `wording`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dbdyno.judge import ControlOutcome, Estimate, SystemValue, Verdict, wording
from dbdyno.judge.typical import Typical
from dbdyno.judge.wording import THIN
from dbdyno.metric import Metric

NONE: Final = "—"
"""There is no such number."""
TOO_FEW: Final = "not enough requests"
"""A percentile with fewer than 100 requests beyond it (method.md 1.f.2)."""
SIGNIFICANT_DIGITS: Final = 4
DECIMALS_BELOW_ONE: Final = 3


def number(value: float | None, decimals_max: int = 2) -> str:
    """Four significant digits, thousands parted; whole numbers keep all their digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    most = decimals_max if abs(value) >= 1 else max(decimals_max, DECIMALS_BELOW_ONE)
    decimals = min(max(SIGNIFICANT_DIGITS - 1 - exponent, 0), most)
    return f"{value:,.{decimals}f}".replace(",", THIN).replace("-", "−")


def count(value: int, what: str) -> str:
    """A whole number with its noun: "1 block", "1 200 blocks"."""
    return f"{value:,} {what}{'' if value == 1 else 's'}".replace(",", THIN)


def metric_value(value: SystemValue | None, metric: Metric) -> str:
    """A table's cell for one system: a number, "not enough requests", or a dash if unseen."""
    return NONE if value is None else measured_value(value.value, metric)


def measured_value(value: float | None, metric: Metric) -> str:
    """One measurement's value, or as `metric_value` says why there is none."""
    if value is None:
        return TOO_FEW if metric.quantile is not None else NONE
    return number(value, metric.decimals)


def change(ratio: float | None) -> str:
    """A ratio as a change, as the judge says it: 0.769 → "−23.1 %"; a dash for none."""
    return NONE if ratio is None or not math.isfinite(ratio) else wording.change(ratio)


def change_with_interval(estimate: Estimate | ControlOutcome | None) -> str:
    """A ratio with its 95 % interval: "−23.1 % [−25.0, −21.2]"; a dash without a ratio."""
    return (estimate and wording.change_with_interval(estimate)) or NONE


def ratio_with_interval(ratio: Typical) -> str:
    """A ratio of blocks as the change it means, with its interval: "−23.1 % [−25.0, −21.2]"."""
    return wording.interval_text(ratio.value, ratio.low, ratio.high) or NONE


def typical_value(found: Typical | None, decimals_max: int = 2) -> str:
    """A typical value with its interval: "63.2 [60.1, 66.5]"; a dash for none."""
    if found is None:
        return NONE
    return _with_ends(found, lambda value: number(value, decimals_max))


def coefficient(found: Typical | None) -> str:
    """As `typical_value`, with three significant digits however small: "0.00042 [0.0004, …]"."""
    if found is None:
        return NONE
    return _with_ends(found, lambda value: f"{value:.3g}".replace("-", "−"))


def percentage(value: float | None) -> str:
    """A share to three significant digits: 0.0312 → "3.12 %"; a dash for none."""
    return NONE if value is None else f"{value * 100:.3g} %".replace("-", "−")


def _with_ends(found: Typical, told: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return told(found.value)
    return f"{told(found.value)} [{told(found.low)}, {told(found.high)}]"


def decided(verdict: Verdict) -> str:
    """A verdict's ratio with the interval that gave the word; a dash without a ratio.

    With several cells it is wider than the cell's own, since they hold together.
    """
    return wording.interval_text(verdict.estimate.ratio, verdict.low, verdict.high) or NONE


def seconds(value: float) -> str:
    """A duration: "15 s", "0.5 s"."""
    return f"{value:g} s"


def share(value: float) -> str:
    """A share as a percentage without sign: 0.02 → "2 %"."""
    return f"{value * 100:g} %"


def mebibytes(size: float) -> str:
    """A size in MiB, or in GiB from 10 GiB on."""
    mib = size / 2**20
    return f"{number(mib / 1024, 1)} GiB" if mib >= 10 * 1024 else f"{number(mib, 0)} MiB"
