"""The JSON schema of plan files, for editors: completion, help and red lines while one is written.

It is made from the plan itself, widened by the short ways of writing, and shipped beside this file
as ``plan.schema.json``; a test holds that the two agree. What a schema cannot say (is there such a
workload, such a system?) is left to `plan.file.read`.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, Final

from dbdyno.plan.document import SCALES
from dbdyno.plan.plan import Plan
from dbdyno.plan.spelling import AUTO, LISTS, SWITCHES, TIMES

Schema = dict[str, Any]

_TOLD: Final = ("description", "default", "title")
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final = r"^\s*[0-9]{1,9}(\.[0-9]+)?\s*"
_TIME: Final[Schema] = {"type": "string", "pattern": _NUMBER + r"(ms|s|m|min|h)\s*$"}
_PERCENT: Final[Schema] = {"type": "string", "pattern": _NUMBER + r"%\s*$"}
_POSITIVE: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
_SLO: Final[Schema] = {
    "type": "string",
    "pattern": r"^\s*p(50|95|99|999)\s*=\s*[0-9]{1,9}(\.[0-9]+)?\s*(ms|s|m|min|h)\s*$",
}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}


def schema() -> Schema:
    """JSON schema (draft 2020-12) of plan files, short ways of writing and scales included."""
    whole = Plan.model_json_schema()
    parts = whole["$defs"]
    for part in (whole, *parts.values()):
        _tell_keys(part)
    _widen_lists(whole["properties"], parts)
    _widen_times(parts)
    _widen_axes(parts["SettingsPlan"]["properties"])
    _widen(parts["DesignPlan"]["properties"], "margin", _PERCENT)
    parts["SystemPlan"]["required"] = ["reference"]
    _add_scales(whole)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "dbdyno plan",
    }


def _tell_keys(part: Schema) -> None:
    """What a class's docstring says of its attributes becomes the help of each key."""
    told, _, attributes = str(part.get("description", "")).partition("\n\nAttributes:\n")
    part["description"] = told
    for names, text in re.findall(
        r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", attributes, re.MULTILINE
    ):
        for name in names.split(", "):
            if name in part["properties"]:
                part["properties"][name]["description"] = " ".join(text.split())


def _widen(owner: Schema, key: str, *also: Schema) -> None:
    """The value may also be of these kinds; what it is for stays where editors look for it."""
    told = {name: owner[key].pop(name) for name in _TOLD if name in owner[key]}
    owner[key] = {"anyOf": [owner[key], *also], **told}


def _widen_lists(whole: Schema, parts: Schema) -> None:
    for key in ("systems", "workloads"):
        _widen(whole[key], "items", _TEXT)
    _widen(whole, "workloads", _TEXT)
    names = parts["DistributionPlan"]["properties"]["name"]["enum"]
    _widen(whole, "distribution", {"enum": list(names)})
    load = parts["LoadPlan"]["properties"]
    _widen(load, "threads", _WHOLE)
    _widen(load["rates"], "items", _POSITIVE)
    _widen(load, "rates", _TEXT, _POSITIVE)
    load["slo"]["anyOf"].append(_SLO)


def _widen_times(parts: Schema) -> None:
    for part, keys in TIMES.items():
        properties = parts[f"{part.capitalize()}Plan"]["properties"]
        for short, long in keys.items():
            _widen(properties, long, _TIME)
            properties[short] = {**deepcopy(properties[long]), "title": short.capitalize()}
    _widen(parts["TrialPlan"]["properties"], "warmup", {"const": AUTO})


def _widen_axes(axes: Schema) -> None:
    """One value for a list, true and false for on and off, a number of bytes."""
    for axis in LISTS:
        values = next(kind for kind in axes[axis]["anyOf"] if kind.get("type") == "array")
        if axis in SWITCHES:
            _widen(values, "items", {"type": "boolean"})
        elif axis != "durability":
            _widen(values, "items", _WHOLE)
        axes[axis]["anyOf"].append(values["items"])


def _add_scales(whole: Schema) -> None:
    """A scale is a part of a plan: nothing must be given, and null takes a key away."""
    parts = whole["$defs"]
    partial = _partial(whole["properties"])
    del partial["scale"]
    for key, kind in partial.items():
        name = kind["anyOf"][0].get("$ref", "").removeprefix("#/$defs/")
        if name:
            inner = {**parts[name], "properties": _partial(parts[name]["properties"])}
            inner.pop("required", None)
            parts[f"{name}Scaled"] = inner
            partial[key]["anyOf"][0] = {"$ref": f"#/$defs/{name}Scaled"}
    parts["Scale"] = {"type": "object", "additionalProperties": False, "properties": partial}
    whole["properties"][SCALES] = {
        "type": "object",
        "description": "The same plan in other sizes, by name: what is laid over it.",
        "additionalProperties": {"$ref": "#/$defs/Scale"},
    }


def _partial(properties: Schema) -> Schema:
    nothing = {"type": "null"}
    partial: Schema = {}
    for key, kind in deepcopy(properties).items():
        told = {"description": kind.pop("description")} if "description" in kind else {}
        kinds = [one for one in kind.get("anyOf", [kind]) if one != nothing]
        partial[key] = {"anyOf": [*kinds, nothing], **told}
    return partial
