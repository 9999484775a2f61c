"""Short ways of writing a plan, spelled out before the plan is checked.

Each short way has one long one, which `plan.Plan` describes; a value that fits neither is left as
it stands, so that the check's message shows what was typed.
"""

from __future__ import annotations

import re
from typing import Any

from dbdyno.errors import PlanMistake
from dbdyno.plan import label_of
from dbdyno.plan_file_yaml import Document, Path

_DURATION = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*(ms|s|m|min|h)\s*")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}
_PERCENT = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]+)?)\s*%\s*")
_DURATION_KEYS = ("warmup", "window")


def duration_s(value: object) -> object:
    """Seconds of ``90s``, ``2m`` or ``1h``; anything else comes back as it is."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else value


def ratio(value: object) -> object:
    """0.02 of ``2%``; anything else comes back as it is."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else value


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
    if isinstance(load, dict) and _is_integer(load.get("threads")):
        load["threads"] = [load["threads"]]
    if isinstance(design, dict) and "margin" in design:
        design["margin"] = ratio(design["margin"])
    if isinstance(trial, dict):
        _times(document, trial)


def _system(entry: object) -> object:
    if isinstance(entry, str):
        return {"label": label_of(entry), "reference": entry}
    if isinstance(entry, dict) and "label" not in entry and isinstance(entry.get("reference"), str):
        return {"label": label_of(entry["reference"]), **entry}
    return entry


def _times(document: Document, trial: dict[str, Any]) -> None:
    """``warmup`` and ``window`` become ``warmup_s`` and ``window_s``, in seconds."""
    for short in _DURATION_KEYS:
        for key in (short, f"{short}_s"):
            if key in trial:
                _take_time(document, trial, key, f"{short}_s")


def _take_time(document: Document, trial: dict[str, Any], key: str, long: str) -> None:
    line = document.line(("trial", key))
    time = duration_s(trial.pop(key))
    if isinstance(time, bool) or not isinstance(time, int | float):
        message = f"must be a time such as 15s, 2m or 90 (seconds), found {time!r:.60}"
        document.mistakes.append(PlanMistake(f"trial.{key}", message, line))
    elif long in trial:
        message = f"stands beside {long}; keep one of the two"
        document.mistakes.append(PlanMistake(f"trial.{key}", message, line))
    else:
        trial[long] = time
        _move_line(document, ("trial", key), ("trial", long))


def _move_line(document: Document, old: Path, new: Path) -> None:
    if old in document.lines:
        document.lines[new] = document.lines[old]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
