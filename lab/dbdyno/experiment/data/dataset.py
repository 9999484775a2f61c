"""A system's dataset: loaded once, a digest of its rows taken; arms begin on copies."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from dbdyno import _engine
from dbdyno.errors import DbdynoError, LoadError, ServerError
from dbdyno.experiment.context import LoadRecord, RunContext
from dbdyno.experiment.data import disk
from dbdyno.experiment.engine.child import FINAL
from dbdyno.experiment.engine.process import EngineProcess, Message
from dbdyno.experiment.engine.spec import (
    cleanup_spec,
    dataset_hash,
    prepare_spec,
    script_commands,
    table_names,
)
from dbdyno.experiment.settle import purge_binary_logs
from dbdyno.experiment.watch.proc import read_process
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan, has_own_tables
from dbdyno.servers.base import (
    MYSQL,
    PGSQL,
    Instance,
    Loading,
    Renewing,
    Server,
    count_of,
    counts_of,
    rows_of,
)
from dbdyno.servers.foreign.endpoint import MARK
from dbdyno.servers.reference import is_endpoint

SYSTEMS: Final = "systems"
"""Folder of the servers' loads, in a workspace or in the cache."""

WRITTEN_OUT_S: Final = 3600.0
"""A server may take long to write out a large buffer pool after loading."""

LOGGED_BYTES: Final = 16 * 1024**2
"""Least rows for which a server is started once more to get rid of their redo log."""

NO_PROGRESS_S: Final = 60.0
"""Loading has failed if for so long no row arrives and the server uses no CPU."""
BUSY_S: Final = 1.0
"""Least CPU of a working server within `NO_PROGRESS_S`; an idle server uses a third of it."""
LOOK_S: Final = 1.0
STAGES_WITH_STEPS: Final = frozenset({"create", "insert"})
"""Stages in which the engine reports every step."""

ROWS_CHANGED: Final = 1
"""Version of the rows made from a seed, so older snapshots are not taken for current
ones. An engine's test holds the rows (`the_rows_of_a_seed_never_change`)."""


def folder_of(home: Path, plan: Plan, system: SystemPlan) -> Path:
    """Folder of a system's loads, shared by systems with the same table layout.

    The system's label is no part of it, so another plan with another label finds the same loads.
    Equal systems of a plan, such as a baseline named twice, get numbered folders. The name is
    short, as the path of a unix socket holds 107 bytes at most.

    Args:
        home: folder with `systems`.
    """
    alike = _laid_out_by(system)
    earlier = takewhile(lambda one: one.label != system.label, plan.systems)
    number = sum(_laid_out_by(one) == alike for one in earlier)
    about = json.dumps(
        [*alike, number, dataset_hash(plan), _engine.version(), ROWS_CHANGED, ROW_SUM[MYSQL]]
    )
    name = re.sub(r"[^A-Za-z0-9.]+", "-", system.reference)[:24]
    return home / SYSTEMS / f"{name}-{hashlib.sha256(about.encode()).hexdigest()[:8]}"


def _laid_out_by(system: SystemPlan) -> list[Any]:
    """Each setting may decide, say, how full pages become, and replicas how a primary is loaded."""
    topology = system.topology.model_dump(mode="json")
    return [system.reference, dict(sorted(system.settings.items())), topology]


def ensure_dataset(context: RunContext, instance: Instance) -> None:
    """Loads the dataset and takes its snapshot, unless there is one from an earlier run.

    The snapshot holds no log of the load, neither a binary log nor, after many rows, a redo log.

    Raises:
        LoadError: the rows could not be loaded (disk full, refused).
        ServerError: the server did not start, or not stop cleanly; or the snapshot failed.
    """
    label = instance.spec.label
    if instance.has_snapshot():
        context.progress.stage(f"{label}: the dataset is there already")
        return
    context.progress.stage(f"{label}: loading the dataset")
    is_ours = not is_endpoint(instance.spec.reference)
    is_large = context.plan.dataset.bytes_about >= LOGGED_BYTES
    keys = instance.loading_keys() if is_large and isinstance(instance, Renewing) else {}
    server = instance.start(keys)
    try:
        # A server that dies now leaves no snapshot: the next lab begins with fresh data.
        with server.loading() if isinstance(server, Loading) else nullcontext():
            _load(context, server)
        context.progress.stage(f"{label}: taking a digest of the rows")
        write_record(instance.folder, *digest_and_short_tables(context.plan, server))
        if is_ours:
            purge_binary_logs(server)
    except BaseException as error:
        if isinstance(error, DbdynoError) and not server.alive():
            raise _server_died(label, server, error) from error
        server.kill()  # half a dataset is of no use to anybody
        raise
    doing = "writing out the loaded rows" if is_ours else "noting the loaded tables"
    context.progress.stage(f"{label}: {doing}")
    server.stop(WRITTEN_OUT_S)
    if keys:
        instance.start().stop(WRITTEN_OUT_S)
    instance.snapshot()


