"""Loads each system's dataset once; every arm then begins on a copy of exactly that."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dbdyno import _engine
from dbdyno.errors import DbdynoError, LoadError, ServerError
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.engine.process import FINAL, EngineProcess, Message
from dbdyno.experiment.engine.spec import cleanup_spec, dataset_hash, prepare_spec, table_names
from dbdyno.experiment.watch.proc import read_process
from dbdyno.plan.controls import control_cell, control_system
from dbdyno.plan.plan import Plan, SystemPlan
from dbdyno.servers import reference
from dbdyno.servers.base import Instance, Server
from dbdyno.servers.local.files import occupied_bytes

WRITTEN_OUT_S: Final = 3600.0
"""A server that took rows may need long to write a large buffer pool out; killed, it had loaded
them in vain."""

NO_PROGRESS_S: Final = 60.0
"""Without a row, or work of the server, for so long, loading has come to a halt."""
BUSY_S: Final = 1.0
"""Processor time that shows work in `NO_PROGRESS_S`; an idle server uses a third of that."""
LOOK_S: Final = 1.0
TOLD: Final = frozenset({"create", "insert"})
"""Stages of which the engine tells every step."""

ROWS_CHANGED: Final = 1
"""How often it has changed which rows a seed makes, so that snapshots from before are not taken for
those of now. An engine's test holds the rows (`the_rows_of_a_seed_never_change`)."""


def folder_of(folder: Path, plan: Plan, system: SystemPlan) -> Path:
    """Where a system's files are: one folder for each system, settings and dataset.

    Short, since a unix socket's path has room for 107 bytes only.
    """
    about = json.dumps(
        [
            *(system.label, system.reference, dict(sorted(system.settings.items()))),
            *(dataset_hash(plan), _engine.version(), ROWS_CHANGED),
        ]
    )
    name = re.sub(r"[^A-Za-z0-9.]+", "-", system.label)[:24]
    return folder / "systems" / f"{name}-{hashlib.sha256(about.encode()).hexdigest()[:8]}"


def ensure_dataset(context: RunContext, instance: Instance) -> None:
    """Loads the dataset and takes its snapshot, unless there is one from an earlier run.

    Raises:
        LoadError: the rows could not be loaded (disk full, refused).
        ServerError: the server did not start, or not stop cleanly; or the snapshot failed.
    """
    label = instance.spec.label
    if instance.has_snapshot():
        context.progress.stage(f"{label}: the dataset is there already")
        return
    context.progress.stage(f"{label}: starting the server to load the dataset")
    server = instance.start()
    try:
        _load(context, server)
        context.progress.stage(f"{label}: taking a digest of the rows")
        keep(instance.folder, taken_or_empty(context.plan, server))
    except BaseException as error:
        if isinstance(error, DbdynoError) and not server.alive():
            raise _died(label, server, error) from error
        server.kill()  # half a dataset is of no use to anybody
        raise
    context.progress.stage(f"{label}: copying the dataset aside")
    server.stop(WRITTEN_OUT_S)
    instance.snapshot()


def _load(context: RunContext, server: Server) -> None:
    plan, command = context.plan, context.makers.command
    # A lab that was killed while loading may have left half a table.
    for do, spec in (
        ("cleanup", cleanup_spec(plan, server)),
        ("prepare", prepare_spec(plan, server)),
    ):
        with EngineProcess(do, spec, system=server.label, command=command) as engine:
            told = ""
            for message in _heard(engine, server, do):
                check_during(context.folders)
                text = _stage(server.label, message.value) if message.kind not in FINAL else told
                if text != told:
                    context.progress.stage(text)
                    told = text


def _heard(engine: EngineProcess, server: Server, do: str) -> Iterator[Message]:
    """What the engine tells, its last word included; LoadError once nothing moves any more."""
    last: Message | None = None
    since, busy = time.monotonic(), _busy(server)
    while last is None or last.kind not in FINAL:
        message = engine.message(LOOK_S)
        if message is not None and message != last:
            last, since, busy = message, time.monotonic(), _busy(server)
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
            since, busy = time.monotonic(), _busy(server)


def _busy(server: Server) -> float:
    """Processor seconds that the server has used; 0 where it cannot be seen."""
    return read_process(server.pid).cpu_s if server.pid else 0.0


def _is_at_work(server: Server, before_s: float, stage: str) -> bool:
    """Whether a server that tells nothing works, as it does for minutes on a large index.

    Rows are told as they arrive. A server of somebody else's counts as working while it answers.
    """
    if server.pid:
        return _busy(server) - before_s >= BUSY_S
    return stage not in TOLD and server.alive()


def _stage(label: str, progress: Mapping[str, Any]) -> str:
    """`mysql:8.0.15: loading table 2, 35 %`: in steps of 5 %, as one does not read faster."""
    rows_total = progress.get("rows_total") or 0
    percent = 5 * int(20 * progress.get("rows_done", 0) / rows_total) if rows_total else 0
    if progress.get("stage") == "index":
        return f"{label}: building the index of table {progress.get('table')}"
    return f"{label}: loading table {progress.get('table')}, {percent} %"


def _died(label: str, server: Server, error: DbdynoError) -> ServerError:
    return ServerError(
        f"{label}: the server died while the dataset was loaded",
        wanted="a server that takes the rows",
        found=f"{error.found or error.message}; its last words: {server.last_words() or 'none'}",
        hint="look for memory or disk running out; then start the run again",
    )


