"""Scales: one plan in several sizes, as named overrides under ``scales:``.

A published experiment takes hours and a large machine; the same file should also run in minutes on
a small one, and it should be plain to see what was made smaller. So a scale is a piece of a plan
that is laid over the whole: keys meet keys, anything else (a list too) takes the place of what was
there, and ``null`` takes a key away.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from dbdyno.errors import PlanMistake
from dbdyno.plan.document import Document, Path, place

SCALES: Final = "scales"
"""The plan file's key; the key of the plan itself, `plan.Plan.scale`, is the name chosen."""


def take_scales(document: Document) -> dict[str, dict[str, Any]]:
    """The scales of a plan file, taken out of it; what is no scale becomes a mistake."""
    plan = document.value
    if not isinstance(plan, dict):
        return {}
    if "scale" in plan and SCALES in plan:  # alone it is what a stored plan says of itself
        _mistake(document, ("scale",), "is chosen when the plan is run, with --scale")
        del plan["scale"]
    scales = plan.pop(SCALES, {})
    if not isinstance(scales, dict):
        _mistake(document, (SCALES,), f"must be names with parts of a plan, found {scales!r:.60}")
        return {}
    for name, part in scales.items():
        if not isinstance(part, dict):
            _mistake(document, (SCALES, name), f"must be a part of a plan, found {part!r:.60}")
        elif SCALES in part:
            _mistake(document, (SCALES, name, SCALES), "has no place within a scale")
    return {name: part for name, part in scales.items() if isinstance(part, dict)}


def scaled(document: Document, scales: dict[str, dict[str, Any]], name: str) -> Document:
    """A new document: the plan with that scale laid over it, each value with its own line."""
    made = Document(deepcopy(document.value), dict(document.lines), [])
    part = {key: value for key, value in deepcopy(scales[name]).items() if key != SCALES}
    made.value = {**_laid_over(made, made.value, part, (), (SCALES, name)), "scale": name}
    return made


def _laid_over(
    made: Document, below: dict[str, Any], above: dict[str, Any], path: Path, source: Path
) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        here, there = (*path, key), (*source, key)
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _laid_over(made, merged[key], value, here, there)
            continue
        _take_lines(made, here, there)
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _take_lines(made: Document, path: Path, source: Path) -> None:
    """The lines of what stood at the path give way to those of what is put there."""
    depth = len(source)
    for old in [old for old in made.lines if old[: len(path)] == path]:
        del made.lines[old]
    for old, line in list(made.lines.items()):
        if old[:depth] == source:
            made.lines[(*path, *old[depth:])] = line


def _mistake(document: Document, path: Path, message: str) -> None:
    document.mistakes.append(PlanMistake(place(path), message, document.line(path)))
