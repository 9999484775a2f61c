"""Did the systems work under the same conditions? (method.md 1.g, configuration)

Settings are compared as the servers report them, not as the plan asked for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import Said, listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan

EQUAL_SETTINGS: Final = {
    "innodb_flush_method": say("files"),
    "performance_schema": say("instrumentation"),
    "query_cache_type": say("cache of results"),
    "thread_handling": say("connections"),
}
"""Settings that decide how much work a statement is, and what kind of difference they make;
durability and memory are promises (`checks_promises`)."""

ALIKE: Final = {"TRUE": "ON", "FALSE": "OFF"}
"""Spellings of one value."""

Values = Mapping[str, set[str]]
"""The values that each setting had over a system's trials."""


def unequal_settings(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: a system has other files or instruments than the first of the plan.

    A difference which the plan itself asks for is a note: it is what the experiment is about.
    """
    baseline = plan.systems[0].label
    for setting in dict.fromkeys(m.trial.cell.setting for m in measurements):
        of_setting = [m for m in measurements if m.trial.cell.setting == setting]
        wanted = _effective(of_setting, baseline)
        for system in (system.label for system in plan.systems[1:]):
            found = _effective(of_setting, system)
            unequal = [key for key in EQUAL_SETTINGS if _differ(key, wanted, found)]
            asked = _asked(plan, baseline, system)
            by_accident = _differences({baseline: wanted, system: found}, set(unequal) - asked)
            on_purpose = _differences({baseline: wanted, system: found}, set(unequal) & asked)
            if by_accident:
                advice = say("set them equal in the plan, or the systems do not do the same work")
                yield _finding(Level.DOUBTFUL, system, by_accident, advice)
            if on_purpose:
                advice = say("the plan asks for it; say so beside the numbers")
                yield _finding(Level.NOTE, system, on_purpose, advice)


def changed_versions(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a system's version or the engine's was not the same in all trials."""
    versions: dict[Said, set[str]] = {}
    for measurement in measurements:
        if measurement.failure is None:
            trial, server = measurement.trial, measurement.server
            arm = say("{system} ({setting})", system=trial.system, setting=trial.cell.setting)
            versions.setdefault(arm, set()).add(server.version)
            versions.setdefault(say("the engine"), set()).add(measurement.engine.version)
    for what, found in versions.items():
        if len(found) > 1:
            yield Finding(
                check="changed-versions",
                level=Level.DOUBTFUL,
                evidence=say(
                    "{what} had {count} versions within the run: {versions}",
                    what=what,
                    count=len(found),
                    versions=listed(sorted(found)),
                ),
                advice=say("begin a new run; a run that is resumed must find the same programs"),
            )


def _finding(level: Level, system: str, evidence: Said, advice: Said) -> Finding:
    return Finding(
        check="unequal-settings", level=level, evidence=evidence, advice=advice, system=system
    )


def _differences(values: Mapping[str, Values], keys: set[str]) -> Said:
    """One clause a setting, in the order of the table, with what each system had."""
    clauses = []
    for key in (key for key in EQUAL_SETTINGS if key in keys):
        parts = listed(f"{label} {'/'.join(sorted(had[key]))}" for label, had in values.items())
        clauses.append(
            say("{key} ({what}): {parts}", key=key, what=EQUAL_SETTINGS[key], parts=parts)
        )
    return listed(clauses, "; ")


def _effective(measurements: Sequence[Measurement], system: str) -> Values:
    values: dict[str, set[str]] = {}
    for measurement in measurements:
        if measurement.trial.system != system or measurement.failure is not None:
            continue
        for key in EQUAL_SETTINGS:
            if key in measurement.server.settings:
                values.setdefault(key, set()).add(_plain(key, measurement.server.settings[key]))
    return values


def _differ(key: str, one: Values, other: Values) -> bool:
    """Whether both have the setting and it differs."""
    return key in one and key in other and one[key] != other[key]


def _asked(plan: Plan, *labels: str) -> set[str]:
    """Settings that the plan itself gives for one of these systems."""
    return {name.replace("-", "_") for label in labels for name in plan.system(label).settings}


def _plain(key: str, value: str) -> str:
    """The value written one way: an empty flush method is fsync, as MySQL 5.7 documents it."""
    if key == "innodb_flush_method":
        return value.lower() or "fsync"
    return ALIKE.get(value.upper(), value.upper())
