"""Proves that restored files are the snapshot's, byte for byte: CRC-32 and length of each.

Read right after the copy the bytes come from memory, and a core sums several gigabytes a second, so
this is done at every restore. CRC-32 is against disks and accidents, not against an adversary.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError

FILE: Final = "files.json"
CHUNK_BYTES: Final = 1 << 22
NAMED_MAX: Final = 5
"""How many files an error names."""


def take(folder: Path) -> dict[str, list[int]]:
    """Length and CRC-32 of every file below a folder, by its path in it."""
    return {
        str(path.relative_to(folder)): _sum(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def keep(folder: Path, listed: Path) -> None:
    """Writes what `take` finds to a file, flushed."""
    with listed.open("w") as file:
        json.dump(take(folder), file)
        file.flush()
        os.fsync(file.fileno())


def compare(label: str, folder: Path, listed: Path) -> None:
    """The folder holds exactly the files that were listed; else a ServerError names the first."""
    wanted, found = json.loads(listed.read_text()), take(folder)
    unlike = [name for name in sorted({*wanted, *found}) if wanted.get(name) != found.get(name)]
    if unlike:
        raise ServerError(
            f"{label}: the restored files are not those of the snapshot",
            wanted=f"{len(wanted)} files with the checksums in {listed}",
            found=", ".join(unlike[:NAMED_MAX]) + (" …" if len(unlike) > NAMED_MAX else ""),
            hint=f"check the disk; remove {listed.parent} to have the rows loaded again",
        )


def _sum(path: Path) -> list[int]:
    length = check = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            length, check = length + len(chunk), zlib.crc32(chunk, check)
    return [length, check]