# A digest of the loaded rows, so that two systems can be shown to hold the same ones.
#
# Each table is told by its number of rows and the sum of the first 32 bits of each row's MD5: a
# sum does not depend on the order in which a server reads rows, and every product can work it
# out. It is taken once, before the snapshot; later copies of that are compared file by file,
# which leaves the caches of a server that is to be measured alone.


FILE: Final = "dataset.json"
PIECE_ROWS: Final = 500_000
SHOWN: Final = 16
"""Characters of the digest that are kept: it is compared, not defended."""


def take(plan: Plan, server: Server) -> str:
    """The digest of the plan's tables on a running server; ServerError if it cannot be asked."""
    return digest(tables(plan, server))


def tables(plan: Plan, server: Server) -> list[tuple[str, int, int]]:
    """Name, rows and sum of each of the plan's tables; ServerError if it cannot be asked."""
    return [(table, *_of_table(plan, server, table)) for table in table_names(plan)]


def digest(told: list[tuple[str, int, int]]) -> str:
    """One text that stands for all of it."""
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:SHOWN]


def _of_table(plan: Plan, server: Server, table: str) -> tuple[int, int]:
    """Rows and sum of one table, asked for in pieces so that each answer comes soon."""
    rows = total = 0
    for first in range(1, plan.dataset.rows + 1, PIECE_ROWS):
        count, part = server.ask(
            "SELECT COUNT(*), COALESCE(SUM(CAST(CONV(LEFT(MD5("
            "CONCAT_WS('/', id, k, c, pad)), 8), 16, 10) AS UNSIGNED)), 0)"
            f" FROM `{server.database}`.`{table}`"
            f" WHERE id BETWEEN {first} AND {first + PIECE_ROWS - 1}"
        )[0]
        rows, total = rows + int(count), total + int(part)
    return rows, total


def keep(folder: Path, digest: str) -> None:
    """Notes the digest beside the snapshot it is about to be of."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"rows": digest}))


def kept(folder: Path) -> str:
    """The digest that was noted; empty where none was, as for an endpoint's own tables."""
    try:
        return str(json.loads((folder / FILE).read_text())["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def taken_or_empty(plan: Plan, server: Server) -> str:
    """`take`, or an empty text where the server does not know these words."""
    try:
        return take(plan, server)
    except ServerError:
        return ""


# Whether the disks have room: before anything is loaded, and while the run goes on.
#
# A server on a full disk does not fail, it waits, or it breaks its data. So a run that cannot fit
# is refused before its first row, and one that comes near the end of the disk stops itself while
# all that was measured is safe.


ROW_BYTES: Final = 250
"""A sysbench row with its secondary index in InnoDB takes 190 to 300 bytes."""
EMPTY_BYTES: Final = 800 * 1024**2
"""A data directory before its first row: system tables and 512 MiB of redo space."""
GROWTH: Final = 0.1
"""Rows inserted, undo and split pages while the load runs, as a share of the dataset."""
FLOOR_BYTES: Final = 128 * 1024**2
"""With less than that free, nothing is begun and what runs is stopped."""


def rows_bytes(plan: Plan) -> int:
    """Bytes of the loaded tables with their indexes, about."""
    return plan.dataset.tables * plan.dataset.rows * ROW_BYTES


def bytes_expected(plan: Plan) -> int:
    """Disk space of the whole plan: each server's data twice, as a snapshot and at work.

    The controls have one of their own, a replica has all that its primary has, and the servers of
    an endpoint have their own disks.
    """
    systems = [*plan.systems, *([control_system(plan)] if control_cell(plan) else [])]
    servers = sum(1 + s.topology.replicas for s in systems if not s.is_endpoint)
    return int(servers * (2 * EMPTY_BYTES + (2 + GROWTH) * rows_bytes(plan)))


def check_before(plan: Plan, instances: Iterable[Instance]) -> None:
    """There is room for what these instances still have to write; LoadError says what is missing.

    Instances that have their snapshot need room for one copy of it, others for rows and a copy; an
    endpoint's rows are not on disks of this machine, as far as the lab can know.
    """
    wanted: dict[int, int] = {}
    places: dict[int, Path] = {}
    ours = [one for one in instances if not reference.is_endpoint(one.spec.reference)]
    for instance in ours:
        place = _there(instance.folder)
        disk = place.stat().st_dev
        places.setdefault(disk, place)
        wanted[disk] = wanted.get(disk, FLOOR_BYTES) + _still_needed(plan, instance)
    for disk, place in places.items():
        free = shutil.disk_usage(place).free
        if free < wanted[disk]:
            raise LoadError(
                "the disk is too small for this plan",
                wanted=f"{_megabytes(wanted[disk])} free at {place}",
                found=f"{_megabytes(free)} free",
                hint="free space where the workspace is, ask for fewer rows or systems, or name a"
                " workspace on another disk with --workspace",
            )


def check_during(folders: Sequence[Path]) -> None:
    """None of the disks is nearly full; LoadError otherwise."""
    for folder in folders:
        place = _there(folder)
        free = shutil.disk_usage(place).free
        if free < FLOOR_BYTES:
            raise LoadError(
                "the disk is nearly full",
                wanted=f"{_megabytes(FLOOR_BYTES)} free at {place}",
                found=f"{_megabytes(free)} free",
                hint="free space where the workspace is, then resume the run; finished trials are"
                " stored",
            )


def _still_needed(plan: Plan, instance: Instance) -> int:
    there = occupied_bytes(instance.folder)
    grown = int(GROWTH * rows_bytes(plan))
    return there + grown if instance.has_snapshot() else there + grown + 2 * rows_bytes(plan)


def _there(folder: Path) -> Path:
    """The folder, or the nearest above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"
