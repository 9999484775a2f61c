"""Do the systems promise the same, and have they the same memory? (method.md 1.g, durability)

Promises are read from the settings in force, not from those that were asked for. A difference that
the plan itself asks for is a note: it may be what the experiment is about. Any other is a doubt,
since the cheaper promise looks like the faster server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.checks.promises import CACHE_KEYS, Promise, cache_bytes, durability
from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import Said, listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan

MEMORY_TOLERANCE: Final = 0.01
"""Servers round their cache up to whole chunks."""
MIB: Final = 1024**2


def unequal_durability(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: a crash would leave less of one system than of the baseline."""
    baseline = plan.systems[0].label
    for setting in dict.fromkeys(m.trial.cell.setting for m in measurements):
        wanted = _promises(measurements, setting, baseline)
        for system in (system.label for system in plan.systems[1:]):
            found = _promises(measurements, setting, system)
            unequal = [what for what in wanted if what in found and not _alike(wanted, found, what)]
            asked = [what for what in unequal if _asked(plan, wanted, found, what, system)]
            for level, whats in (
                (Level.DOUBTFUL, [what for what in unequal if what not in asked]),
                (Level.NOTE, asked),
            ):
                if whats:
                    yield Finding(
                        check="unequal-durability",
                        level=level,
                        evidence=listed(
                            (
                                say(
                                    "{what}: {baseline}, {system}",
                                    what=what,
                                    baseline=_told(baseline, wanted[what]),
                                    system=_told(system, found[what]),
                                )
                                for what in whats
                            ),
                            "; ",
                        ),
                        advice=_advice(level),
                        system=system,
                    )


def unequal_memory(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: caches of two systems differ by more than servers round their sizes."""
    baseline = plan.systems[0].label
    for setting in dict.fromkeys(m.trial.cell.setting for m in measurements):
        wanted = _cache(measurements, setting, baseline)
        for system in (system.label for system in plan.systems[1:]):
            found = _cache(measurements, setting, system)
            if wanted is None or found is None:
                continue
            if abs(found - wanted) <= MEMORY_TOLERANCE * max(found, wanted):
                continue
            asked = any(_given(plan, label, set(CACHE_KEYS)) for label in (baseline, system))
            level = Level.NOTE if asked else Level.DOUBTFUL
            yield Finding(
                check="unequal-memory",
                level=level,
                evidence=say(
                    "cache of data pages: {baseline} {wanted:.0f} MiB, {system} {found:.0f} MiB",
                    baseline=baseline,
                    wanted=wanted / MIB,
                    system=system,
                    found=found / MIB,
                ),
                advice=_advice(level),
                system=system,
            )


def _advice(level: Level) -> Said:
    if level is Level.NOTE:
        return say("the plan asks for it; say so beside the numbers")
    return say("set them equal in the plan, or the systems do not do the same work")


def _settings_of(
    measurements: Sequence[Measurement], setting: str, system: str
) -> Iterator[dict[str, str]]:
    for measurement in measurements:
        trial = measurement.trial
        if (trial.system, trial.cell.setting) == (system, setting) and not measurement.failure:
            yield measurement.server.settings


def _promises(
    measurements: Sequence[Measurement], setting: str, system: str
) -> dict[str, set[Promise]]:
    found: dict[str, set[Promise]] = {}
    for settings in _settings_of(measurements, setting, system):
        for promise in durability(settings):
            found.setdefault(promise.what, set()).add(promise)
    return found


def _alike(one: dict[str, set[Promise]], other: dict[str, set[Promise]], what: str) -> bool:
    return {p.kept for p in one[what]} == {p.kept for p in other[what]}


def _asked(
    plan: Plan,
    wanted: dict[str, set[Promise]],
    found: dict[str, set[Promise]],
    what: str,
    system: str,
) -> bool:
    keys = {key for promise in wanted[what] | found[what] for key in promise.keys}
    return any(_given(plan, label, keys) for label in (plan.systems[0].label, system))


def _given(plan: Plan, label: str, keys: set[str]) -> bool:
    """Whether a system's own settings in the plan have one of these keys."""
    given = {name.lower().replace("-", "_") for name in plan.system(label).settings}
    return bool(keys & {*given, *(name.removeprefix("skip_") for name in given)})


def _told(system: str, promises: set[Promise]) -> Said:
    kept = sorted(promise.kept for promise in promises)
    return say("{system} {kept}", system=system, kept=listed(kept, " / "))


def _cache(measurements: Sequence[Measurement], setting: str, system: str) -> int | None:
    """The cache in bytes, the largest if it changed over the trials; None if nobody knows."""
    found = [cache_bytes(settings) for settings in _settings_of(measurements, setting, system)]
    return max((cache for cache in found if cache is not None), default=None)
