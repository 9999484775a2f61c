"""Mistakes of a plan: pydantic checks its shape, lookups check its names.

Both are done whatever the other found, because a user wants all mistakes at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dbdyno import shipped
from dbdyno.errors import PlanMistake, UsageError, did_you_mean, most_alike
from dbdyno.plan.document import SCALES, Document, Path, place
from dbdyno.plan.fleet import ROLE_PATTERN
from dbdyno.plan.plan import CODE_PATTERN, NOT_COMPARED, Plan
from dbdyno.plan.settings import AXIS_PATTERN, VALUE_PATTERN
from dbdyno.plan.spelling import (
    COLUMN_PATTERN,
    DATE_PATTERN,
    DATETIME_PATTERN,
    DECIMAL_PATTERN,
    NAME_PATTERN,
    model_in,
    named,
    short_keys,
)
from dbdyno.plan.systems import LABEL_PATTERN, labelled
from dbdyno.plan.workload import default_label, is_script, known_workloads

WORKLOAD_OPTIONS = frozenset(
    {
        *("auto_inc", "create_secondary", "delete_inserts", "distinct_ranges", "index_updates"),
        *("mysql_storage_engine", "non_index_updates", "order_ranges", "point_selects"),
        *("range_selects", "range_size", "secondary", "simple_ranges", "skip_trx", "sum_ranges"),
        *("random_points", "number_of_ranges", "delta"),
    }
)
"""sysbench's options of a workload, except options set by a plan's dataset."""

TABLE_OPTIONS = {
    "tables": "dataset.tables",
    "table_size": "dataset.rows",
    "create_table_options": "dataset.table_options",
}

_MESSAGES = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "dict_type": "must be keys with values",
    "model_type": "must be keys with values",
    "too_short": "needs at least one entry",
    "too_long": "has more than {max_length} entries",
    "string_too_short": "must not be empty",
    "literal_error": "must be one of {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "value_error": "{error}",
}
_PATTERNS = {
    LABEL_PATTERN: (
        "must be up to 64 letters, digits and . _ : + -, beginning with a letter or digit"
    ),
    ROLE_PATTERN: "must be up to 63 letters, digits and . _ -",
    AXIS_PATTERN: "must be up to 32 lowercase letters, digits and _, beginning with a letter",
    COLUMN_PATTERN: "must be the name of a table and of its column, such as jobs.id",
    DATE_PATTERN: "must be a date such as 2026-01-31",
    DATETIME_PATTERN: "must be a date, or a date and time such as 2026-01-31 23:59:59",
    DECIMAL_PATTERN: "must be a number such as 0.00 or 999.99",
    CODE_PATTERN: "must be an error number of MySQL or an SQLSTATE, such as 9007 or 40001",
    NAME_PATTERN: "must be up to 63 letters, digits and _, beginning with a letter or _",
    VALUE_PATTERN: (
        "must be up to 32 letters, digits and . _ : + % / -, beginning with a letter or digit"
    ),
}
_OPTION_VALUE = "must be a number, a text, true or false"


def shape_mistakes(
    document: Document,
    error: ValidationError,
    whole: type[BaseModel] = Plan,
    title: str = "a plan",
) -> Iterator[PlanMistake]:
    """Convert pydantic's errors to mistakes, each once, with our message and its line.

    Args:
        whole, title: the model of the document, and its name in messages.
    """
    places = set()
    for details in error.errors(include_url=False):
        path = _path_in(document, details, whole)
        if "label used twice" in details["msg"]:
            continue  # `name_mistakes` says it with a line
        if details["type"] == "too_short" and details["input"]:
            continue  # its entries have mistakes of their own
        mistake = document.mistake(path, _message(details, path, whole, title))
        if mistake.place not in places:
            places.add(mistake.place)
            yield mistake


def name_mistakes(
    document: Document, check_reference: Callable[[str], None]
) -> Iterator[PlanMistake]:
    """Unknown systems, workloads and options, and labels used twice."""
    plan = document.value
    if not isinstance(plan, dict):
        return
    systems, workloads = _entries(plan, "systems"), _entries(plan, "workloads")
    for path, system in systems:
        reference = system.get("reference")
        try:
            if isinstance(reference, str) and reference:
                check_reference(reference)
        except UsageError as error:
            yield document.mistake((*path, "reference"), error.one_line)
    for path, workload in workloads:
        yield from _workload_mistakes(document, path, workload)
    yield from _labels_twice(document, systems)
    yield from _labels_twice(document, workloads)


def shape_message(details: ErrorDetails) -> str:
    """Message for a value of the wrong shape, in the words of plans and command lines."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return _PATTERNS[context["pattern"]]
    template = _MESSAGES.get(kind)
    if template is None:
        return details["msg"][:1].lower() + details["msg"][1:]
    return template.format(**context)


def workload_message(name: str) -> str | None:
    """Message for a workload that is not built in or not compared; else None."""
    if name in NOT_COMPARED:
        return NOT_COMPARED[name]
    built_in = known_workloads()
    if name in built_in:
        return None
    known = [*built_in, *shipped.names(shipped.WORKLOADS)]
    return f"there is no workload {name!r}{nearest(name, known)}"


def nearest(name: str, names: Collection[str]) -> str:
    """``; did you mean …?`` with the nearest name, or a list of all names if no name is near."""
    listed = f"; there are {', '.join(sorted(names))}" if names else "; there are none"
    return did_you_mean(name, names) or listed


