"""PostgreSQL as a primary with standbys that stream its write-ahead log.

A standby begins as a copy of the primary, marked by a signal file. It follows once both run: the
replicas' user is made first, with a password that only the servers keep and a slot for each
replica, which retains its unread log. Waiting is switched on last, when all stream; until then
nothing but the lab's own statements is committed.

A primary with `synchronous_standby_names` never goes on alone: a commit waits until a standby
answers. So there is no timeout and no counter of unacknowledged commits; the proof of the wait is
its being in force at both edges of a window.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, cast

from dbdyno.errors import UsageError
from dbdyno.measurement import replication
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import Credentials, Endpoint, Server, ServerSpec, count_of, row_of
from dbdyno.servers.local.topology import LOOK_S, wait_joined
from dbdyno.servers.postgres.instance import PostgresInstance, StandbyInstance
from dbdyno.servers.postgres.server import REPLICA_USER, PostgresServer, PostgresStandby
from dbdyno.servers.postgres.settings import normalise
from dbdyno.servers.programs.catalog import CatalogEntry

NAME: Final = "replica_{}"
OWNED: Final = ("synchronous_standby_names", "primary_conninfo", "primary_slot_name")
NEEDED: Final = {"wal_level": "minimal", "max_wal_senders": "0", "hot_standby": "off"}
"""Settings with the value that rules replicas out."""
STANDBY_KEYS: Final = {"wal_retrieve_retry_interval": "200ms"}
"""Interval, 5 s by default, at which a standby looks for its primary."""
COMMITS_WAIT: Final = frozenset({"on", "remote_write", "remote_apply"})
"""Values of `synchronous_commit` that make a commit wait for a standby."""
STREAMING: Final = "SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming'"
WAITED_FOR: Final = (
    "SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
)
WAITING: Final = (
    "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit')"
)
POSITION: Final = "SELECT pg_current_wal_lsn()"
LAST: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())"
"""One above the last transaction that has ended; on a standby, as far as known there."""


def check(spec: ServerSpec) -> None:
    """Validate the topology with these settings.

    Raises:
        UsageError: PostgreSQL cannot have it.
    """
    plan = spec.topology
    if plan.replication == "group":
        raise UsageError(
            f"{spec.label}: PostgreSQL has no group replication",
            wanted="replication: group",
            hint="use semisync: a commit waits for one of the replicas",
        )
    if plan.replication == "semisync" and plan.wait_point != "after_sync":
        raise UsageError(
            f"{spec.label}: in PostgreSQL a commit waits before others can read its rows",
            wanted=f"wait_point: {plan.wait_point}",
            hint="leave wait_point out",
        )
    _own(spec, {})


class PostgresReplication:
    """`local.topology.Replication` of PostgreSQL."""

    def __init__(
        self, spec: ServerSpec, entry: CatalogEntry, home: Path, report: Callable[[str], None]
    ) -> None:
        self._spec, self._files, self._report = spec, (entry, home), report

    def member(self, spec: ServerSpec, folder: Path, copy: Path | None) -> PostgresInstance:
        kind = PostgresInstance if copy is None else StandbyInstance
        return kind(spec, *self._files, folder, self._report, copy=copy)

    def loading_keys(self, requested: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        """Empty: before it is joined it is a server like any other."""
        del requested
        return {}

    def member_keys(
        self, requested: Mapping[str, SettingValue]
    ) -> Sequence[Mapping[str, SettingValue]]:
        """Keys of standbys; the rest is set when all run."""
        _own(self._spec, requested)
        return [{}, *[STANDBY_KEYS] * self._spec.topology.replicas]

    def join(self, primary: Server, replicas: Sequence[Server], doors: Sequence[Endpoint]) -> None:
        """Have all follow, then commits wait if the plan says so; ServerError if they do not."""
        first = cast(PostgresServer, primary)
        who = Credentials(REPLICA_USER, secrets.token_hex(24))
        first.admit(who, "LOGIN REPLICATION")
        names = [NAME.format(number) for number in range(1, len(replicas) + 1)]
        for name, replica in zip(names, replicas, strict=True):
            primary.ask(
                f"SELECT pg_create_physical_replication_slot('{name}', true) WHERE NOT EXISTS"
                f" (SELECT FROM pg_replication_slots WHERE slot_name = '{name}')"
            )
            cast(PostgresStandby, replica).follow(doors[0], who, name)
        position = row_of(primary, POSITION)[0]
        applied = f"{STREAMING} AND replay_lsn >= '{position}'"  # the lab's own orders till now
        _wait(primary, applied, names, replicas)
        if self._spec.topology.replication == "semisync":
            first.change({"synchronous_standby_names": f"ANY 1 ({', '.join(names)})"})
            _wait(primary, WAITED_FOR, names, replicas)

    def state(self, primary: Server, replicas: Sequence[Server]) -> dict[str, float]:
        """Streaming replicas, their lag, and the commits' wait."""
        last = count_of(primary, LAST)
        state: dict[str, float] = {
            replication.TRANSACTIONS_BEHIND: max(
                0, *(last - count_of(replica, LAST) for replica in replicas)
            ),
            replication.REPLICAS_RUNNING: count_of(primary, STREAMING),
        }
        if self._spec.topology.replication == "semisync":
            names, commits = row_of(primary, WAITING, 2)[:2]
            state |= {
                replication.SEMISYNC_ON: float(bool(names) and commits in COMMITS_WAIT),
                replication.SEMISYNC_REPLICAS: count_of(primary, WAITED_FOR),
                replication.AFTER_SYNC: 1.0,
            }
        return state

    def catch_up(self, primary: Server, replicas: Sequence[Server], ends_s: float) -> None:
        """Poll each replica's position."""
        position = row_of(primary, POSITION)[0]
        for replica in replicas:
            question = f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"
            while row_of(replica, question)[0] != "t":
                if time.monotonic() > ends_s:
                    return
                time.sleep(LOOK_S)

    def before_stop(self, primary: Server) -> None:
        """Nothing to lift: it waits for streaming standbys only, and they have ended."""


def _own(spec: ServerSpec, requested: Mapping[str, SettingValue]) -> None:
    """Raise UsageError if the settings of a start rule replicas out, or are the plan's."""
    own = {**normalise(spec.settings), **normalise(requested)}
    lacking = [name for name, never in NEEDED.items() if own.get(name, "").lower() == never]
    if lacking:
        raise UsageError(
            f"{spec.label}: replicas need what these settings take away",
            found=", ".join(f"{name} = {own[name]}" for name in lacking),
            hint="leave the settings out, or give the system no replicas",
        )
    if taken := [name for name in OWNED if name in own]:
        raise UsageError(
            f"{spec.label}: {', '.join(taken)} follows from the system's topology",
            hint="leave the setting out",
        )


def _wait(
    primary: Server, condition: str, names: Sequence[str], replicas: Sequence[Server]
) -> None:
    """Wait until the primary counts each replica by this condition."""
    for name, replica in zip(names, replicas, strict=True):
        question = f"{condition} AND application_name = '{name}'"
        wait_joined(
            partial(_is_one, primary, question),
            replica,
            lambda: "its primary does not count it among those that follow as they should",
        )


def _is_one(server: Server, question: str) -> bool:
    return count_of(server, question) == 1
