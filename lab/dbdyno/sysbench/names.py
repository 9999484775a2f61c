"""Which test is meant: a built-in one, by its name or by the path under which sysbench ships it.

Published command lines name scripts by paths of machines long gone. Such a path means the built-in
test unless there is a file: a file is only taken for sysbench's own where sysbench puts its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dbdyno.sysbench.options.compat import V1_1
from dbdyno.sysbench.options.not_yet import check_test, refusal
from dbdyno.sysbench.options.refusal import fatal
from dbdyno.sysbench.options.table import LEGACY, ONE_TABLE

COMMON = "oltp_common"
"""The module that sysbench 1.0's tests share; its prepare and cleanup are theirs."""

SCRIPTS = (
    *("oltp", "oltp_simple", "select", "insert", "delete", "update_index", "update_non_index"),
    *("bulk_insert", "parallel_prepare", "select_random_points", "select_random_ranges"),
)
"""The scripts of sysbench 0.5, which 1.0 has under tests/include/oltp_legacy."""

_LEGACY_FOLDERS = ("db", "oltp_legacy")
_FOLDERS = ("sysbench", "lua")
_TOO_OLD = "a legacy test of sysbench 1.0 and before: leave --compat=1.1 out"


def recognised(typed: str, *, is_option: bool, version: str, ours: Sequence[str]) -> str:
    """The test's own name: one of `ours`, `COMMON`, `ONE_TABLE`, or `LEGACY` and a script's name.

    Args:
        is_option: whether it was typed as ``--test=``, where bare names of scripts are meant.

    Raises:
        Refusal: it is no test of ours, or a script of the user's.
    """
    folder, base = os.path.split(typed)
    stem = base.removesuffix(".lua")
    script = _file(typed, ours)
    if script is not None and not _is_of_sysbench(script, stem, ours):
        raise refusal(script, f"Lua scripts; built in are {', '.join(ours)}")
    is_bare = typed == stem
    is_legacy_folder = os.path.basename(folder) in _LEGACY_FOLDERS  # noqa: PTH119 - start-up time
    if stem in (*ours, COMMON) and not is_legacy_folder:
        return stem
    if stem not in SCRIPTS or (is_bare and not is_option):
        check_test(typed, ours)
    if version == V1_1:
        raise fatal(f"{typed}: {_TOO_OLD}")
    return ONE_TABLE if typed == ONE_TABLE else LEGACY + stem


def _file(typed: str, ours: Sequence[str]) -> str | None:
    """The file that sysbench would run: the path itself, or a module in the working directory."""
    places = [typed, f"./{typed}.lua"] if typed in (*ours, COMMON, *SCRIPTS) else [typed]
    return next((place for place in places if os.path.isfile(place)), None)  # noqa: PTH113


def _is_of_sysbench(path: str, stem: str, ours: Sequence[str]) -> bool:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 - start-up time
    name = os.path.basename(folder)  # noqa: PTH119

    def beside(module: str) -> bool:
        return os.path.isfile(os.path.join(folder, module))  # noqa: PTH113, PTH118

    if name in _LEGACY_FOLDERS:
        return stem in SCRIPTS and beside("common.lua")
    return name in _FOLDERS and stem in (*ours, COMMON) and beside("oltp_common.lua")
