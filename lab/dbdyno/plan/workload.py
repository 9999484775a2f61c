"""The load on a system: one of the engine's workloads, a Lua script, or a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Annotated, Final

from pydantic import Field, model_validator

from dbdyno import _engine
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.settings import OptionValue

SCRIPT_SUFFIX: Final = ".lua"
TEMPLATE_SUFFIXES: Final = (".yaml", ".yml")
SCRIPT_LENGTH_MAX: Final = 1_000_000

RANGES: Final = ("simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges")
READS: Final = {"point_selects": 10, **dict.fromkeys(RANGES, 1)}
WRITES: Final = dict.fromkeys(("index_updates", "non_index_updates", "deletes", "inserts"), 1)
MIXES: Final[Mapping[str, Mapping[str, int]]] = {
    "oltp_read_write": {**READS, **WRITES},
    "oltp_read_only": READS,
    "oltp_write_only": WRITES,
    "oltp_point_select": {"point_selects": 1},
    "oltp_update_index": {"index_updates": 1},
    "oltp_update_non_index": {"non_index_updates": 1},
    "oltp_delete": {"deletes": 1},
    "oltp_insert": {"inserts": 1},
    "select_random_points": {"random_points": 1},
    "select_random_ranges": {"random_ranges": 1},
}
"""Default number of statements of each kind in an event of sysbench's workloads."""
TRANSACTIONS: Final = ("oltp_read_write", "oltp_read_only", "oltp_write_only")
"""Workloads whose events are transactions, unless `skip_trx` is on."""


RESTS: Final = "\nlocal RESTS = true\n"


class WorkloadPlan(FiniteNoun):
    """A workload and its options, under a label.

    Attributes:
        name: name of a sysbench workload, such as ``oltp_read_write``, or path of a script or
            template.
        label: name in reports; by default `name` without a file's suffix.
        options: options of the sysbench workload, with underscores and without leading dashes, or
            of the script.
        script: text of the Lua script, or of the script made of a template; a plan file gives its
            path as `name` instead.
    """

    name: str
    label: str = ""
    options: dict[str, OptionValue] = {}
    script: Annotated[str, Field(max_length=SCRIPT_LENGTH_MAX)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _label_is_the_name(cls, value: object) -> object:
        if isinstance(value, dict) and not value.get("label"):
            return {**value, "label": default_label(str(value.get("name", "")))}
        return value

    @property
    def without_rests(self) -> str:
        """The script of a template without rests between events."""
        return (self.script or "").replace(RESTS, RESTS.replace("true", "false"))

    @property
    def may_rest(self) -> bool:
        """True if connections may rest between events; no latency includes these rests."""
        script = self.script or ""
        return RESTS in script or ("thread_run" in script and "\nlocal RESTS = " not in script)


def has_own_tables(workloads: Iterable[WorkloadPlan]) -> bool:
    """True if some workload is the engine's: its tables are the plan's dataset."""
    return any(workload.script is None for workload in workloads)


def default_label(name: str) -> str:
    """Default label of a workload: its name, without a file's suffix."""
    return PurePath(name).stem if is_script(name) else name


def known_workloads() -> list[str]:
    """The engine's workloads: current ones first, then legacy ones from before sysbench 1.0."""
    return [*_engine.workloads(), *_engine.legacy_workloads()]


def is_script(name: object) -> bool:
    """True if a workload's name is a script's or template's file."""
    return isinstance(name, str) and name.endswith((SCRIPT_SUFFIX, *TEMPLATE_SUFFIXES))
