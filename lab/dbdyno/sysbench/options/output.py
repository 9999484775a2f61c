"""Options of the output: percentiles, intervals, checkpoints, and the format of the results."""

from __future__ import annotations

import math

from dbdyno.sysbench.options.values import Values, argument_error, fatal
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

TEXT = "text"
FORMATS = (TEXT, "json", "csv", "hlog")
STEP_S_MIN = 0.01
"""Shortest interval that the engine records."""

_US_PER_S = 1_000_000
_PERCENTILE = r"(?a)\+?([0-9]{1,9}(?:\.[0-9]{1,4})?)"
_INTERVAL = r"(?a)[+-]?[0-9]{1,9}(\.[0-9]{1,6})?|[+-]?\.[0-9]{1,6}"


class Percentile(NamedTuple):
    """A percentile and how it is written: 99.9 as "99.9", 95.0 as "95"."""

    percent: float
    text: str

    @classmethod
    def of(cls, percent: float) -> Percentile:
        """The percentile with its shortest name, which is the engine's name for it too."""
        return cls(percent, repr(percent).removesuffix(".0"))


class OutputOptions(NamedTuple):
    """The written output and its format.

    Attributes:
        percentiles: ascending, without repeats; empty if disabled.
        joined: percentiles of an interval line in the order typed; empty if each has its words.
        report_interval_s: seconds between interval lines; 0 for no lines.
        checkpoints_s: moments of reports in the middle, ascending, seconds of the measured time.
        format: one of `FORMATS`.
        file: path for a format other than text; empty for stdout, in place of the text.
    """

    percentiles: tuple[Percentile, ...]
    joined: tuple[Percentile, ...]
    report_interval_s: float
    checkpoints_s: tuple[int, ...]
    histogram: bool
    detail: bool
    format: str
    file: str

    @classmethod
    def of(cls, values: Values) -> OutputOptions:
        """Read and check them; Refusal if a value is out of range or contradicts another."""
        chosen, file = values.text("output"), values.text("output-file")
        if chosen not in FORMATS:
            raise fatal(
                f"Invalid value for --output: '{chosen}'. It must be one of {', '.join(FORMATS)}."
            )
        if file and chosen == TEXT:
            raise fatal("--output-file takes what --output=json, csv or hlog makes; give one")
        typed, shape = _percentiles(values), values.text("percentile-format")
        if shape not in ("separate", "joined"):
            raise fatal(
                f"Invalid value for --percentile-format: '{shape}'. It must be separate or joined."
            )
        options = cls(
            percentiles=tuple(sorted(set(typed))),
            joined=typed if shape == "joined" else (),
            report_interval_s=_report_interval_s(values),
            checkpoints_s=_checkpoints_s(values),
            histogram=values.flag("histogram"),
            detail=values.flag("detail"),
            format=chosen,
            file=file,
        )
        if options.histogram and not options.percentiles:
            raise fatal("--histogram cannot be used with --percentile=0")
        if options.step_s() < STEP_S_MIN:
            raise fatal(
                f"--report-interval={values.text('report-interval')} and --report-checkpoints have"
                f" no step in common of {STEP_S_MIN} s or more; take an interval such as 0.1"
            )
        return options

    def is_text(self) -> bool:
        """True if sysbench's text goes to stdout."""
        return self.format == TEXT or bool(self.file)

    def interval_s(self) -> float:
        """Length of the interval of a line or row; formats for machines have rows by default."""
        return self.report_interval_s or (60 if self.format == TEXT else 1)

    def step_s(self) -> float:
        """Length of the intervals to be recorded, which divides every interval and checkpoint."""
        parts_us = [
            round(part_s * _US_PER_S) for part_s in (self.interval_s(), *self.checkpoints_s)
        ]
        step_s = math.gcd(*parts_us) / _US_PER_S
        return int(step_s) if step_s.is_integer() else step_s

    def spec(self) -> dict[str, Any]:
        """The engine's fields."""
        spec: dict[str, Any] = {
            "interval_s": self.step_s(),
            "percentiles": [percentile.percent for percentile in self.percentiles],
        }
        if self.checkpoints_s or self.format == "csv":
            spec["tell_records"] = True  # whole records of live intervals
        return spec


def is_text_asked(argv: Sequence[str]) -> bool:
    """True if stdout belongs to sysbench's text; asked before the options are checked."""
    last: dict[str, str] = {}
    for argument in argv:
        name, _, value = argument.partition("=")
        last[name.replace("_", "-")] = value
    return last.get("--output", TEXT) == TEXT or bool(last.get("--output-file"))


def decimals(seconds: float) -> int:
    """Decimals of times that are multiples of `seconds`."""
    return len(f"{seconds:.6f}".rstrip("0").partition(".")[2])


def _percentiles(values: Values) -> tuple[Percentile, ...]:
    """Percentiles in the order typed; empty for 0."""
    numbers = []
    items = values.items("percentile")
    for item in items:
        number = _percent(item.strip())
        if number is None:
            raise argument_error(f"Invalid value for the 'percentile' option: '{item}'")
        if not 0 <= number <= 100:
            raise fatal(f"Invalid value for --percentile: {item.strip()}")
        numbers.append(number)
    if set(numbers) == {0.0}:
        return ()
    if 0.0 in numbers:
        raise fatal("Invalid value for --percentile: 0 disables them and stands alone.")
    return tuple(Percentile.of(number) for number in numbers)


def _percent(text: str) -> float | None:
    """The percentage; -1 for a negative number, None if not a number."""
    if _is_count(text):
        return float(text)
    import re  # noqa: PLC0415 - start-up time, as most are whole numbers

    if match := re.fullmatch(_PERCENTILE, text):
        return float(match[1])
    return -1.0 if re.fullmatch(r"-[0-9.]{1,9}", text, re.ASCII) else None


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _report_interval_s(values: Values) -> float:
    raw = (values.text("report-interval") or "0").strip()
    if not _is_count(raw):
        import re  # noqa: PLC0415 - as above

        if not re.fullmatch(_INTERVAL, raw):
            raise argument_error(f"Invalid value for the 'report_interval' option: '{raw}'")
    seconds = float(raw)
    if seconds < 0:
        raise fatal(f"Invalid value for --report-interval: {raw}. It must be 0 or more.")
    if 0 < seconds < STEP_S_MIN:
        raise fatal(
            f"Invalid value for --report-interval: {raw}. It must be 0 or at least {STEP_S_MIN} s."
        )
    return int(seconds) if seconds.is_integer() else seconds


def _checkpoints_s(values: Values) -> tuple[int, ...]:
    items = values.items("report-checkpoints")
    for item in items:
        if not _is_count(item.strip()) or int(item) < 1:
            raise fatal(f"Invalid value for --report-checkpoints: '{item}'")
    if len(items) > 256:
        raise fatal(f"Too many checkpoints in --report-checkpoints: {len(items)} of 256 at most")
    return tuple(sorted({int(item) for item in items}))
