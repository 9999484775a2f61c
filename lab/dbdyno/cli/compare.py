"""A plan from the options of `dbdyno compare`; all mistakes are reported before any download.

Options arrive as text, numbers too, so three mistakes in a command line are three lines of a
message. The plan checks its own rules; here its messages get the names of the options.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dbdyno.errors import PlanError, PlanMistake, UnknownSystemError
from dbdyno.plan.mistakes import option_message, shape_message, value_meant, workload_message
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan, label_of
from dbdyno.plan.template import take_script
from dbdyno.plan.workload import is_script

SOURCE: Final = "the command line"
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "tables": ("dataset", "tables"),
    "table_size": ("dataset", "rows"),
    "table_options": ("dataset", "table_options"),
    "threads": ("load", "threads"),
    "rates": ("load", "rates"),
    "connections": ("load", "connections"),
    "slo": ("load", "slo"),
    "warmup": ("trial", "warmup_s"),
    "window": ("trial", "window_s"),
    "time": ("design", "time_s"),
    "blocks": ("design", "blocks"),
    "margin": ("design", "margin"),
    "disturbance_max": ("design", "disturbance_max"),
    "distribution": ("distribution", "name"),
    "prepared": ("procedure", "prepared_statements"),
    "seed": ("seed",),
}
"""Key of the plan for each option."""
LISTS: Final = ("threads", "rates")
MAY_BE_EMPTY: Final = (*LISTS, "slo")
"""Options with the plan's default for an empty text."""
TIME: Final = "10m"
"""Measuring time of a comparison by default."""
INSTEAD_OF_TIME: Final = ("blocks", "warmup", "window", "rates", "slo")
"""Options for the length of the measurement, in place of a time."""
RIVALS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("time",), INSTEAD_OF_TIME),
    (("threads",), ("rates", "slo")),
)
"""Pairs of choices. An option that is typed displaces the defaults of the other side."""
PLACES: Final[Mapping[tuple[str, ...], str]] = {
    **{key: f"--{option.replace('_', '-')}" for option, key in KEYS.items()},
    ("systems",): "SYSTEM",
    ("workloads",): "--workload",
}
"""Option for each key of the plan, for messages."""


def read(options: Mapping[str, Any], check_reference: Callable[[str], None]) -> Plan:
    """Make the plan of the options.

    Args:
        options: value or default of each parameter of the command `compare`, and the systems of
            --server as `kept`.

    Raises:
        PlanError: all mistakes at once, each under the option it belongs to.
    """
    mistakes: list[PlanMistake] = []
    systems = _systems(options, check_reference, mistakes)
    document: dict[str, Any] = {
        "title": " and ".join(system["label"] for system in systems),
        "systems": systems,
        "workloads": _workloads(options["workload"] or ("oltp_read_write",), mistakes),
    }
    for option, (*part, key) in KEYS.items():
        value = options[option]
        if option == "time" and not any(options[one] for one in INSTEAD_OF_TIME):
            value = value or TIME
        if value is None or (value == "" and option in MAY_BE_EMPTY):
            continue  # the plan has a default, which may depend on other keys
        keys = document.setdefault(part[0], {}) if part else document
        keys[key] = [one.strip() for one in value.split(",")] if option in LISTS else value
    try:
        plan = Plan.model_validate(document)
    except ValidationError as error:
        # `_systems` has reported already that there is none.
        errors = [one for one in error.errors() if systems or one["loc"] != ("systems",)]
        raise PlanError(SOURCE, [*mistakes, *map(_mistake, errors)]) from None
    mistakes += _without_effect(options, plan)
    if mistakes:
        raise PlanError(SOURCE, mistakes)
    return plan


def displaced(typed: Collection[str]) -> dict[str, None]:
    """Options whose defaults give way to a rival on the command line, without their values.

    Args:
        typed: names of the options on the command line.
    """
    return {
        option: None
        for sides in RIVALS
        for side, other in (sides, sides[::-1])
        if set(other) & set(typed) and not set(side) & set(typed)
        for option in side
    }


def _without_effect(options: Mapping[str, Any], plan: Plan) -> Iterator[PlanMistake]:
    """Given options without an effect."""
    if options["time"] and any(options[one] for one in ("warmup", "window", "blocks")):
        yield PlanMistake(
            "--time", "chooses warm-up, window and blocks by itself; give it, or them"
        )
    if options["connections"] and not plan.load.is_open:
        message = "are those of an open loop (--rates, --slo); --threads has those of a closed one"
        yield PlanMistake("--connections", message)


