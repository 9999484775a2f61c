"""Translation of a plan's axes (buffer pool, redo log, thread pool …) into a server's own keys.

Versions name the same thing differently: redo space is a pair of files, one file or a capacity; a
thread pool is a switch or a plugin. `ROWS` holds a row for each axis and the first version that
spells it so. A setting that a server lacks is an error with its reason: run without it, the cell
would be a false result.

The keys are proven as all settings are: read back from the started server (`readback`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.plan.settings import OptionValue, SettingValue, size_bytes
from dbdyno.plan.spelling import share_of

Keys = dict[str, OptionValue]

MIB: Final = 1024**2
GIB: Final = 1024**3
POOL_BYTES_MIN: Final = 8 * MIB
"""Smallest buffer pool: below it some versions do not start, or busy connections lack room."""
CHUNKS_MAX: Final = 1000
"""MySQL's manual advises against a buffer pool of more chunks."""
POOL_PARTS: Final = 8
"""Instances of a buffer pool of 1 GiB and more, by default before MySQL 8.4."""
FOLLOWS: Final[Mapping[str, str]] = {"percona": "mysql", "greatsql": "mysql"}
"""Products that follow another product's versions, except where they have rows of their own."""


@dataclass(frozen=True)
class AxisRequest:
    """A value requested on one axis, for one server; the rest as in `keys_of`."""

    system: str
    value: str
    dataset_bytes: int | None
    processors: int

    @property
    def is_on(self) -> bool:
        return self.value == "on"


def keys_of(
    family: str,
    version: str,
    values: Mapping[str, str],
    own: Mapping[str, Mapping[str, Mapping[str, SettingValue]]],
    dataset_bytes: int | None,
    processors: int | None = None,
) -> dict[str, SettingValue]:
    """Configuration keys that give a server a cell's setting.

    Args:
        version: as the server reports it; a suffix behind the numbers is ignored.
        values: the setting's value on every axis (`plan.settings.combinations`).
        own: the plan's own axes: name, value, keys.
        dataset_bytes: size of the loaded dataset; None if unknown, which rules out shares.
        processors: cores for a thread pool; by default the cores of this process.

    Raises:
        UsageError: the server lacks the setting, or two axes set the same key.
    """
    options: dict[str, tuple[str, SettingValue]] = {}
    cores = processors or len(os.sched_getaffinity(0))
    for axis, value in values.items():
        request = AxisRequest(f"{family} {version}", value, dataset_bytes, cores)
        keys = own[axis][value] if axis in own else _known(family, version, axis, request)
        for key, option in keys.items():
            name = key.lower().replace("-", "_")
            if name in options:
                raise UsageError(
                    f"{request.system}: {key} is given by two axes of the settings",
                    found=f"{options[name][0]} and {axis}",
                    hint="leave it out of one of them",
                )
            options[name] = (axis, option)
    return {name: option for name, (_, option) in options.items()}


def _known(
    family: str, version: str, axis: str, request: AxisRequest
) -> Mapping[str, SettingValue]:
    if axis == "prepared_statements":  # the load's business, not the server's
        return {}
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))
    for name in (family, FOLLOWS.get(family)):
        rows = [r for r in ROWS if (r.axis, r.family) == (axis, name) and r.since <= numbers]
        if rows:
            return max(rows, key=lambda row: row.since).keys(request)
    raise UsageError(
        f"{request.system}: dbdyno does not know how to set {axis} there",
        wanted=f"{axis} {request.value}",
        hint="give the keys themselves, as an axis under settings.own or in the system's settings",
    )


def _commits_in_two_logs(request: AxisRequest) -> Keys:
    if request.value == "double-1":
        return {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1}
    return {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}


