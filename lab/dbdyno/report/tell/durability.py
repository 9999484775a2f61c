"""Sentences on durability: promises of settings, and the proof by a killed server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbdyno.judge.checks.durability import DurabilityVerdict, Proof
from dbdyno.judge.checks.settings import (
    CACHE,
    Kept,
    Promise,
    Promised,
    commit_is_waited_for,
    durability,
)
from dbdyno.language.words import Said, clauses, listed, name, phrase, say
from dbdyno.measurement.parts import KilledServer
from dbdyno.report.tell.lists import Values

PROMISED: Final[Mapping[str, Said]] = {
    Promised.COMMIT: say("a commit is on disk"),
    Promised.BINARY_LOG: say("the binary log"),
    Promised.TORN_PAGES: say("torn pages"),
}
KEPT: Final[Mapping[str, str]] = {
    Kept.BEFORE_ANSWER: phrase("before it is acknowledged"),
    Kept.WITHIN_SECOND: phrase("within a second"),
    Kept.LOST_WITH_SERVER: phrase("within a second; a server crash before that loses it"),
    Kept.BY_SYSTEM: phrase("when the operating system writes it"),
    Kept.UNKNOWN: "flush_log_at_trx_commit {value}",
    Kept.NOT_WRITTEN: phrase("is not written"),
    Kept.SYNCED_BY_SYSTEM: phrase("is left to the operating system to sync"),
    Kept.SYNCED_EACH_COMMIT: phrase("is synced at each commit"),
    Kept.SYNCED_EACH_COMMITS: phrase("is synced once every {value} commits"),
    Kept.MENDED: phrase("are repaired"),
    Kept.STAY_TORN: phrase("are not repaired"),
    Kept.WRITTEN_TWICE: phrase("are handled as innodb_doublewrite={value} says"),
}
KINDS_OF_SETTINGS: Final[Mapping[str, Said]] = {
    "innodb_flush_method": say("I/O method"),
    "performance_schema": say("instrumentation"),
    "query_cache_type": say("query cache"),
    "thread_handling": say("connection handling"),
}
MIB: Final = 1024**2


def promises_of_commits(settings: Mapping[str, str]) -> list[Said]:
    """The promises of a server's settings for a commit, a clause for each."""
    return [
        _promise(phrase("{what} {kept}"), one)
        for one in durability(settings)
        if one.keys and one.what is not Promised.TORN_PAGES
    ]


def _promise(template: str, promise: Promise) -> Said:
    words = {"what": PROMISED[promise.what], "kept": kept(promise.kept, promise.value)}
    return Said(template, words)


def kept(extent: str, value: str) -> Said:
    """The extent of a promise."""
    return Said(KEPT[extent], {"value": value})


def unequal_settings(values: Values) -> Said:
    """Evidence of `unequal-settings`."""
    return listed((_difference(one["case"], one["systems"]) for one in values["differences"]), "; ")


def _difference(case: str, systems: Values) -> Said:
    if case in PROMISED:
        what = PROMISED[case]
        parts = [
            say("{system} {kept}", system=label, kept=listed((kept(*one) for one in own), " / "))
            for label, own in systems.items()
        ]
    elif case == CACHE:
        what = say("cache of data pages")
        parts = [name(f"{label} {size / MIB:.0f} MiB") for label, size in systems.items()]
    else:
        what = say("{key} ({kind})", key=case, kind=KINDS_OF_SETTINGS[case])
        parts = [name(f"{label} {'/'.join(own)}") for label, own in systems.items()]
    return say("{what}: {parts}", what=what, parts=listed(parts))


MEANING: Final[Mapping[Proof, Said]] = {
    Proof.LOST: say("the server had acknowledged these commits, so its commits are not durable"),
    Proof.UNFLUSHED: say(
        "a kill -9 does not touch the operating system's memory: a power loss or a crash of the "
        "operating system would lose commits that were acknowledged but not yet flushed"
    ),
    Proof.UNPROVEN: say(
        "it is unknown whether the commits had reached a disk, because the machine's disks counted "
        "too few flushes. A disk without a volatile cache reports no flushes, and neither does "
        "memory used as a disk (tmpfs)"
    ),
    Proof.DURABLE: say(
        "a kill -9 proves that acknowledged commits had left the server's memory. A power loss was "
        "not tested: whether commits survive it depends on the counted flushes, and on disks that "
        "really store data at a flush"
    ),
}


def proof_sentence(verdict: DurabilityVerdict, killed: KilledServer) -> Said:
    """The verdict's counts in a sentence."""
    number = len(killed.kills)
    kills = say("one kill -9") if number == 1 else say("{count} kills -9", count=number)
    counts = {"acknowledged": verdict.acknowledged, "missing": verdict.missing, "kills": kills}
    if verdict.proof is Proof.LOST:
        return say(
            "{system} lost {missing} of {acknowledged} acknowledged commits after {kills}",
            system=killed.system,
            **counts,
        )
    return say(
        "{system} kept all {acknowledged} acknowledged commits through {kills}",
        system=killed.system,
        **counts,
    )


def proof_reasons(verdict: DurabilityVerdict, killed: KilledServer) -> list[Said]:
    """Sentences behind the verdict: the promise, the flushes, odd rows, and the meaning."""
    odd_rows = (
        [
            say(
                "{rows} rows were found whose commits were never acknowledged, more than one for "
                "each connection",
                rows=verdict.rows_unexplained,
            )
        ]
        if verdict.rows_unexplained
        else []
    )
    return [
        _promised(killed),
        say(
            "flushes per commit: {server} of the log, counted by the server, and {disk} counted "
            "by the disks; durable commits of {connections} connections need at least {needed:.2f}",
            server=_number(verdict.server_flushes_per_commit),
            disk=_number(verdict.disk_flushes_per_commit),
            connections=killed.connections,
            needed=verdict.flushes_needed_per_commit,
        ),
        *odd_rows,
        MEANING[verdict.proof],
    ]


def _promised(killed: KilledServer) -> Said:
    text = clauses(
        _promise(phrase("{what}: {kept}"), promise) for promise in durability(killed.settings)
    )
    if not text:
        return say("what its settings promise is not known")
    if commit_is_waited_for(killed.settings):
        return say("its settings promise durable commits ({told})", told=text)
    return say("its settings do not promise durable commits ({told})", told=text)


def _number(value: float | None) -> Said:
    return say("unknown") if value is None else say("{value:.3f}", value=value)