def _systems(
    options: Mapping[str, Any], check: Callable[[str], None], mistakes: list[PlanMistake]
) -> list[dict[str, Any]]:
    """Each system's label, reference and settings; `NAME=REFERENCE` gives it a label of its own.

    The systems of --server follow those of SYSTEM.
    """
    typed = options["systems"] or ()
    kept: Sequence[SystemPlan] = options.get("kept", ())
    if (count := len(typed) + len(kept)) < 2:
        message = f"two or more are compared, such as mysql:5.7.22 mysql:8.0.15; found {count}"
        mistakes.append(PlanMistake("SYSTEM", message))
    systems: list[dict[str, Any]] = []
    for text in typed:
        label, equals, reference = text.partition("=")
        if not equals or "/" in label:  # the sign belongs to an address or a folder
            label, reference = "", text
        systems.append(
            {"label": label or label_of(reference), "reference": reference, "settings": {}}
        )
        try:
            check(reference)
        except UnknownSystemError as error:
            mistakes.append(PlanMistake(f"SYSTEM {systems[-1]['label']}", error.one_line))
    systems += [
        {
            "label": system.label,
            "reference": system.reference,
            "settings": {},
            "password_env": system.password_env,
        }
        for system in kept
    ]
    typed_settings = options["settings"] or ()
    seen: set[str] = set()
    for text in sorted(typed_settings, key=_is_for_one):  # which win, wherever they stand
        setting = text.partition("=")[0]
        if setting in seen:
            mistakes.append(PlanMistake(f"--set {text}", f"{setting} stands twice; keep one"))
        seen.add(setting)
        _apply_setting(text, systems, mistakes)
    return systems


def _is_for_one(setting: str) -> bool:
    """Test for a label of a system at the begin of a --set."""
    return ":" in setting.partition("=")[0]


def _apply_setting(text: str, systems: list[dict[str, Any]], mistakes: list[PlanMistake]) -> None:
    """Add `key=value` to the settings of all systems, or `LABEL:key=value` to a system's."""
    setting, equals, value = text.partition("=")
    label, _, key = setting.rpartition(":")
    chosen = [system for system in systems if label in ("", system["label"])]
    place = f"--set {text}"
    if not equals or not key:
        mistakes.append(PlanMistake(place, "is not key=value or LABEL:key=value"))
    elif not chosen:
        labels = ", ".join(system["label"] for system in systems)
        mistakes.append(PlanMistake(place, f"no system is labelled {label}; there are {labels}"))
    for system in chosen:
        system["settings"][key] = value


def _workloads(typed: Sequence[str], mistakes: list[PlanMistake]) -> list[dict[str, Any]]:
    """Each workload as a plan has it. Its options stand behind its name, as for sysbench."""
    workloads: list[dict[str, Any]] = []
    for text in typed:
        try:
            name, *words = shlex.split(text) or [text]
        except ValueError as error:
            mistakes.append(PlanMistake("--workload", f"{text} cannot be read: {error}"))
            continue
        workload: dict[str, Any] = {"name": name}
        if words:
            workload["options"] = dict(_option(word, mistakes) for word in words)
        if is_script(name):
            if mistake := take_script(workload, Path()):
                mistakes.append(PlanMistake("--workload", mistake))
        elif message := workload_message(name):
            mistakes.append(PlanMistake("--workload", message))
        else:
            for option in workload.get("options", ()):
                if message := option_message(option):
                    mistakes.append(PlanMistake(f"--workload {name} … {option}", message))
        workloads.append(workload)
    return workloads


def _option(word: str, mistakes: list[PlanMistake]) -> tuple[str, object]:
    """Name and value of ``--warehouses=10``; numbers are parsed, a bare option is true."""
    name, equals, text = word.removeprefix("--").partition("=")
    if not word.startswith("--") or not name:
        mistakes.append(PlanMistake(f"--workload … {word}", "is not --option=value"))
    name = name.replace("-", "_")
    if not equals:
        return name, True
    try:
        return name, float(text) if "." in text else int(text)
    except ValueError:
        return name, {"on": True, "off": False}.get(text, text)


def _mistake(error: ErrorDetails) -> PlanMistake:
    """A validation error of pydantic as a mistake of the command line."""
    message = shape_message(error)
    where = tuple(str(part) for part in error["loc"])
    if not where:  # a rule on several parts: its message begins with the place
        where = (message.partition(":")[0],)
        message = message.removeprefix(f"{where[0]}: ")
    place = PLACES.get(where[:2]) or PLACES.get(where[:1]) or where[0]
    if place.endswith("].settings"):
        return PlanMistake("--set", message)
    if place == "SYSTEM" and message.startswith("label used twice"):
        message += "; NAME=REFERENCE gives a system another"
    if isinstance(error["input"], str):
        message = f"{message}, found {error['input']!r}{value_meant(error)}"
    return PlanMistake(place, message)
