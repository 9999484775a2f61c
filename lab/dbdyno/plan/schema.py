"""The JSON schema of plan files, for editors: completion, help, and marked mistakes.

It is made from the plan itself, whose types know the short ways of writing, and is shipped as
``plan.schema.json``; a test holds that the two agree. What a schema cannot say (is there such a
workload, such a system?) is left to `plan.file.read`.
"""

from __future__ import annotations

import re
from copy import deepcopy

from pydantic import BaseModel

from dbdyno.plan import plan
from dbdyno.plan.document import SCALES
from dbdyno.plan.file import AUTO
from dbdyno.plan.plan import Plan
from dbdyno.plan.spelling import Schema, short_keys


def schema() -> Schema:
    """JSON schema (draft 2020-12) of plan files, short ways of writing and scales included."""
    whole = Plan.model_json_schema()
    parts = whole["$defs"]
    for part in (whole, *parts.values()):
        _describe_keys(part)
    for name, part in parts.items():
        _add_short_keys(name, part["properties"])
    warmup = parts["TrialPlan"]["properties"]["warmup"]
    warmup["anyOf"] = [{"anyOf": warmup["anyOf"]}, {"const": AUTO}]
    parts["LoadPlan"]["properties"]["threads"]["anyOf"][0]["minItems"] = 1
    parts["SystemPlan"]["required"] = ["reference"]
    _add_scales(whole)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "dbdyno plan",
    }


def _describe_keys(part: Schema) -> None:
    """What a class's docstring says of its attributes becomes the help of each key."""
    purpose, _, attributes = str(part.get("description", "")).partition("\n\nAttributes:\n")
    part["description"] = purpose
    for names, text in re.findall(
        r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", attributes, re.MULTILINE
    ):
        for name in names.split(", "):
            if name in part["properties"]:
                part["properties"][name]["description"] = " ".join(text.split())


def _add_short_keys(name: str, properties: Schema) -> None:
    """Keys of times may be written without their unit."""
    for short, long in short_keys(getattr(plan, name, BaseModel)).items():
        properties[short] = {**deepcopy(properties[long]), "title": short.capitalize()}


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
        help_text = {"description": kind.pop("description")} if "description" in kind else {}
        kinds = [one for one in kind.get("anyOf", [kind]) if one != nothing]
        partial[key] = {"anyOf": [*kinds, nothing], **help_text}
    return partial