def _commits_in_one_log(request: AxisRequest) -> Keys:
    if request.value == "double-1":
        return {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
    return {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"}


def _bytes(request: AxisRequest) -> int:
    """Requested bytes; a share is rounded to a size that every server accepts unchanged."""
    exact = size_bytes(request.value)
    part = share_of(request.value)
    if exact is not None or part is None:
        return exact or 0
    if request.dataset_bytes is None:
        raise UsageError(
            f"{request.system}: {request.value} of the dataset cannot be worked out",
            wanted="the size of a dataset that dbdyno loaded",
            hint="give bytes, such as 1G",
        )
    whole = max(POOL_BYTES_MIN, int(request.dataset_bytes * part))
    unit = _grain(whole)
    return max(unit, round(whole / unit) * unit)


def _chunk(pool_bytes: int) -> int:
    """Smallest chunk, a power of two in MiB, that keeps the pool within `CHUNKS_MAX` chunks."""
    chunk = MIB
    while pool_bytes / chunk > CHUNKS_MAX and chunk < 128 * MIB:
        chunk *= 2
    return chunk


def _grain(pool_bytes: int) -> int:
    """Rounding unit of a chunked pool: one chunk for each buffer pool instance."""
    return _chunk(pool_bytes) * (1 if pool_bytes < GIB - 128 * MIB else POOL_PARTS)


def _pool(request: AxisRequest) -> Keys:
    return {"innodb_buffer_pool_size": _bytes(request)}


def _pool_in_chunks(request: AxisRequest) -> Keys:
    """Set small chunks: with 128 MiB each, a server would round 25 % of a small dataset up."""
    pool = _bytes(request)
    return {"innodb_buffer_pool_size": pool, "innodb_buffer_pool_chunk_size": _chunk(pool)}


def _pool_in_parts(request: AxisRequest) -> Keys:
    """Pin the number of instances, which 8.4 derives from the cores, to the default before 8.4."""
    keys = _pool_in_chunks(request)
    parts = POOL_PARTS if int(keys["innodb_buffer_pool_size"]) >= GIB else 1
    return {**keys, "innodb_buffer_pool_instances": parts}


def _redo_pair(request: AxisRequest) -> Keys:
    half = _bytes(request) // 2 // MIB * MIB
    return {"innodb_log_file_size": half, "innodb_log_files_in_group": 2}


def _thread_handling(request: AxisRequest) -> Keys:
    if not request.is_on:
        return {"thread_handling": "one-thread-per-connection"}
    return {"thread_handling": "pool-of-threads", "thread_pool_size": request.processors}


def _thread_pool_plugin(request: AxisRequest) -> Keys:
    """Load the plugin if on; state the size, as it came up with one group on two cores."""
    if not request.is_on:
        return {}
    return {"plugin_load_add": "thread_pool.so", "thread_pool_size": request.processors}


def _without(feature: str, instead: str) -> Callable[[AxisRequest], Keys]:
    """Rule for an absent feature: off needs no key, on is refused."""

    def keys(request: AxisRequest) -> Keys:
        if not request.is_on:
            return {}
        raise UsageError(f"{request.system} has no {feature}", wanted=f"{feature} on", hint=instead)

    return keys


def _binlog(request: AxisRequest) -> Keys:
    return {"log_bin": "ON" if request.is_on else "OFF"}


def _binlog_of_rows(request: AxisRequest) -> Keys:
    """Log rows also where the default is statements or mixed, as MySQL does from 5.7.7."""
    return {"log_bin": "ON", "binlog_format": "ROW"} if request.is_on else {"log_bin": "OFF"}


@dataclass(frozen=True)
class AxisRow:
    """Keys by which one family sets one axis, from a version on."""

    axis: str
    family: str
    since: tuple[int, ...]
    keys: Callable[[AxisRequest], Keys]


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
    AxisRow("buffer_pool", "postgres", (), lambda r: {"shared_buffers": f"{_bytes(r) // 1024}kB"}),
    AxisRow("redo_log", "mysql", (), _redo_pair),
    AxisRow("redo_log", "mysql", (8, 0, 30), lambda r: {"innodb_redo_log_capacity": _bytes(r)}),
    AxisRow("redo_log", "mariadb", (), _redo_pair),
    AxisRow("redo_log", "mariadb", (10, 5), lambda r: {"innodb_log_file_size": _bytes(r)}),
    AxisRow("redo_log", "postgres", (), lambda r: {"max_wal_size": f"{_bytes(r) // MIB}MB"}),
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
"""Rows by axis and family; the highest version not above the server's applies."""