def file_meant(path: FilePath, pattern: str, otherwise: str, kind: str) -> str:
    """Hint for a missing file: the file with the most similar name, beside it or dbdyno's own.

    Args:
        pattern: glob of the files to choose from.
        otherwise: the hint if no name is similar, followed by the names of dbdyno's files.
        kind: of dbdyno's files: `shipped.PLANS` or `shipped.WORKLOADS`.
    """
    ours = shipped.names(kind)
    files = [name for name in map(FilePath, ours) if name.match(pattern)]
    there = {file.stem: file for file in (*files, *path.parent.glob(pattern))}
    near = most_alike(path.stem, there)
    return f"did you mean {there[near]}?" if near else f"{otherwise}; dbdyno has {', '.join(ours)}"


def _path_in(document: Document, details: ErrorDetails, whole: type[BaseModel]) -> Path:
    """Location of an error in the file as typed, without pydantic's names for union branches.

    A rule on several parts of a plan begins its message with the location.
    """
    path = details["loc"]
    if not path and details["type"] == "value_error":
        said = [path for path in document.lines if _error(details).startswith(f"{place(path)}: ")]
        return max(said, key=len, default=path)
    if details["type"] in ("missing", "extra_forbidden"):
        return path
    typed = {long: short for short, long in short_keys(_model_at(path[:-1], whole)).items()}
    if path and (short := (*path[:-1], typed.get(str(path[-1]), ""))) in document.lines:
        return short
    while path and path not in document.lines:
        path = path[:-1]
    return path


def _error(details: ErrorDetails) -> str:
    return str(details.get("ctx", {}).get("error", ""))


def _message(details: ErrorDetails, path: Path, whole: type[BaseModel], title: str) -> str:
    kind, value = details["type"], details["input"]
    if kind == "extra_forbidden" and ")" in str(path[-1]).partition("(")[0]:
        return "follows a comma within braces; write the whole text in quotes"
    if kind == "extra_forbidden":
        return f"is no key of {title}" + nearest(str(path[-1]), _keys_beside(path, whole))
    if details["loc"] and details["loc"][-1] in ("bool", "int", "float", "str"):
        return f"{_OPTION_VALUE}, found {_shown(value)}"
    message = shape_message(details)
    if kind in ("missing", "value_error"):
        return message.removeprefix(f"{place(path)}: ")
    return f"{message}, found {_shown(value)}{value_meant(details)}"


def value_meant(details: ErrorDetails) -> str:
    """Hint with the nearest of the allowed values; empty if no value is near."""
    if details["type"] != "literal_error":
        return ""
    values = re.findall(r"'([^']*)'", str(details["ctx"]["expected"]))
    return did_you_mean(str(details["input"]), values)


def _keys_beside(path: Path, whole: type[BaseModel]) -> Collection[str]:
    """Keys allowed beside the unknown key, short forms included."""
    model = _model_at(path[:-1], whole)
    fields = {field.alias or name for name, field in model.model_fields.items()}
    names = {*fields, *short_keys(model)}
    return names if model is not Plan else names - {"scale"} | {SCALES}


def _model_at(path: Path, whole: type[BaseModel]) -> type[BaseModel]:
    """Model of the part at the path, or of the nearest part around it; names chosen by the user are
    skipped."""
    model = whole
    for name in (name for name in path if isinstance(name, str)):
        field = model.model_fields.get(name)
        if field is None:
            continue
        inner = model_in(field.annotation)
        if inner is None:
            break
        model = inner
    return model


def _shown(value: object) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _entries(plan: dict[str, Any], key: str) -> list[tuple[Path, dict[str, Any]]]:
    """Entries of a list with keys to check; a text is spelled out first."""
    values = plan.get(key)
    if isinstance(values, str) and key == "workloads":
        values = [values]
    written = labelled if key == "systems" else named
    entries = [written(value) for value in values] if isinstance(values, list) else []
    return [((key, at), entry) for at, entry in enumerate(entries) if isinstance(entry, dict)]


def _workload_mistakes(
    document: Document, path: Path, workload: dict[str, Any]
) -> Iterator[PlanMistake]:
    name, options = workload.get("name"), workload.get("options")
    if is_script(name):
        is_reported = any(one.place == place(path) for one in document.mistakes)
        if "script" not in workload and not is_reported:
            yield document.mistake((*path, "name"), f"the text of the script {name} is missing")
        return
    if isinstance(name, str) and (message := workload_message(name)):
        yield document.mistake((*path, "name"), message)
    for option in options if isinstance(options, dict) else ():
        if message := option_message(option):
            yield document.mistake((*path, "options", option), message)


def option_message(option: str) -> str:
    """Message for an option that no built-in workload has; empty for a known option."""
    if option in TABLE_OPTIONS:
        return f"the tables are the same for all workloads: say {TABLE_OPTIONS[option]}"
    if option not in WORKLOAD_OPTIONS:
        return f"is no option of a workload{nearest(option, WORKLOAD_OPTIONS)}"
    return ""


def _labels_twice(
    document: Document, entries: list[tuple[Path, dict[str, Any]]]
) -> Iterator[PlanMistake]:
    first: dict[str, Path] = {}
    for path, entry in entries:
        label, name = entry.get("label"), entry.get("name")
        if not label and isinstance(name, str):
            label = default_label(name)
        if not isinstance(label, str):
            continue
        if label in first:
            message = f"the label {label!r} is that of {place(first[label])} too; give one another"
            yield document.mistake((*path, "label"), message)
        first.setdefault(label, path)