def _load(context: RunContext, server: Server) -> None:
    plan, command = context.plan, context.makers.command
    # A lab that was killed while loading may have left half a table.
    steps: list[tuple[str, dict[str, Any]]] = []
    if has_own_tables(plan.workloads):
        dropped = cleanup_spec(plan.dataset, server)
        steps = [("cleanup", dropped), ("prepare", prepare_spec(plan, server))]
    for do, spec in steps:
        with EngineProcess(do, spec, system=server.label, command=command) as engine:
            shown = ""
            for message in _messages(engine, server, do):
                disk.check_during(context.folders)
                text = _stage(server.label, message.value) if message.kind not in FINAL else shown
                if text != shown:
                    context.progress.stage(text)
                    shown = text

    _load_by_scripts(context, server)


def _load_by_scripts(context: RunContext, server: Server) -> None:
    """Has each script of the plan drop its tables and make them."""
    plan, label = context.plan, server.label
    for do in ("cleanup", "prepare"):
        for workload, spec in script_commands(plan, server, do):
            context.progress.stage(f"{label}: script {workload.name}: {do}")
            with EngineProcess(
                "script", spec, system=label, command=context.makers.command
            ) as engine:
                for _ in _messages(engine, server, do):
                    disk.check_during(context.folders)
                _check_script(workload, do, engine.answer())


def _check_script(workload: WorkloadPlan, do: str, answer: Mapping[str, Any]) -> None:
    """LoadError if the script does not know an option of the plan, or its command failed."""
    declared = answer["declared"]
    unknown = sorted(workload.options.keys() - set(declared)) if declared else []
    if unknown:
        raise LoadError(
            f"{workload.name} has no option {unknown[0]}",
            wanted=f"one of {', '.join(declared)}",
            found=", ".join(unknown),
            hint=f"correct the options of {workload.label} in the plan",
        )
    if not answer["well"]:
        raise LoadError(
            f"{workload.name}: its command {do} says that it failed",
            wanted="a command that returns something else than false",
            found="false",
            hint=f"try it by hand: dbdyno sysbench {workload.name} … {do}",
        )


def _messages(engine: EngineProcess, server: Server, do: str) -> Iterator[Message]:
    """The engine's messages up to the final one; LoadError after a stall."""
    last: Message | None = None
    since, busy = time.monotonic(), _cpu_s(server)
    while last is None or last.kind not in FINAL:
        message = engine.message(LOOK_S)
        if message is not None and message != last:
            last, since, busy = message, time.monotonic(), _cpu_s(server)
            yield message
        elif time.monotonic() - since > NO_PROGRESS_S:
            stage = last.value.get("stage", do) if last is not None else do
            if not _is_at_work(server, busy, stage):
                raise LoadError(
                    f"{server.label}: loading the dataset came to a halt",
                    wanted=f"rows, or work of the server on them, within {NO_PROGRESS_S:.0f} s",
                    found=f"neither, at the stage {stage}",
                    hint="is the server stopped, its disk hung, or a table locked?",
                )
            since, busy = time.monotonic(), _cpu_s(server)


def _cpu_s(server: Server) -> float:
    """CPU seconds used by the server; 0 if unreadable."""
    return read_process(server.pid).cpu_s if server.pid else 0.0


def _is_at_work(server: Server, before_s: float, stage: str) -> bool:
    """Progress of a server between messages, for example minutes of work on a large index.

    Rows are reported as they arrive. An endpoint's server counts as busy while it answers.
    """
    if server.pid:
        return _cpu_s(server) - before_s >= BUSY_S
    return stage not in STAGES_WITH_STEPS and server.alive()


def _stage(label: str, progress: Mapping[str, Any]) -> str:
    """`mysql:8.0.15: loading rows, 35 %`, of the rows of all tables; at the end their indexes."""
    rows, rows_total = progress.get("rows_done", 0), progress.get("rows_total") or 0
    if rows == rows_total and progress.get("stage") == "index":
        return f"{label}: building indexes"
    return f"{label}: loading rows, {100 * rows // rows_total if rows_total else 0} %"


def _server_died(label: str, server: Server, error: DbdynoError) -> ServerError:
    return ServerError(
        f"{label}: the server died while the dataset was loaded",
        wanted="a server that takes the rows",
        found=f"{error.found or error.message}; its last words: {server.last_words() or 'none'}",
        hint="look for memory or disk running out; then start the run again",
    )


