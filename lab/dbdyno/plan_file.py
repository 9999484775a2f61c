"""Plan files: YAML in, a checked `Plan` out, or every mistake at once with its line.

A plan says what is compared and how; all but `systems` and `workloads` has a default::

    title: MySQL 5.7 against 8.0
    systems:                      # the first one is what the others are compared with
      - mysql:5.7.22              # short for {label: mysql:5.7.22, reference: mysql:5.7.22}
      - label: tuned
        reference: mysql:8.0.15
        settings: {innodb_flush_log_at_trx_commit: 2}      # keys as in my.cnf
    workloads:
      - oltp_read_write           # short for {name: oltp_read_write}
      - {name: oltp_read_only, label: no-ranges, options: {range_selects: false}}
    dataset: {tables: 4, rows: 100000}      # rows of each table
    load: {threads: [1, 8, 32]}   # connections; one number is a list of one
    trial: {warmup: 15s, window: 2m}        # or warmup_s and window_s, in seconds; ms, s, m, h
    design: {blocks: 5, margin: 2%}         # or 0.02
    distribution: uniform         # gaussian, special, pareto, zipfian
    procedure: {restart: block, prepared_statements: true}
    seed: 1

YAML is 1.2: ``on`` and ``off`` are words, ``true`` and ``false`` are not. A key that stands twice
is a mistake, not a riddle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dbdyno.errors import PlanError, PlanMistake
from dbdyno.plan import Plan
from dbdyno.plan_file_mistakes import name_mistakes, shape_mistakes
from dbdyno.plan_file_sugar import spell_out
from dbdyno.plan_file_yaml import parse

BYTES_MAX = 1_000_000


def read(
    path: Path, known_workloads: Collection[str], check_reference: Callable[[str], None]
) -> Plan:
    """The plan of a file.

    Args:
        path: a YAML file of at most 1 MB.
        known_workloads: names of the engine's workloads.
        check_reference: raises UnknownSystemError for a system that cannot be got.

    Raises:
        PlanError: the file cannot be read, or the plan has mistakes: all of them.
    """
    return read_text(_text(path), str(path), known_workloads, check_reference)


def read_text(
    text: str,
    source: str,
    known_workloads: Collection[str],
    check_reference: Callable[[str], None],
) -> Plan:
    """The plan of a YAML text that came from `source`; arguments and errors are those of `read`."""
    document = parse(text)
    mistakes = document.mistakes
    if document.value is None:
        raise PlanError(source, mistakes or [PlanMistake("plan", "is empty")])
    spell_out(document)
    plan = None
    try:
        plan = Plan.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        mistakes.extend(shape_mistakes(document, error))
    mistakes.extend(name_mistakes(document, known_workloads, check_reference))
    if mistakes or plan is None:
        raise PlanError(source, mistakes)
    return plan


def schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of plan files, short ways of writing included, for editors."""
    whole = Plan.model_json_schema()
    parts = whole["$defs"]
    text = {"type": "string"}
    duration = {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|min|h)\s*$"}
    percent = {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$"}

    def widen(owner: dict[str, Any], key: str, *also: dict[str, Any]) -> None:
        owner[key] = {"anyOf": [owner[key], *also]}

    for key in ("systems", "workloads"):
        widen(whole["properties"][key], "items", text)
    widen(whole["properties"], "distribution", {"enum": _distributions(parts)})
    parts["SystemPlan"]["required"] = ["reference"]
    widen(parts["LoadPlan"]["properties"], "threads", {"type": "integer", "minimum": 1})
    widen(parts["DesignPlan"]["properties"], "margin", percent)
    trial = parts["TrialPlan"]["properties"]
    for key in ("warmup", "window"):
        widen(trial, f"{key}_s", duration)
        trial[key] = trial[f"{key}_s"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "dbdyno plan",
    }


def _distributions(parts: dict[str, Any]) -> list[str]:
    return list(parts["DistributionPlan"]["properties"]["name"]["enum"])


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            raise PlanError(str(path), [PlanMistake("file", f"is larger than {BYTES_MAX} bytes")])
        return content.decode()
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: byte {error.start} cannot be read"
        raise PlanError(str(path), [PlanMistake("file", message)]) from error
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise PlanError(str(path), [PlanMistake("file", message)]) from error
