"""What one event of a workload must consist of, so that statements can be held against events.

The counts are sysbench's (docs of the workloads; method.md 1.h lists read_write 20, read_only 16,
write_only 6, point_select 1) and follow the workload's options.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import OptionValue

OFF: Final = ("off", "false", "no", "0")
TRANSACTION: Final = 2  # BEGIN and COMMIT
RANGES: Final = ("simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges")
READS: Final = ("point_selects", *RANGES)
WRITES: Final = ("index_updates", "non_index_updates", "delete_inserts")
DEFAULTS: Final = {"point_selects": 10, **dict.fromkeys((*RANGES, *WRITES), 1)}
STATEMENTS_OF: Final = {"delete_inserts": 2}  # a DELETE and an INSERT

COUNTED: Final[dict[str, tuple[str, ...]]] = {
    "oltp_read_write": (*READS, *WRITES),
    "oltp_read_only": READS,
    "oltp_write_only": WRITES,
}
"""Which options count the statements of the workloads that run transactions."""

SINGLE: Final = (
    "oltp_point_select",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
)
"""Workloads of one statement an event, whatever their options."""


LOADED_ONLY_READ: Final = (
    "oltp_read_only",
    "oltp_point_select",
    "select_random_points",
    "select_random_ranges",
)
UPDATES: Final = ("oltp_update_index", "oltp_update_non_index")


class Left(Enum):
    """What the workloads of a plan leave of the loaded rows."""

    ALL_ROWS = "the very rows that were loaded"
    AS_MANY = "as many rows as were loaded"
    UNKNOWN = "other rows"


def leaves(plan: Plan) -> Left:
    """What must be left of each table when every event of all workloads was whole or undone."""
    left = Left.ALL_ROWS
    for workload in plan.workloads:
        options = {key.replace("-", "_"): value for key, value in workload.options.items()}
        whole = not _is_on(options.get("skip_trx", False))
        if workload.name in UPDATES or (workload.name in COUNTED and whole):
            left = left if workload.name in LOADED_ONLY_READ else Left.AS_MANY
        elif workload.name not in LOADED_ONLY_READ:
            return Left.UNKNOWN
    return left


def always_writes(measurement: Measurement, plan: Plan) -> bool:
    """Whether every event of the workload changes a row, and so must reach the log."""
    name, options = _workload(measurement, plan)
    if name in ("oltp_insert", *UPDATES):
        return True
    if name not in ("oltp_read_write", "oltp_write_only"):
        return False
    return any(_count(options, kind) > 0 for kind in WRITES)


def statements_per_event(measurement: Measurement, plan: Plan) -> int | None:
    """Statements of one event of the measured workload; None where no invariant is known."""
    name, options = _workload(measurement, plan)
    if name in SINGLE:
        return 1
    if name in ("oltp_update_index", "oltp_update_non_index"):
        kind = "index_updates" if name == "oltp_update_index" else "non_index_updates"
        return _count(options, kind)
    if name not in COUNTED:
        return None
    kinds = COUNTED[name]
    if not _is_on(options.get("range_selects", True)):
        kinds = tuple(kind for kind in kinds if kind not in RANGES)
    statements = sum(_count(options, kind) * STATEMENTS_OF.get(kind, 1) for kind in kinds)
    return statements + (TRANSACTION if commits_per_event(measurement, plan) else 0)


def commits_per_event(measurement: Measurement, plan: Plan) -> int:
    """COMMIT statements of one event: 1 for a workload with transactions, else 0."""
    name, options = _workload(measurement, plan)
    return int(name in COUNTED and not _is_on(options.get("skip_trx", False)))


def _workload(measurement: Measurement, plan: Plan) -> tuple[str, dict[str, OptionValue]]:
    """Name and options; a label the plan does not have (an imported log) is taken as the name."""
    label = measurement.trial.cell.workload
    for workload in plan.workloads:
        if workload.label == label:
            options = {key.replace("-", "_"): value for key, value in workload.options.items()}
            return workload.name, options
    return label, {}


def _count(options: dict[str, OptionValue], kind: str) -> int:
    return int(options.get(kind, DEFAULTS[kind]))


def _is_on(value: OptionValue) -> bool:
    return str(value).lower() not in OFF
