"""Equality of the systems' conditions and promises (docs/reference/findings.md).

Settings are compared as reported by the servers, not as planned. Durability and cache have
different names in MySQL, MariaDB and PostgreSQL, so their settings are first read as promises,
which can be compared. A difference set by the plan itself is a note: it may be the subject of the
experiment. Any other is a doubt, since the cheaper promise looks like the faster server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan, system_pairs

EQUAL_SETTINGS: Final = (
    "innodb_flush_method",
    "performance_schema",
    "query_cache_type",
    "thread_handling",
)
"""Settings with an effect on the work of a statement; durability and memory are promises
(`durability`, `cache_bytes`)."""

ALIKE: Final = {"TRUE": "ON", "FALSE": "OFF"}
"""Spellings of the same value."""

Values = Mapping[str, set[str]]
"""The values of each setting over a system's trials."""


def unequal_settings(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: a system promises less, caches more, or works otherwise than its
    baseline.

    A difference set by the plan itself is a note: it is the subject of the experiment.
    """
    for baseline, system, of_baseline, of_system in _compared(measurements, plan):
        reported = {baseline: of_baseline, system: of_system}
        differences = [*_of_promises(reported), *_of_memory(reported), *_of_settings(reported)]
        for level in (Level.DOUBTFUL, Level.NOTE):
            of_level = [
                difference
                for difference, keys in differences
                if _is_asked(plan, (baseline, system), keys) is (level is Level.NOTE)
            ]
            if of_level:
                yield Finding(
                    check="unequal-settings",
                    level=level,
                    values={"differences": of_level},
                    system=system,
                )


Reported = Mapping[str, Sequence[Mapping[str, str]]]
"""The settings reported by the baseline and a system, by trials; the baseline first."""
Differences = Iterator[tuple[dict[str, Any], set[str]]]
"""Values of each difference, with the settings behind it: its `case` (a promise, a setting or the
cache), and the systems' own values by their labels."""


def _of_settings(reported: Reported) -> Differences:
    values = {label: _effective(trials) for label, trials in reported.items()}
    wanted, seen = values.values()
    for key in EQUAL_SETTINGS:
        if key in wanted and key in seen and wanted[key] != seen[key]:
            systems = {label: sorted(had[key]) for label, had in values.items()}
            yield {"case": key, "systems": systems}, {key}


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
    for (system, setting), releases in versions.items():
        if len(releases) > 1:
            yield Finding(
                check="changed-versions",
                level=Level.DOUBTFUL,
                values={"system": system, "setting": setting, "versions": sorted(releases)},
            )


def _compared(
    measurements: Sequence[Measurement], plan: Plan
) -> Iterator[tuple[str, str, list[Settings], list[Settings]]]:
    """Baseline and system of each pair under each setting, with both sides' reports by trials."""
    seen: dict[tuple[str, str], list[Settings]] = {}
    for m in measurements:
        reported = seen.setdefault((m.trial.system, m.trial.cell.setting), [])
        if not m.failure:
            reported.append(m.server.settings)
    for setting in dict.fromkeys(setting for _, setting in seen):
        for baseline, system in system_pairs(plan):
            of_baseline, of_system = (seen.get((one, setting), []) for one in (baseline, system))
            yield baseline, system, of_baseline, of_system


def _effective(trials: Iterable[Settings]) -> Values:
    values: dict[str, set[str]] = {}
    for settings in trials:
        for key in settings.keys() & EQUAL_SETTINGS:
            values.setdefault(key, set()).add(_plain(key, settings[key]))
    return values


def _is_asked(plan: Plan, labels: Iterable[str], keys: set[str]) -> bool:
    """True if the plan sets any of the keys for either system, for a workload or a plugin too."""
    systems = [plan.system(label) for label in labels]
    every = (keys for one in systems for keys in (one.settings, *one.workload_settings.values()))
    given = [item for keys in every for item in keys.items()]
    names = {name.replace("-", "_").lower() for name, _ in given}
    names |= {name.removeprefix("skip_") for name in names}
    if any("thread_pool" in str(value) for _, value in given):
        names.add("thread_handling")
    return bool(keys & names)


def _plain(key: str, value: str) -> str:
    """The value in a uniform spelling: an empty flush method is fsync (MySQL 5.7's manual)."""
    if key == "innodb_flush_method":
        return value.lower() or "fsync"
    return ALIKE.get(value.upper(), value.upper())


MEMORY_TOLERANCE: Final = 0.01
"""Servers round their cache up to whole chunks."""
CACHE: Final = "cache"


def _of_promises(reported: Reported) -> Differences:
    """Differences of durability promises."""
    promises = {label: _promises(trials) for label, trials in reported.items()}
    wanted, seen = promises.values()
    for what in wanted:
        if what in seen and _kept(wanted[what]) != _kept(seen[what]):
            systems = {label: _kept(of_system[what]) for label, of_system in promises.items()}
            yield {"case": what.value, "systems": systems}, _keys(wanted[what] | seen[what])


def _of_memory(reported: Reported) -> Differences:
    """Differences of caches beyond the servers' rounding of sizes."""
    systems = {label: _cache(trials) for label, trials in reported.items()}
    wanted, seen = systems.values()
    if wanted is None or seen is None:
        return
    if abs(seen - wanted) > MEMORY_TOLERANCE * max(seen, wanted):
        yield {"case": CACHE, "systems": systems}, set(CACHE_KEYS)


def _promises(trials: Iterable[Settings]) -> dict[Promised, set[Promise]]:
    promises: dict[Promised, set[Promise]] = {}
    for settings in trials:
        for promise in durability(settings):
            promises.setdefault(promise.what, set()).add(promise)
    return promises


def _keys(promises: set[Promise]) -> set[str]:
    return {key for promise in promises for key in promise.keys}


def _kept(promises: set[Promise]) -> list[tuple[str, str]]:
    return sorted({(promise.kept.value, promise.value) for promise in promises})


def _cache(trials: Iterable[Settings]) -> int | None:
    """The cache in bytes, the largest if it changed over the trials; None if unknown."""
    sizes = [cache_bytes(settings) for settings in trials]
    return max((cache for cache in sizes if cache is not None), default=None)


Settings = Mapping[str, str]
UNITS: Final = {"": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
CACHE_KEYS: Final = ("innodb_buffer_pool_size", "shared_buffers")
FLUSH: Final = "innodb_flush_log_at_trx_commit"
OFF: Final = frozenset({"OFF", "0", "FALSE", "NO"})


class Promised(StrEnum):
    """Subjects of promises, the same for every product."""

    COMMIT = "commit"
    BINARY_LOG = "binary-log"
    TORN_PAGES = "torn-pages"


class Kept(StrEnum):
    """Extent of a promise, the same for every product."""

    BEFORE_ANSWER = "before-answer"
    WITHIN_SECOND = "within-second"
    LOST_WITH_SERVER = "lost-with-server"
    BY_SYSTEM = "by-system"
    UNKNOWN = "unknown"
    NOT_WRITTEN = "not-written"
    SYNCED_BY_SYSTEM = "synced-by-system"
    SYNCED_EACH_COMMIT = "synced-each-commit"
    SYNCED_EACH_COMMITS = "synced-each-commits"
    MENDED = "mended"
    STAY_TORN = "stay-torn"
    WRITTEN_TWICE = "written-twice"


@dataclass(frozen=True)
class Promise:
    """A promise given by a server's settings.

    Attributes:
        what: its subject.
        kept: its extent.
        keys: the settings which decide it.
        value: the setting's value, where the extent depends on it.
    """

    what: Promised
    kept: Kept
    keys: tuple[str, ...]
    value: str = ""


def durability(settings: Settings) -> tuple[Promise, ...]:
    """Promises for commits and pages after a crash; empty for settings of an unknown product."""
    if FLUSH in settings:
        return _of_innodb(settings)
    if is_postgres(settings):
        return _of_postgres(settings)
    return ()


def is_postgres(settings: Settings) -> bool:
    """True for PostgreSQL's settings, by a key which no other product has."""
    return "synchronous_commit" in settings


def commit_is_waited_for(settings: Settings) -> bool:
    """True if the settings promise each commit on the disk before its answer."""
    return any(promise.kept is Kept.BEFORE_ANSWER for promise in durability(settings))


def cache_bytes(settings: Settings) -> int | None:
    """Size of the cache of data pages; None for settings of an unknown product."""
    sizes = (_bytes(settings.get(key, "")) for key in CACHE_KEYS)
    return next((size for size in sizes if size is not None), None)


REDO: Final[Mapping[str, Kept]] = {
    "0": Kept.LOST_WITH_SERVER,
    "1": Kept.BEFORE_ANSWER,
    "2": Kept.WITHIN_SECOND,
    "3": Kept.BEFORE_ANSWER,  # MariaDB's: as 1, with more syncs
}
"""Extents by values of `FLUSH`."""


def _of_innodb(settings: Settings) -> tuple[Promise, ...]:
    flush = settings[FLUSH]
    redo = REDO.get(flush, Kept.UNKNOWN)
    value = flush if redo is Kept.UNKNOWN else ""
    return (
        Promise(Promised.COMMIT, redo, (FLUSH,), value),
        _binlog(settings),
        _torn_pages(settings),
    )


def _torn_pages(settings: Settings) -> Promise:
    way = settings.get("innodb_doublewrite", "ON").upper()
    keys = ("innodb_doublewrite",)
    if way in OFF or way == "DETECT_ONLY":
        return Promise(Promised.TORN_PAGES, Kept.STAY_TORN, keys)
    if way in {"ON", "1", "TRUE", "DETECT_AND_RECOVER"}:
        return Promise(Promised.TORN_PAGES, Kept.MENDED, keys)
    return Promise(Promised.TORN_PAGES, Kept.WRITTEN_TWICE, keys, way)


def _binlog(settings: Settings) -> Promise:
    keys = ("log_bin", "sync_binlog")
    if settings.get("log_bin", "OFF").upper() in OFF:
        return Promise(Promised.BINARY_LOG, Kept.NOT_WRITTEN, keys)
    sync = settings.get("sync_binlog", "1")
    known = {"0": Kept.SYNCED_BY_SYSTEM, "1": Kept.SYNCED_EACH_COMMIT}
    if sync in known:
        return Promise(Promised.BINARY_LOG, known[sync], keys)
    return Promise(Promised.BINARY_LOG, Kept.SYNCED_EACH_COMMITS, keys, sync)


def _of_postgres(settings: Settings) -> tuple[Promise, ...]:
    synced = settings.get("fsync", "on").upper() not in OFF
    waited = settings["synchronous_commit"].upper() not in OFF
    kept = Kept.BEFORE_ANSWER if waited else Kept.WITHIN_SECOND
    torn = settings.get("full_page_writes", "on").upper() in OFF
    return (
        Promise(
            Promised.COMMIT, kept if synced else Kept.BY_SYSTEM, ("fsync", "synchronous_commit")
        ),
        Promise(Promised.BINARY_LOG, Kept.NOT_WRITTEN, ()),
        Promise(
            Promised.TORN_PAGES, Kept.STAY_TORN if torn else Kept.MENDED, ("full_page_writes",)
        ),
    )


def _bytes(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in UNITS:
        return None
    return int(match[1]) * UNITS[match[2]]
