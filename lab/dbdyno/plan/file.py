"""Plan files: YAML in, a checked `Plan` out, or every mistake at once with its line.

A plan needs `systems` and `workloads`; all other keys have defaults::

    title: MySQL 5.7 against 8.0
    systems:                      # the first is the baseline of the others
      - mysql:5.7.22              # short for {label: mysql:5.7.22, reference: mysql:5.7.22}
      - label: tuned
        reference: mysql:8.0.15
        settings: {innodb_flush_log_at_trx_commit: 2}      # keys as in my.cnf
    workloads:
      - oltp_read_write           # short for {name: oltp_read_write}
      - {name: oltp_read_only, label: no-ranges, options: {range_selects: false}}
    dataset: {tables: 4, rows: 100000}      # rows of each table
    load: {threads: [1, 8, 32]}   # connections; a single number works too
    settings: {buffer_pool: [25%, 1G], binlog: on}         # varied on every system
    trial: {warmup: 15s, window: 2m}        # or warmup_s and window_s, in seconds; ms, s, m, h
    design: {blocks: 5, margin: 2%}         # or 0.02
    distribution: uniform         # gaussian, special, pareto, zipfian
    procedure: {restart: block, prepared_statements: true}
    network: {client: 0.8ms}      # or client_ms, in milliseconds
    seed: 1
    scales:                       # other sizes, laid over the plan with --scale
      small: {dataset: {rows: 1000}, load: {threads: 1}}

YAML is 1.2: ``on`` and ``off`` are words, ``true`` and ``false`` are not. A key that stands twice
is a mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from dbdyno import shipped
from dbdyno.budget import content, within
from dbdyno.errors import PlanError, PlanMistake
from dbdyno.plan.document import SCALES, Document, parse, scaled, take_scales
from dbdyno.plan.document import Path as KeyPath
from dbdyno.plan.mistakes import file_meant, name_mistakes, nearest, shape_mistakes
from dbdyno.plan.plan import Plan, comparisons
from dbdyno.plan.spelling import Schema, model_in, named, share_of, short_keys
from dbdyno.plan.template import take_script
from dbdyno.plan.workload import is_script

BYTES_MAX = 1_000_000
BOTH: Final = "stands beside {other}; keep one of the two"
"""Message for a key beside its short form."""


def read(path: Path, check_reference: Callable[[str], None], scale: str = "") -> Plan:
    """Read and check the plan of a file.

    Args:
        path: a YAML file of at most 1 MB.
        check_reference: raises UsageError for a system that cannot be provided.
        scale: name of the file's scale to lay over the plan; empty for the plan as it stands.

    Raises:
        PlanError: the file cannot be read, or the plan or any of its scales has mistakes. It
            carries all of them.
    """
    text = _text(path)
    return within(
        f"the plan {path}",
        lambda: read_text(text, str(path), check_reference, scale, path.parent),
    )


def read_text(
    text: str,
    source: str,
    check_reference: Callable[[str], None],
    scale: str = "",
    folder: Path | None = None,
) -> Plan:
    """The plan of a YAML text that came from `source`; further arguments and errors as in `read`.

    Args:
        folder: where paths of scripts begin; without a folder the plan must contain their texts.
    """
    document = parse(text)
    if document.value is None:
        raise PlanError(source, document.mistakes or [PlanMistake("plan", "is empty")])
    scales = take_scales(document)
    sizes = {"": document, **{name: scaled(document, scales, name) for name in scales}}
    plans: dict[str, Plan | None] = {}
    mistakes: list[PlanMistake] = []
    for name, sized in sizes.items():
        if folder is not None:
            _take_scripts(sized, folder)
        plans[name] = _checked(sized, check_reference if name == scale else _unchecked)
        seen = {(mistake.line, mistake.message) for mistake in mistakes}
        for mistake in sized.mistakes:
            if (mistake.line, mistake.message) not in seen:
                where = f"{mistake.place} (scale {name})" if name else mistake.place
                mistakes.append(mistake._replace(place=where))
    if scale not in plans:
        message = f"there is no scale {scale!r} in this plan{nearest(scale, scales)}"
        mistakes.append(PlanMistake("--scale", message))
    plan = plans.get(scale)
    if mistakes or plan is None:
        raise PlanError(source, mistakes)
    return plan


def _take_scripts(document: Document, folder: Path) -> None:
    """Load scripts named by their files into the workloads."""
    workloads = document.value.get("workloads") if isinstance(document.value, dict) else None
    if is_script(workloads):
        workloads = document.value["workloads"] = [workloads]
    if not isinstance(workloads, list):
        return
    for at, workload in enumerate(workloads):
        entry = named(workload)
        if isinstance(entry, dict) and is_script(entry.get("name")):
            workloads[at] = entry
            if mistake := take_script(entry, folder):
                document.add_mistake(("workloads", at), mistake)


def _unchecked(reference: str) -> None:
    """Accept any system: systems of other scales may exist on another machine only."""


def _checked(document: Document, check_reference: Callable[[str], None]) -> Plan | None:
    """The document's plan, None if it has mistakes; they are added to the document."""
    _write_keys_in_full(document, (), document.value, Plan)
    plan = None
    try:
        plan = Plan.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        document.mistakes.extend(shape_mistakes(document, error))
    document.mistakes.extend(name_mistakes(document, check_reference))
    if plan is not None:
        _refuse_rates_without_verdict(document, plan)
    return plan


