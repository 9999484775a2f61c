"""Loads each system's dataset once; every arm then begins on a copy of exactly that."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dbdyno import _engine
from dbdyno.errors import DbdynoError, ServerError
from dbdyno.experiment import dataset_digest, disk
from dbdyno.experiment.context import Lab
from dbdyno.experiment.engine.process import FINAL, EngineProcess
from dbdyno.experiment.engine.spec import cleanup_spec, dataset_hash, prepare_spec
from dbdyno.plan.plan import Plan
from dbdyno.plan.plan_systems import SystemPlan
from dbdyno.servers.base import Instance, Server

WRITTEN_OUT_S: Final = 3600.0
"""A server that took rows may need long to write a large buffer pool out; killed, it had loaded
them in vain."""

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


def ensure_dataset(lab: Lab, instance: Instance) -> None:
    """Loads the dataset and takes its snapshot, unless there is one from an earlier run.

    Raises:
        LoadError: the rows could not be loaded (disk full, refused).
        ServerError: the server did not start, or not stop cleanly; or the snapshot failed.
    """
    label = instance.spec.label
    if instance.has_snapshot():
        lab.progress.stage(f"{label}: the dataset is there already")
        return
    lab.progress.stage(f"{label}: starting the server to load the dataset")
    server = instance.start()
    try:
        _load(lab, server)
        lab.progress.stage(f"{label}: taking a digest of the rows")
        dataset_digest.keep(instance.folder, dataset_digest.taken_or_empty(lab.plan, server))
    except BaseException as error:
        if isinstance(error, DbdynoError) and not server.alive():
            raise _died(label, server, error) from error
        with suppress(ServerError):
            server.stop()
        raise
    lab.progress.stage(f"{label}: copying the dataset aside")
    server.stop(WRITTEN_OUT_S)
    instance.snapshot()


def _load(lab: Lab, server: Server) -> None:
    plan, command = lab.plan, lab.makers.command
    # A lab that was killed while loading may have left half a table.
    with EngineProcess(
        "cleanup", cleanup_spec(plan, server), system=server.label, command=command
    ) as engine:
        engine.answer()
    with EngineProcess(
        "prepare", prepare_spec(plan, server), system=server.label, command=command
    ) as engine:
        told = ""
        while (message := engine.message()) is None or message.kind not in FINAL:
            disk.check_during(lab.folders)
            text = _stage(server.label, message.value if message else {})
            if text != told:
                lab.progress.stage(text)
                told = text


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
