"""Plans, workloads and pages of docs that come with dbdyno, found from any folder.

`dbdyno run versions` reads `plans/versions.yaml` beside this file, unless the working folder has a
file `versions`. sysbench's persona imports this file too, so it does without pathlib.
"""

from __future__ import annotations

import os

PLANS = "plans"
WORKLOADS = "workloads"


def folder_of(kind: str) -> str:
    """Folder of the shipped files of a kind: `PLANS` or `WORKLOADS`."""
    return os.path.join(os.path.dirname(__file__), kind)  # noqa: PTH118, PTH120 - start-up time


def names(kind: str) -> list[str]:
    """Names of the shipped files of a kind."""
    return sorted(os.listdir(folder_of(kind)))  # noqa: PTH208 - start-up time


def path_of(typed: str, kind: str, folder: str = "") -> str:
    """Path of a file as typed; of a missing file, path of the shipped file with its name.

    `plans/versions.yaml`, `versions.yaml` and `versions` name the same plan.

    Args:
        folder: where a relative path begins; empty for the working folder.
    """
    path = os.path.join(folder, typed)  # noqa: PTH118 - start-up time
    name = typed.removeprefix(f"{kind}/")
    if not os.path.isfile(path):  # noqa: PTH113 - start-up time
        for known in names(kind):
            if name in (known, known.removesuffix(".yaml")):
                return os.path.join(folder_of(kind), known)  # noqa: PTH118 - start-up time
    return path


def with_pages(text: str) -> str:
    """A text in which each page of the docs, such as `docs/how-to/gate.md`, has its whole path.

    A release's wheel has the pages beside this file; a clone has them at its top.
    """
    import re  # noqa: PLC0415 - start-up time
    from pathlib import Path  # noqa: PLC0415 - start-up time

    package = Path(__file__).parent
    home = next((at for at in (package, package.parents[1]) if (at / "docs").is_dir()), None)
    if home is None:
        return text
    return re.sub(r"(?<![\w./-])(?=docs/[\w-]+/[\w-]+\.md\b)", lambda _: f"{home}/", text)
