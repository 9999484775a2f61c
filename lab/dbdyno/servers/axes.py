"""What a setting of the plan means for one server: an axis and a value become its own keys.

Versions call the same thing by other names: redo space is a pair of files, one file or a capacity;
a thread pool is a switch, a plugin or not there. All of that stands in `ROWS`, one row for an axis
and the first version that has it so. What a server cannot have is an error that says why, since a
cell that is run without what it is named for would be a false result.

The keys are proven as all settings are: read back from the started server (`readback`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.plan.settings import OptionValue, SettingValue, share, size_bytes

Keys = dict[str, OptionValue]

MIB: Final = 1024**2
GIB: Final = 1024**3
POOL_BYTES_MIN: Final = 8 * MIB
"""Below it InnoDB does not start on every version, or has no room for a few busy connections."""
CHUNKS_MAX: Final = 1000
"""MySQL's manual advises against a buffer pool of more chunks."""
POOL_PARTS: Final = 8
"""Instances of a buffer pool of 1 GiB and more, by default before MySQL 8.4."""
FOLLOWS: Final[Mapping[str, str]] = {"percona": "mysql", "greatsql": "mysql"}
"""Products that follow another's versions, except where they have rows of their own."""


@dataclass(frozen=True)
class Asked:
    """One value of one axis, for one server.

    Attributes:
        system: product and version, for messages.
        value: as in the plan, such as ``25%``.
        dataset_bytes: the loaded dataset that a share is a share of; None where nobody knows.
        processors: cores that a thread pool has threads for.
    """

    system: str
    value: str
    dataset_bytes: int | None
    processors: int


def keys_of(
    family: str,
    version: str,
    values: Mapping[str, str],
    own: Mapping[str, Mapping[str, Mapping[str, SettingValue]]],
    dataset_bytes: int | None,
    processors: int | None = None,
) -> dict[str, SettingValue]:
    """The configuration keys that give a server the setting of a cell.

    Args:
        family: product such as ``mysql``, ``mariadb``, ``postgres``.
        version: as the server says it; what follows its numbers does not matter.
        values: the setting's value on every axis (`plan.settings.combinations`).
        own: the plan's further axes: name, value, keys.
        dataset_bytes: size of the loaded dataset; None if unknown, and no share may be asked for.
        processors: cores for a thread pool; this process's unless given.

    Raises:
        UsageError: this server cannot have it, and why; or two axes give one key.
    """
    found: dict[str, tuple[str, SettingValue]] = {}
    cores = processors or len(os.sched_getaffinity(0))
    for axis, value in values.items():
        asked = Asked(f"{family} {version}", value, dataset_bytes, cores)
        keys = own[axis][value] if axis in own else _known(family, version, axis, asked)
        for key, option in keys.items():
            name = key.lower().replace("-", "_")
            if name in found:
                raise UsageError(
                    f"{asked.system}: {key} is given by two axes of the settings",
                    found=f"{found[name][0]} and {axis}",
                    hint="leave it out of one of them",
                )
            found[name] = (axis, option)
    return {name: option for name, (_, option) in found.items()}


def _known(family: str, version: str, axis: str, asked: Asked) -> Mapping[str, SettingValue]:
    if axis == "prepared_statements":  # the load's business, not the server's
        return {}
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))
    for name in (family, FOLLOWS.get(family)):
        rows = [r for r in ROWS if (r.axis, r.family) == (axis, name) and r.since <= numbers]
        if rows:
            return max(rows, key=lambda row: row.since).keys(asked)
    raise UsageError(
        f"{asked.system}: dbdyno does not know how to set {axis} there",
        wanted=f"{axis} {asked.value}",
        hint="give the keys themselves, as an axis under settings.own or in the system's settings",
    )


def _on(asked: Asked) -> bool:
    return asked.value == "on"


def _commits_in_two_logs(asked: Asked) -> Keys:
    """InnoDB's redo log and the binary log, both synced at each commit, or neither."""
    if asked.value == "double-1":
        return {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1}
    return {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}


