"""What a system is asked to do: one of the engine's workloads, a Lua script, or a template."""

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
"""How many statements of each kind an event of sysbench's workloads has by default."""
TRANSACTIONS: Final = ("oltp_read_write", "oltp_read_only", "oltp_write_only")
"""Workloads whose events are transactions, unless `skip_trx` is on."""


RESTS: Final = "\nlocal RESTS = true\n"


class WorkloadPlan(FiniteNoun):
    """A workload and its options, under a label.

    Attributes:
        name: as sysbench calls it, such as ``oltp_read_write``; of a script or template its file's.
        label: how it is called in reports; its name unless given, without a file's suffix.
        options: sysbench's, with underscores and without leading dashes; or the script's own.
        script: the text of a Lua script, or of what a template became; plan files name its path.
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
        """The script of a template whose events follow each other at once."""
        return (self.script or "").replace(RESTS, RESTS.replace("true", "false"))

    @property
    def may_rest(self) -> bool:
        """Whether connections may rest between events, which no latency has: a loop of its own."""
        script = self.script or ""
        return RESTS in script or ("thread_run" in script and "\nlocal RESTS = " not in script)


def has_own_tables(workloads: Iterable[WorkloadPlan]) -> bool:
    """Whether some workload is the engine's, whose tables are the plan's dataset."""
    return any(workload.script is None for workload in workloads)


def default_label(name: str) -> str:
    """How a workload is called that was given no label: its name, without a file's suffix."""
    return PurePath(name).stem if is_script(name) else name


def known_workloads() -> list[str]:
    """The engine's workloads: today's, then those of before sysbench 1.0."""
    return [*_engine.workloads(), *_engine.legacy_workloads()]


def is_script(name: object) -> bool:
    """Whether a workload's name is that of a script's or a template's file."""
    return isinstance(name, str) and name.endswith((SCRIPT_SUFFIX, *TEMPLATE_SUFFIXES))