def _refuse_rates_without_verdict(document: Document, plan: Plan) -> None:
    """Stored plans may have them, so it is no rule of `Plan`."""
    if all(one.settings is None for one in comparisons(plan)):
        return
    for at, rate in enumerate(plan.load.rates):
        if share_of(rate) is not None:
            message = (
                f"{rate} is another rate under each setting, and settings are compared here, which"
                " takes equal rates; give events a second"
            )
            document.add_mistake(("load", "rates", at), message)


def _write_keys_in_full(
    document: Document, path: KeyPath, value: object, model: type[BaseModel]
) -> None:
    """The keys of times, which may be written without their unit, get their names in the plan."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            _write_keys_in_full(document, (*path, index), entry, model)
    if not isinstance(value, dict):
        return
    for short, long in short_keys(model).items():
        if short in value and long in value:
            document.add_mistake((*path, short), BOTH.format(other=long))
            del value[short]
        elif short in value:
            value[long] = value.pop(short)
    for key, field in model.model_fields.items():
        if key in value and (inner := model_in(field.annotation)):
            _write_keys_in_full(document, (*path, key), value[key], inner)


def _text(path: Path) -> str:
    try:
        whole = content(path, BYTES_MAX)
        if len(whole) > BYTES_MAX:
            raise PlanError(str(path), [PlanMistake("file", f"is larger than {BYTES_MAX} bytes")])
        return whole.decode()
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: byte {error.start} cannot be read"
        raise PlanError(str(path), [PlanMistake("file", message)]) from error
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        if isinstance(error, FileNotFoundError):
            otherwise = "`dbdyno compare` needs no plan file"
            tip = file_meant(path, "*.y*ml", otherwise, shipped.PLANS)
            message = f"{message}; {tip}"
        raise PlanError(str(path), [PlanMistake("file", message)]) from error


# The JSON schema of plan files, for editors: completion, help, and marked mistakes. It is made from
# the plan itself, whose types know the short ways of writing, and shipped as ``plan.schema.json``.
# `read` checks the rest, such as the existence of a workload or a system.


def schema() -> Schema:
    """JSON schema (draft 2020-12) of plan files, short ways of writing and scales included."""
    whole, models = Plan.model_json_schema(), _models_in(Plan)
    parts = whole["$defs"]
    for part in (whole, *parts.values()):
        _describe_keys(part)
    for name, part in parts.items():
        keys = part["properties"]
        for short, long in short_keys(models.get(name, BaseModel)).items():
            keys[short] = {**deepcopy(keys[long]), "title": short.capitalize()}
    parts["LoadPlan"]["properties"]["threads"]["anyOf"][0]["minItems"] = 1
    parts["SystemPlan"]["required"] = ["reference"]
    _add_scales(whole)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "dbdyno plan",
    }


def _describe_keys(part: Schema) -> None:
    """Move the help of attributes from a class's docstring to the keys of its schema."""
    purpose, _, attributes = str(part.get("description", "")).partition("\n\nAttributes:\n")
    part["description"] = purpose
    for names, text in re.findall(
        r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", attributes, re.MULTILINE
    ):
        for name in names.split(", "):
            if name in part["properties"]:
                part["properties"][name]["description"] = " ".join(text.split())


def _models_in(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models of all its parts, by name."""
    inner = (model_in(field.annotation) for field in model.model_fields.values())
    return {
        name: part
        for one in inner
        if one is not None
        for name, part in {one.__name__: one, **_models_in(one)}.items()
    }


def _add_scales(whole: Schema) -> None:
    """Add the schema of a scale: a part of a plan, with every key optional; null removes a key."""
    parts = whole["$defs"]
    partial = _optional(whole["properties"], "#/properties")
    del partial["scale"]
    for key in partial:
        kinds = whole["properties"][key]
        name = kinds.get("anyOf", [kinds])[0].get("$ref", "").removeprefix("#/$defs/")
        if name:
            inner = _optional(parts[name]["properties"], f"#/$defs/{name}/properties")
            parts[f"{name}Scaled"] = {
                "type": "object",
                "additionalProperties": False,
                "properties": inner,
            }
            partial[key] = {
                "anyOf": [{"$ref": f"#/$defs/{name}Scaled"}, {"type": "null"}],
                "description": kinds["description"],
            }
    parts["Scale"] = {"type": "object", "additionalProperties": False, "properties": partial}
    whole["properties"][SCALES] = {
        "type": "object",
        "description": "Variants of the plan, by name; each overrides parts of it.",
        "additionalProperties": {"$ref": "#/$defs/Scale"},
    }


def _optional(properties: Schema, pointer: str) -> Schema:
    """References to the properties at a JSON pointer, each of which may be null too."""
    return {key: {"anyOf": [{"$ref": f"{pointer}/{key}"}, {"type": "null"}]} for key in properties}
