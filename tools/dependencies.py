"""Prints the packages that pyproject.toml asks for, those for development too, one a line.

pip can install a project's dependencies only together with the project, which would build the
engine a second time, in isolation. maturin builds it once; pip gets this list.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def dependencies(pyproject: Path) -> list[str]:
    """The requirement lines of the project and of its `dev` extra, in their order."""
    project = tomllib.loads(pyproject.read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["dev"]]


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    sys.stdout.write("\n".join(dependencies(root / "pyproject.toml")) + "\n")