def _commits_in_one_log(asked: Asked) -> Keys:
    if asked.value == "double-1":
        return {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
    return {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"}


def _bytes(asked: Asked) -> int:
    """The bytes asked for; a share becomes a size that every server takes, the same for all."""
    exact = size_bytes(asked.value)
    part = share(asked.value)
    if exact is not None or part is None:
        return exact or 0
    if asked.dataset_bytes is None:
        raise UsageError(
            f"{asked.system}: {asked.value} of the dataset cannot be worked out",
            wanted="the size of a dataset that dbdyno loaded",
            hint="give bytes, such as 1G",
        )
    whole = max(POOL_BYTES_MIN, int(asked.dataset_bytes * part))
    unit = _grain(whole)
    return max(unit, round(whole / unit) * unit)


def _chunk(pool_bytes: int) -> int:
    """The smallest power of two of MiB that cuts the pool into not too many chunks."""
    chunk = MIB
    while pool_bytes / chunk > CHUNKS_MAX and chunk < 128 * MIB:
        chunk *= 2
    return chunk


def _grain(pool_bytes: int) -> int:
    """What a pool in chunks is a multiple of: a chunk for each of its instances."""
    return _chunk(pool_bytes) * (1 if pool_bytes < GIB - 128 * MIB else POOL_PARTS)


def _pool(asked: Asked) -> Keys:
    return {"innodb_buffer_pool_size": _bytes(asked)}


def _pool_in_chunks(asked: Asked) -> Keys:
    """With small chunks: at 128 MiB each, a server would round 25 % of a small dataset up."""
    pool = _bytes(asked)
    return {"innodb_buffer_pool_size": pool, "innodb_buffer_pool_chunk_size": _chunk(pool)}


def _pool_in_parts(asked: Asked) -> Keys:
    """From 8.4 the number of instances hangs on the cores; as many as every version before."""
    keys = _pool_in_chunks(asked)
    parts = POOL_PARTS if int(keys["innodb_buffer_pool_size"]) >= GIB else 1
    return {**keys, "innodb_buffer_pool_instances": parts}


def _shared_buffers(asked: Asked) -> Keys:
    return {"shared_buffers": f"{_bytes(asked) // 1024}kB"}


def _redo_pair(asked: Asked) -> Keys:
    half = _bytes(asked) // 2 // MIB * MIB
    return {"innodb_log_file_size": half, "innodb_log_files_in_group": 2}


def _redo_capacity(asked: Asked) -> Keys:
    return {"innodb_redo_log_capacity": _bytes(asked)}


def _redo_file(asked: Asked) -> Keys:
    return {"innodb_log_file_size": _bytes(asked)}


def _wal_size(asked: Asked) -> Keys:
    return {"max_wal_size": f"{_bytes(asked) // MIB}MB"}


def _thread_handling(asked: Asked) -> Keys:
    if not _on(asked):
        return {"thread_handling": "one-thread-per-connection"}
    return {"thread_handling": "pool-of-threads", "thread_pool_size": asked.processors}


def _thread_pool_plugin(asked: Asked) -> Keys:
    """Off is the plugin not loaded; on it came up with one group on two cores, so that is said."""
    if not _on(asked):
        return {}
    return {"plugin_load_add": "thread_pool.so", "thread_pool_size": asked.processors}


def _without(what: str, instead: str) -> Callable[[Asked], Keys]:
    """Off is what such a server is anyway; on cannot be."""

    def keys(asked: Asked) -> Keys:
        if not _on(asked):
            return {}
        raise UsageError(f"{asked.system} has no {what}", wanted=f"{what} on", hint=instead)

    return keys


def _binlog(asked: Asked) -> Keys:
    return {"log_bin": "ON" if _on(asked) else "OFF"}


def _binlog_of_rows(asked: Asked) -> Keys:
    """Where statements or a mixture are logged by default: rows, as MySQL does from 5.7.7."""
    return {"log_bin": "ON", "binlog_format": "ROW"} if _on(asked) else {"log_bin": "OFF"}


@dataclass(frozen=True)
class AxisRow:
    """How one family sets one axis from a version on."""

    axis: str
    family: str
    since: tuple[int, ...]
    keys: Callable[[Asked], Keys]


_NO_POOL = _without("thread pool", "compare on mysql:9.7.4, a MariaDB, Percona Server or GreatSQL")

ROWS: Final = (
    AxisRow("durability", "mysql", (), _commits_in_two_logs),
    AxisRow("durability", "mariadb", (), _commits_in_two_logs),
    AxisRow("durability", "postgres", (), _commits_in_one_log),
    AxisRow("buffer_pool", "mysql", (), _pool),
    AxisRow("buffer_pool", "mysql", (5, 7, 5), _pool_in_chunks),
    AxisRow("buffer_pool", "mysql", (8, 4), _pool_in_parts),
    AxisRow("buffer_pool", "mariadb", (), _pool),
    AxisRow("buffer_pool", "mariadb", (10, 2, 2), _pool_in_chunks),
    AxisRow("buffer_pool", "mariadb", (10, 11), _pool),  # cuts its pool into chunks that fit
    AxisRow("buffer_pool", "postgres", (), _shared_buffers),
    AxisRow("redo_log", "mysql", (), _redo_pair),
    AxisRow("redo_log", "mysql", (8, 0, 30), _redo_capacity),
    AxisRow("redo_log", "mariadb", (), _redo_pair),
    AxisRow("redo_log", "mariadb", (10, 5), _redo_file),
    AxisRow("redo_log", "postgres", (), _wal_size),
    AxisRow("thread_pool", "mysql", (), _NO_POOL),
    AxisRow("thread_pool", "mysql", (9, 7), _thread_pool_plugin),
    AxisRow("thread_pool", "mariadb", (), _thread_handling),
    AxisRow("thread_pool", "percona", (), _thread_handling),
    AxisRow("thread_pool", "greatsql", (), _thread_handling),
    AxisRow("thread_pool", "postgres", (), _NO_POOL),
    AxisRow("binlog", "mysql", (), _binlog_of_rows),
    AxisRow("binlog", "mysql", (5, 7, 7), _binlog),
    AxisRow("binlog", "mariadb", (), _binlog_of_rows),
    AxisRow("binlog", "postgres", (), _without("binary log beside its WAL", "leave binlog off")),
)
"""Each axis and family: the row with the highest version that is not above the server's."""
