"""What a server promises by its settings, in words that fit every product.

MySQL, MariaDB and PostgreSQL call the same promise by other names, and a comparison is only fair
where the promises are equal: what survives a crash, and how much memory may hold data. So settings
are read as promises first, and those are compared (`checks_promises`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dbdyno.language.words import Said, name, say

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
    if "synchronous_commit" in settings:
        return _of_postgres(settings)
    return ()


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