# A digest of the loaded rows shows whether two systems hold the same ones.
#
# It covers each table's number of rows and the sum of 32 bits of each row's SHA-256, as a sum
# needs no order of reading, and every product can compute it. It is taken once, before the
# snapshot; copies of the snapshot are compared file by file, which leaves the server's caches cold.

RECORD: Final = "dataset.json"
PIECE_ROWS: Final = 500_000
DIGEST_LENGTH: Final = 16
"""Kept characters of the digest: enough to compare, no protection against forgery."""


ROW_SUM: Final = {
    MYSQL: "CAST(CONV(LEFT(SHA2(CONCAT_WS('/', id, k, c, pad), 256), 8), 16, 10) AS UNSIGNED)",
    # A cast to text takes the blanks off that fill a CHAR, as MySQL does.
    PGSQL: "('x' || left(encode(sha256(convert_to(concat_ws('/', id, k, c::text, pad::text),"
    " 'UTF8')), 'hex'), 8))::bit(32)::bigint",
}
"""A number of 32 bits for each row, the same on all products; MySQL 9.6 and later have no MD5."""


PUBLIC: Final = "public"
"""The schema of a PostgreSQL in which the load's tables are."""


def quoted_table(server: Server, table: str) -> str:
    """Quoted name of a table of the load in the server's SQL."""
    if server.driver == PGSQL:
        doubled = table.replace('"', '""')
        return f'"{doubled}"'
    doubled = table.replace("`", "``")
    return f"`{server.database}`.`{doubled}`"


def tables(plan: Plan, server: Server) -> list[tuple[str, int, int]]:
    """Name, rows and sum of each of the plan's tables; ServerError if it cannot be asked."""
    own = [(table, *_of_table(plan, server, table)) for table in table_names(plan)]
    return [*own, *_of_scripts(plan, server)]


def _of_scripts(plan: Plan, server: Server) -> list[tuple[str, int, int]]:
    """Name and number of rows of each table created by scripts; their content is unknown."""
    if all(workload.script is None for workload in plan.workloads):
        return []
    schema = PUBLIC if server.driver == PGSQL else server.database
    listed = (
        "SELECT table_name FROM information_schema.tables"
        f" WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE'"
    )
    # An endpoint's mark is no table of a load. PostgreSQL keeps names in small
    # letters, and collations of systems differ.
    names = {row[0] for row in rows_of(server, listed, 1)}
    others = sorted(names - {*table_names(plan), MARK}, key=str.lower)
    counted = []
    for name in others:
        rows = count_of(server, f"SELECT COUNT(*) FROM {quoted_table(server, name)}")
        counted.append((name.lower(), rows, 0))
    return counted


def digest(tables: list[tuple[str, int, int]]) -> str:
    """Digest over the rows of `tables`."""
    return hashlib.sha256(json.dumps(tables).encode()).hexdigest()[:DIGEST_LENGTH]


def _of_table(plan: Plan, server: Server, table: str) -> tuple[int, int]:
    """Number of rows and checksum of a table, queried in pieces with quick answers."""
    rows = total = 0
    for first in range(1, plan.dataset.rows + 1, PIECE_ROWS):
        sql = (
            f"SELECT COUNT(*), COALESCE(SUM({ROW_SUM[server.driver]}), 0)"
            f" FROM {quoted_table(server, table)}"
            f" WHERE id BETWEEN {first} AND {first + PIECE_ROWS - 1}"
        )
        count, part = counts_of(server, sql, 2)
        rows, total = rows + count, total + part
    return rows, total


def write_record(folder: Path, digest: str, short: Mapping[str, int]) -> None:
    """Write the record of a new load, before its snapshot is taken."""
    record = LoadRecord(digest, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", dict(short))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(json.dumps(record._asdict()))


def read_record(folder: Path) -> LoadRecord:
    """The stored record, or an empty record without a readable file."""
    try:
        stored = json.loads((folder / RECORD).read_text())
        short = {str(name): int(rows) for name, rows in stored.get("short", {}).items()}
        return LoadRecord(str(stored["rows"]), str(stored["name"]), short)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return LoadRecord()


def digest_and_short_tables(plan: Plan, server: Server) -> tuple[str, dict[str, int]]:
    """Digest of the plan's tables, and the rows of those with fewer than were sent.

    Both are empty where the server has no answer of whole numbers.
    """
    try:
        held = tables(plan, server)
    except ServerError:
        return "", {}
    own = set(table_names(plan))
    return digest(held), {
        name: rows for name, rows, _ in held if name in own and rows < plan.dataset.rows
    }
