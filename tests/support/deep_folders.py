"""Folders in folders, more than a path can name."""

from __future__ import annotations

import os
from pathlib import Path


def make_deep(folder: Path, levels: int) -> None:
    """Make so many folders, each in the one before; `files.remove_tree` can remove them."""
    parent = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("a", dir_fd=parent)
        child = os.open("a", os.O_RDONLY, dir_fd=parent)
        os.close(parent)
        parent = child
    os.close(parent)
