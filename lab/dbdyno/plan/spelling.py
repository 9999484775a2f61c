"""Short ways of writing a plan, spelled out before the plan is checked.

Each short way has one long one, which `plan.Plan` describes; a value that fits neither is left as
it stands, so that the check's message shows what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dbdyno.errors import PlanMistake
from dbdyno.plan.document import Document, Path, place
from dbdyno.plan.plan import label_of

_DURATION = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*(ms|s|m|min|h)\s*")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_PERCENT = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*%\s*")

TIMES: Final[Mapping[str, Mapping[str, str]]] = {
    "trial": {"warmup": "warmup_s", "warmup_cap": "warmup_cap_s", "window": "window_s"},
    "design": {"budget": "budget_s"},
    "procedure": {"settle_cap": "settle_cap_s"},
    "network": {"client": "client_ms", "replica": "replica_ms"},
    "topology": {"timeout": "timeout_s"},
}
"""Part of a plan: its keys that take a time with its unit, and what they are called in numbers."""

AUTO: Final = "auto"
"""A warm-up that lasts until the load is steady."""

SWITCHES: Final = ("thread_pool", "prepared_statements", "binlog")
"""Axes whose values are on and off; YAML's true and false are taken for them."""

SLO_WANTED: Final = "must be a percentile and a time such as p99=20ms"
LISTS: Final = ("durability", "buffer_pool", "redo_log", *SWITCHES)
"""Axes that are lists of words; a single value is a list of one, and a number is a word."""


def duration_ms(value: object) -> object:
    """Milliseconds of ``0.8ms``, ``90s``, ``2m`` or ``1h``; anything else comes back as it is."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) * _MILLISECONDS[match[2]] if match else value


def duration_s(value: object) -> object:
    """Seconds of ``90s``, ``2m`` or ``1h``; anything else comes back as it is."""
    time_ms = duration_ms(value)
    return time_ms / 1000 if isinstance(value, str) and isinstance(time_ms, float) else value


def ratio(value: object) -> object:
    """0.02 of ``2%``; anything else comes back as it is."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else value


def latency_limit(value: object) -> object:
    """``{metric: p99, limit_ms: 20}`` of ``p99=20ms``; anything else comes back as it is."""
    metric, equals, limit = value.partition("=") if isinstance(value, str) else ("", "", "")
    time_ms = duration_ms(limit)
    if not equals or not isinstance(time_ms, float):
        return value
    return {"metric": metric.strip(), "limit_ms": time_ms}


def spell_out(document: Document) -> None:
    """Rewrites the document's short ways in place; lines go with their values."""
    plan = document.value
    if not isinstance(plan, dict):
        return
    if isinstance(plan.get("systems"), list):
        plan["systems"] = [_system(entry) for entry in plan["systems"]]
    if isinstance(plan.get("workloads"), str):
        plan["workloads"] = [plan["workloads"]]
    if isinstance(plan.get("distribution"), str):
        plan["distribution"] = {"name": plan["distribution"]}
    load, design, trial = plan.get("load"), plan.get("design"), plan.get("trial")
    if isinstance(load, dict):
        _load(document, load)
    if isinstance(design, dict) and "margin" in design:
        design["margin"] = ratio(design["margin"])
    if isinstance(trial, dict):
        _warm_up_until_steady(document, trial)
    if isinstance(plan.get("settings"), dict):
        _axes(document, plan["settings"])
    for path, part, keys in _parts_with_times(plan):
        for short, long in keys.items():
            for key in (short, long):
                if key in part:
                    _take_time(document, path, part, key, long)


def _load(document: Document, load: dict[str, Any]) -> None:
    if _is_integer(load.get("threads")):
        load["threads"] = [load["threads"]]
    if "rates" in load:
        rates = load["rates"]
        if not isinstance(rates, list):
            rates = [rates]
            _move_line(document, ("load", "rates"), ("load", "rates", 0))
        load["rates"] = [_rate(rate) for rate in rates]
    if isinstance(load.get("slo"), str):
        typed, load["slo"] = load["slo"], latency_limit(load["slo"])
        if load["slo"] == typed:
            del load["slo"]
            message = f"{SLO_WANTED}, found {typed!r:.60}"
            line = document.line(("load", "slo"))
            document.mistakes.append(PlanMistake("load.slo", message, line))


def _rate(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _system(entry: object) -> object:
    if isinstance(entry, str):
        return {"label": label_of(entry), "reference": entry}
    if isinstance(entry, dict) and "label" not in entry and isinstance(entry.get("reference"), str):
        return {"label": label_of(entry["reference"]), **entry}
    return entry


def _warm_up_until_steady(document: Document, trial: dict[str, Any]) -> None:
    """``warmup: auto`` is ``until_steady: true``, with the usual warm-up after it."""
    if trial.get("warmup") != AUTO:
        return
    line = document.line(("trial", "warmup"))
    del trial["warmup"]
    if "until_steady" in trial:
        message = "stands beside until_steady; keep one of the two"
        document.mistakes.append(PlanMistake("trial.warmup", message, line))
    else:
        trial["until_steady"] = True
        _move_line(document, ("trial", "warmup"), ("trial", "until_steady"))


def _axes(document: Document, settings: dict[str, Any]) -> None:
    for axis in (axis for axis in LISTS if settings.get(axis) is not None):
        values = settings[axis]
        if not isinstance(values, list):
            values = [values]
            _move_line(document, ("settings", axis), ("settings", axis, 0))
        settings[axis] = [_word(axis, value) for value in values]


def _word(axis: str, value: object) -> object:
    if isinstance(value, bool):
        return ("off", "on")[value] if axis in SWITCHES else value
    return str(value) if isinstance(value, int) else value


def _parts_with_times(
    plan: dict[str, Any],
) -> Iterator[tuple[Path, dict[str, Any], Mapping[str, str]]]:
    for name, keys in TIMES.items():
        if isinstance(plan.get(name), dict) and name != "topology":
            yield (name,), plan[name], keys
    systems = plan.get("systems")
    for index, system in enumerate(systems if isinstance(systems, list) else ()):
        topology = system.get("topology") if isinstance(system, dict) else None
        if isinstance(topology, dict):
            yield ("systems", index, "topology"), topology, TIMES["topology"]


def _take_time(document: Document, path: Path, part: dict[str, Any], key: str, long: str) -> None:
    """A time with its unit becomes a number in the unit that the long key ends with."""
    line = document.line((*path, key))
    value = part.pop(key)
    time = duration_ms(value) if long.endswith("_ms") else duration_s(value)
    if value is not None and (isinstance(time, bool) or not isinstance(time, int | float)):
        unit = "milliseconds" if long.endswith("_ms") else "seconds"
        message = f"must be a time such as {_EXAMPLES[unit]} ({unit}), found {value!r:.60}"
        document.mistakes.append(PlanMistake(place((*path, key)), message, line))
    elif long in part:
        message = f"stands beside {long}; keep one of the two"
        document.mistakes.append(PlanMistake(place((*path, key)), message, line))
    else:
        part[long] = time
        _move_line(document, (*path, key), (*path, long))


_EXAMPLES = {"seconds": "15s, 2m or 90", "milliseconds": "0.8ms, 1s or 5"}


def _move_line(document: Document, old: Path, new: Path) -> None:
    if old in document.lines:
        document.lines[new] = document.lines[old]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
