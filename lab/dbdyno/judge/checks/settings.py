"""Did the systems work under equal conditions and equal promises? (docs/reference/findings.md)

Settings are compared as the servers report them, not as the plan asked for them. What survives a
crash and how much memory holds data is called differently by MySQL, MariaDB and PostgreSQL, so
those settings are first read as promises, which can be compared. A difference that the plan itself
asks for is a note: it may be what the experiment is about. Any other is a doubt, since the cheaper
promise looks like the faster server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import Said, listed, name, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan, system_pairs

EQUAL_SETTINGS: Final = {
    "innodb_flush_method": say("files"),
    "performance_schema": say("instrumentation"),
    "query_cache_type": say("cache of results"),
    "thread_handling": say("connections"),
}
"""Settings that decide how much work a statement is, and what kind of difference they make;
durability and memory are promises (`durability`, `cache_bytes`)."""

ALIKE: Final = {"TRUE": "ON", "FALSE": "OFF"}
"""Spellings of one value."""

Values = Mapping[str, set[str]]
"""The values that each setting had over a system's trials."""


def unequal_settings(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: a system promises less, caches more, or works otherwise than what it is
    compared with.

    A difference which the plan itself asks for is a note: it is what the experiment is about.
    """
    for baseline, system, of_baseline, of_system in _compared(measurements, plan):
        reported = {baseline: of_baseline, system: of_system}
        differences = [*_of_promises(reported), *_of_memory(reported), *_of_settings(reported)]
        for level, advice in (
            (
                Level.DOUBTFUL,
                say("set them equal in the plan, or the systems do not do the same work"),
            ),
            (Level.NOTE, say("the plan asks for it; say so beside the numbers")),
        ):
            is_note = level is Level.NOTE
            if told := [
                difference
                for difference, keys in differences
                if _is_asked(plan, (baseline, system), keys) is is_note
            ]:
                yield Finding(
                    check="unequal-settings",
                    level=level,
                    evidence=listed(told, "; "),
                    advice=advice,
                    system=system,
                )


Reported = Mapping[str, Sequence[Mapping[str, str]]]
"""The settings that the baseline and a system reported, by trials; the baseline first."""
Differences = Iterator[tuple[Said, set[str]]]
"""Each difference with the settings that decide it."""


def _of_settings(reported: Reported) -> Differences:
    values = {label: _effective(trials) for label, trials in reported.items()}
    wanted, found = values.values()
    for key in EQUAL_SETTINGS:
        if key in wanted and key in found and wanted[key] != found[key]:
            yield _difference(key, values), {key}


ENGINE: Final = ("", "")
"""In place of a system and a setting: the engine."""


def changed_versions(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a system's version or the engine's was not the same in all trials."""
    versions: dict[tuple[str, str], set[str]] = {}
    for measurement in measurements:
        if measurement.failure is None:
            trial, server = measurement.trial, measurement.server
            arm = trial.system, trial.cell.setting
            versions.setdefault(arm, set()).add(server.version)
            versions.setdefault(ENGINE, set()).add(measurement.engine.version)
    for (system, setting), found in versions.items():
        if len(found) > 1:
            yield Finding(
                check="changed-versions",
                level=Level.DOUBTFUL,
                values={"system": system, "setting": setting, "versions": sorted(found)},
            )


def _compared(
    measurements: Sequence[Measurement], plan: Plan
) -> Iterator[tuple[str, str, list[Settings], list[Settings]]]:
    """Baseline and system of each pair under each setting, and what both reported, by trials."""
    seen: dict[tuple[str, str], list[Settings]] = {}
    for m in measurements:
        reported = seen.setdefault((m.trial.system, m.trial.cell.setting), [])
        if not m.failure:
            reported.append(m.server.settings)
    for setting in dict.fromkeys(setting for _, setting in seen):
        for baseline, system in system_pairs(plan):
            of_baseline, of_system = (seen.get((one, setting), []) for one in (baseline, system))
            yield baseline, system, of_baseline, of_system


def _difference(key: str, values: Mapping[str, Values]) -> Said:
    parts = listed(f"{label} {'/'.join(sorted(had[key]))}" for label, had in values.items())
    return say("{key} ({what}): {parts}", key=key, what=EQUAL_SETTINGS[key], parts=parts)


def _effective(trials: Iterable[Settings]) -> Values:
    values: dict[str, set[str]] = {}
    for settings in trials:
        for key in EQUAL_SETTINGS.keys() & settings.keys():
            values.setdefault(key, set()).add(_plain(key, settings[key]))
    return values


def _is_asked(plan: Plan, labels: Iterable[str], keys: set[str]) -> bool:
    """Whether the plan itself gives one of these keys for one of the systems, be it for a workload
    only; as a plugin too."""
    systems = [plan.system(label) for label in labels]
    every = (keys for one in systems for keys in (one.settings, *one.workload_settings.values()))
    given = [item for keys in every for item in keys.items()]
    names = {name.replace("-", "_").lower() for name, _ in given}
    names |= {name.removeprefix("skip_") for name in names}
    if any("thread_pool" in str(value) for _, value in given):
        names.add("thread_handling")
    return bool(keys & names)


def _plain(key: str, value: str) -> str:
    """The value written one way: an empty flush method is fsync, as MySQL 5.7 documents it."""
    if key == "innodb_flush_method":
        return value.lower() or "fsync"
    return ALIKE.get(value.upper(), value.upper())


MEMORY_TOLERANCE: Final = 0.01
"""Servers round their cache up to whole chunks."""
MIB: Final = 1024**2


def _of_promises(reported: Reported) -> Differences:
    """What a crash would leave less of."""
    (baseline, of_baseline), (system, of_system) = reported.items()
    wanted, found = _promises(of_baseline), _promises(of_system)
    for what in wanted:
        if what in found and not _alike(wanted[what], found[what]):
            told = say(
                "{what}: {baseline}, {system}",
                what=what,
                baseline=_told(baseline, wanted[what]),
                system=_told(system, found[what]),
            )
            yield told, _keys(wanted[what] | found[what])


def _of_memory(reported: Reported) -> Differences:
    """Caches that differ by more than servers round their sizes."""
    (baseline, of_baseline), (system, of_system) = reported.items()
    wanted, found = _cache(of_baseline), _cache(of_system)
    if wanted is None or found is None:
        return
    if abs(found - wanted) > MEMORY_TOLERANCE * max(found, wanted):
        told = say(
            "cache of data pages: {baseline} {wanted:.0f} MiB, {system} {found:.0f} MiB",
            baseline=baseline,
            wanted=wanted / MIB,
            system=system,
            found=found / MIB,
        )
        yield told, set(CACHE_KEYS)


def _promises(trials: Iterable[Settings]) -> dict[str, set[Promise]]:
    found: dict[str, set[Promise]] = {}
    for settings in trials:
        for promise in durability(settings):
            found.setdefault(promise.what, set()).add(promise)
    return found


def _alike(one: set[Promise], other: set[Promise]) -> bool:
    return {promise.kept for promise in one} == {promise.kept for promise in other}


def _keys(promises: set[Promise]) -> set[str]:
    return {key for promise in promises for key in promise.keys}


def _told(system: str, promises: set[Promise]) -> Said:
    kept = sorted(promise.kept for promise in promises)
    return say("{system} {kept}", system=system, kept=listed(kept, " / "))


def _cache(trials: Iterable[Settings]) -> int | None:
    """The cache in bytes, the largest if it changed over the trials; None if nobody knows."""
    found = [cache_bytes(settings) for settings in trials]
    return max((cache for cache in found if cache is not None), default=None)


Settings = Mapping[str, str]
ON_DISK: Final = say("a commit is on disk")
BEFORE: Final = say("before it is answered")

UNITS: Final = {"": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
CACHE_KEYS: Final = ("innodb_buffer_pool_size", "shared_buffers")
FLUSH: Final = "innodb_flush_log_at_trx_commit"
OFF: Final = frozenset({"OFF", "0", "FALSE", "NO"})


@dataclass(frozen=True)
class Promise:
    """One promise as a server's settings give it.

    Attributes:
        what: what it is about, the same words for every product.
        kept: how far it goes, the same words for every product.
        keys: the settings that decide it.
    """

    what: Said
    kept: Said
    keys: tuple[str, ...]


def durability(settings: Settings) -> tuple[Promise, ...]:
    """What a crash leaves of commits and pages; empty for settings of an unknown product."""
    if FLUSH in settings:
        return _of_innodb(settings)
    if is_postgres(settings):
        return _of_postgres(settings)
    return ()


def is_postgres(settings: Settings) -> bool:
    """Whether they are a PostgreSQL's: they have one that no other product has."""
    return "synchronous_commit" in settings


def commit_is_waited_for(settings: Settings) -> bool:
    """Whether the settings promise that a commit is on the disk before it is answered."""
    return any(p.what == ON_DISK and p.kept == BEFORE for p in durability(settings))


def cache_bytes(settings: Settings) -> int | None:
    """The memory that holds data pages; None for settings of an unknown product."""
    sizes = (_bytes(settings.get(key, "")) for key in CACHE_KEYS)
    return next((size for size in sizes if size is not None), None)


def _of_innodb(settings: Settings) -> tuple[Promise, ...]:
    flush = settings[FLUSH]
    redo = {
        "0": say("within a second, and lost if the server dies"),
        "1": BEFORE,
        "2": say("within a second"),
        "3": BEFORE,  # MariaDB's: as 1, with more syncs
    }
    commits = Promise(
        ON_DISK,
        redo.get(flush, name(f"flush_log_at_trx_commit {flush}")),
        (FLUSH,),
    )
    return (
        commits,
        Promise(say("the binary log"), _binlog(settings), ("log_bin", "sync_binlog")),
        Promise(say("torn pages"), _torn_pages(settings), ("innodb_doublewrite",)),
    )


def _torn_pages(settings: Settings) -> Said:
    written_twice = settings.get("innodb_doublewrite", "ON").upper()
    if written_twice in OFF or written_twice == "DETECT_ONLY":
        return say("stay torn")
    if written_twice in {"ON", "1", "TRUE", "DETECT_AND_RECOVER"}:
        return say("are mended")
    return say("are written twice in the way {way}", way=written_twice)


def _binlog(settings: Settings) -> Said:
    if settings.get("log_bin", "OFF").upper() in OFF:
        return say("is not written")
    sync = settings.get("sync_binlog", "1")
    words = {
        "0": say("is synced when the system likes"),
        "1": say("is synced at each commit"),
    }
    return words.get(sync, say("is synced at every {count} commits", count=sync))


def _of_postgres(settings: Settings) -> tuple[Promise, ...]:
    synced = settings.get("fsync", "on").upper() not in OFF
    waited = settings["synchronous_commit"].upper() not in OFF
    kept = BEFORE if waited else say("within a second")
    torn = settings.get("full_page_writes", "on").upper() in OFF
    return (
        Promise(
            ON_DISK,
            kept if synced else say("when the system likes"),
            ("fsync", "synchronous_commit"),
        ),
        Promise(say("the binary log"), say("is not written"), ()),
        Promise(
            say("torn pages"),
            say("stay torn") if torn else say("are mended"),
            ("full_page_writes",),
        ),
    )


def _bytes(text: str) -> int | None:
    found = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in UNITS:
        return None
    return int(found[1]) * UNITS[found[2]]
