"""The folders of one instance: the running server's, and the snapshot that blocks begin with.

Below the instance's folder, ``server`` belongs to the user the server runs as; ``snapshot`` stays
the lab's own, so a server that goes wrong cannot spoil what later blocks begin with. A snapshot
counts once its marker is written, last of all; the marker names the programs and the settings that
decided the bytes, so a snapshot of another version or format is never taken for ours.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers.local import checksums, files
from dbdyno.servers.local.work_files import make_folders
from dbdyno.servers.process import ServerUser

MARKER: Final = "snapshot.json"


@dataclass(frozen=True)
class InstanceFiles:
    """What is done with an instance's files while no server runs on them.

    Attributes:
        label: the system, for messages.
        folder: the instance's; the rest lies below it.
        user: whose the running server's files are; None for our own.
        identity: what a snapshot must be of to be ours.
        beside: folders that a running server wants beside its data directory.
        copy: where the snapshot lies; None for below `folder`, another instance's for a replica.
    """

    label: str
    folder: Path
    user: ServerUser | None
    identity: Mapping[str, object]
    beside: tuple[str, ...] = ()
    copy: Path | None = None

    @property
    def work(self) -> Path:
        """The running server's folder."""
        return self.folder / "server"

    @property
    def data(self) -> Path:
        """The data directory in it."""
        return self.work / "data"

    @property
    def kept(self) -> Path:
        """The snapshot's data directory."""
        return self._copy / "data"

    def lay(self, source: Path) -> None:
        """The data directory becomes a copy of `source`; all else in the server's folder goes.

        Raises:
            ServerError: the file system refuses, or the disk is short.
        """
        self.clear()
        with self.told("laid out"):
            self._lay(source)

    def snapshot(self) -> None:
        """Copy the data aside, flushed; an older snapshot is replaced.

        Raises:
            ServerError: the file system refuses, or the disk is short.
        """
        with self.told("copied aside"):
            (self._copy / MARKER).unlink(missing_ok=True)  # first: half of it must not count
            shutil.rmtree(self._copy, ignore_errors=True)
            self._copy.mkdir(mode=0o700)
            files.copy_tree(self.data, self.kept, owner=None)
            checksums.keep(self.kept, self._copy / checksums.FILE)
            with (self._copy / MARKER).open("w") as marker:
                json.dump(self.identity, marker)
                marker.flush()
                os.fsync(marker.fileno())

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of this very server and format exists."""
        try:
            told = json.loads((self._copy / MARKER).read_text())
            return bool(told == self.identity and (self._copy / checksums.FILE).is_file())
        except (OSError, ValueError):
            return False

    def must_have_snapshot(self, wanted_for: str) -> None:
        """ServerError unless there is one to restore, to measure…"""
        if not self.has_snapshot():
            raise ServerError(f"{self.label}: there is no snapshot to {wanted_for}")

    def restore(self) -> None:
        """The data directory becomes the snapshot again, by checksum; ServerError if it cannot."""
        self.must_have_snapshot("restore")
        self.clear()
        with self.told("restored"):
            self._lay(self.kept)
            checksums.compare(self.label, self.data, self._copy / checksums.FILE)

    def clear(self) -> None:
        """Remove the running server's folder; the snapshot stays."""
        shutil.rmtree(self.work, ignore_errors=True)

    @contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Turns what the file system refuses into a ServerError."""
        try:
            yield
        except OSError as error:
            raise ServerError(
                f"{self.label}: its files in {self.folder} could not be {what}",
                found=str(error),
                hint="check the folder's free space, inodes and owner",
            ) from error

    @property
    def _copy(self) -> Path:
        return self.copy or self.folder / "snapshot"

    def _lay(self, source: Path) -> None:
        make_folders([self.work, *(self.work / name for name in self.beside)], self.user)
        files.copy_tree(source, self.data, self.user)
