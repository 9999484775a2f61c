"""What a system is asked to do: one of the engine's workloads, or a Lua script."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from dbdyno import _engine
from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.settings import OptionValue

SCRIPT_SUFFIX: Final = ".lua"
SCRIPT_LENGTH_MAX: Final = 1_000_000


class WorkloadPlan(FiniteNoun):
    """A workload and its options, under a label.

    Attributes:
        name: as sysbench calls it, such as ``oltp_read_write``; of a script its file's name.
        label: how it is called in reports; its name unless given, without a script's suffix.
        options: sysbench's, with underscores and without leading dashes; or the script's own.
        script: the text of a Lua script, which a plan file names by its path.
    """

    name: str
    label: str = ""
    options: dict[str, OptionValue] = {}
    script: Annotated[
        Annotated[str, Field(max_length=SCRIPT_LENGTH_MAX)] | None,
        Field(exclude_if=lambda value: value is None),  # stored plans keep their text
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _label_is_the_name(cls, value: object) -> object:
        if isinstance(value, dict) and not value.get("label"):
            name = str(value.get("name", ""))
            label = PurePath(name).stem if name.endswith(SCRIPT_SUFFIX) else name
            return {**value, "label": label}
        return value


def known_workloads() -> list[str]:
    """The engine's workloads: today's, then those of before sysbench 1.0."""
    return [*_engine.workloads(), *_engine.legacy_workloads()]


def is_script(name: object) -> bool:
    """Whether a workload's name is that of a script's file."""
    return isinstance(name, str) and name.endswith(SCRIPT_SUFFIX)


def take_script(workload: dict[str, Any], folder: Path) -> str | None:
    """Puts the text of a script into a workload that names its file; what is wrong, if anything.

    Args:
        workload: as typed; its name becomes the file's. One that has a text is left alone.
        folder: where a relative path begins.
    """
    name = workload.get("name")
    if not isinstance(name, str) or not name.endswith(SCRIPT_SUFFIX) or "script" in workload:
        return None
    path = folder / name
    try:
        if path.stat().st_size > SCRIPT_LENGTH_MAX:
            return f"{name} is longer than {SCRIPT_LENGTH_MAX:,} bytes"
        workload["script"] = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        return f"the script {name} cannot be read from {folder}: {reason}"
    workload["name"] = path.name
    return None
