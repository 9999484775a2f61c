"""Finds what a person names: a workspace's store that is there, and one of its runs.

Apart from `store` because only readers need it: a command that only reads must not make a folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dbdyno.errors import StoreError
from dbdyno.store.store import FILE_NAME, Store, StoredRun

LATEST: Final = "latest"
"""Stands for the newest run of a workspace wherever a run is named."""


def opened(workspace: Path) -> Store:
    """The store of a workspace that is there.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    if not (workspace / FILE_NAME).is_file():
        raise StoreError(
            "this workspace holds no run yet",
            wanted=f"a folder with {FILE_NAME}",
            found=f"none in {workspace}",
            hint="name the run's folder with --workspace",
        )
    return Store.open(workspace)


def find(store: Store, run_id: str) -> StoredRun:
    """The run of that id, or the newest for `latest`; StoreError if there is none."""
    if run_id != LATEST:
        return store.run(run_id)
    runs = store.runs()
    if not runs:
        raise StoreError("this workspace holds no run yet", hint="dbdyno compare --help")
    return runs[0]
