"""YAML text to plain values, each with its line; tags, dates and aliases hold no surprises.

Nodes are converted here and no YAML object is ever constructed: tags cannot run code, a date stays
the text as typed, and the values that aliases multiply are counted while they are copied.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dbdyno.errors import PlanMistake

Path = tuple[str | int, ...]

DEPTH_MAX = 12
VALUES_MAX = 20_000
_BITS_MAX = 1024

_TAG = "tag:yaml.org,2002:"
_BASES = {"0o": 8, "0x": 16, "0b": 2}


@dataclass
class Document:
    """A YAML text as plain values.

    Attributes:
        value: plain dicts, lists and scalars; None when the text cannot be read.
        lines: the line, counted from 1, of every key and entry.
        mistakes: parts that could not be taken, such as duplicate keys.
        printed: the text of each number, with all digits as they were written.
    """

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    mistakes: list[PlanMistake] = field(default_factory=list)
    printed: dict[Path, str] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of the path, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def mistake(self, path: Path, message: str) -> PlanMistake:
        """A mistake at the path, with its line."""
        return PlanMistake(place(path), message, self.line(path))

    def add_mistake(self, path: Path, message: str) -> None:
        """Adds a mistake at the path to `mistakes`."""
        self.mistakes.append(self.mistake(path, message))


def parse(text: str, *, as_printed: bool = False) -> Document:
    """Reads one YAML document. It raises no error: mistakes are kept in the document.

    Args:
        as_printed: numbers stay text, with all digits as they were written.
    """
    document = Document()
    try:
        with warnings.catch_warnings():
            # YAML 1.2.2, section 3.2.2.2: an anchor may be used again, and the last one counts.
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        problem = " ".join(filter(None, (error.context, error.problem)))
        document.mistakes.append(PlanMistake("YAML", problem or "cannot be read", line))
    except (YAMLError, ValueError) as error:
        problem = str(error).splitlines()[0] if str(error) else "cannot be read"
        document.mistakes.append(PlanMistake("YAML", problem))
    except RecursionError:
        document.mistakes.append(PlanMistake("YAML", "is nested too deeply"))
    else:
        _Converter(document, as_printed).begin(node)
    return document


def place(path: Path) -> str:
    """A path as people write it: ``systems[1].settings``; the whole plan is ``plan``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "plan"


class _TooBig(Exception):  # noqa: N818 - ends the conversion, never leaves this file
    pass


class _Converter:
    def __init__(self, document: Document, as_printed: bool) -> None:
        self._document, self._as_printed = document, as_printed
        self._count = 0

    def begin(self, node: Node | None) -> None:
        if node is None:
            self._document.mistakes.append(PlanMistake("plan", "is empty"))
            return
        try:
            self._document.value = self._value(node, ())
        except _TooBig:
            self._document.value = None
            message = f"is nested deeper than {DEPTH_MAX} or has more than {VALUES_MAX} values"
            self._document.mistakes.append(PlanMistake("YAML", message))

    def _value(self, node: Node, path: Path) -> object:
        self._count += 1
        if len(path) > DEPTH_MAX or self._count > VALUES_MAX:
            raise _TooBig
        self._document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self._value(entry, (*path, i)) for i, entry in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._mistake(path, "a key must be a single word", line)
                continue
            key = str(key_node.value)
            if key in values:
                first = self._document.lines[(*path, key)]
                self._mistake((*path, key), f"stands twice, first in line {first}", line)
                continue
            self._document.lines[(*path, key)] = line
            values[key] = self._value(value_node, (*path, key))
        return values

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        kind, text = str(node.tag).removeprefix(_TAG), str(node.value)
        line = node.start_mark.line + 1
        if kind not in _READERS:
            self._mistake(path, f"the tag {node.tag} is not used in plans", line)
            return text
        if kind in ("int", "float"):
            self._document.printed[path] = text
            if self._as_printed:
                return text
        try:
            return _READERS[kind](text)
        except ValueError:
            self._mistake(path, f"is no number that can be used: {text[:40]}", line)
            return text

    def _mistake(self, path: Path, message: str, line: int) -> None:
        self._document.mistakes.append(PlanMistake(place(path), message, line))


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    number = sign * int(digits, _BASES.get(digits[:2].lower(), 10))
    if number.bit_length() > _BITS_MAX:  # Python refuses to write long integers that it could read
        raise ValueError(text)
    return number


def _real(text: str) -> float:
    number = float(text.replace("_", ""))  # YAML's .inf and .nan are no numbers to float
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_READERS: dict[str, Callable[[str], object]] = {
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": _integer,
    "float": _real,
    **dict.fromkeys(("str", "timestamp", "merge", "value"), str),
}


SCALES: Final = "scales"
"""The plan file's key of named overrides, such as a plan of another size.

An override is laid over the whole plan: maps are merged key by key, any other value (a list too)
replaces the plan's, and ``null`` removes a key. `Plan.scale` is the name of the chosen scale.
"""
SCALES_MAX: Final = 64
"""Each is checked as a whole plan."""


def take_scales(document: Document) -> dict[str, dict[str, Any]]:
    """Take the scales out of a plan file; an entry of another shape becomes a mistake."""
    plan = document.value
    if not isinstance(plan, dict):
        return {}
    if "scale" in plan and SCALES in plan:  # alone it is what a stored plan says of itself
        document.add_mistake(("scale",), "is chosen when the plan is run, with --scale")
        del plan["scale"]
    scales = plan.pop(SCALES, {})
    if not isinstance(scales, dict):
        message = f"must be names with parts of a plan, found {scales!r:.60}"
        document.add_mistake((SCALES,), message)
        return {}
    if len(scales) > SCALES_MAX:
        message = f"has {len(scales):,} entries, and a plan at most {SCALES_MAX}"
        document.add_mistake((SCALES,), message)
        return {}
    for name, part in scales.items():
        if not isinstance(part, dict):
            document.add_mistake((SCALES, name), f"must be a part of a plan, found {part!r:.60}")
        elif SCALES in part:
            document.add_mistake((SCALES, name, SCALES), "has no place within a scale")
    return {name: part for name, part in scales.items() if isinstance(part, dict)}


def scaled(document: Document, scales: dict[str, dict[str, Any]], name: str) -> Document:
    """A new document: the plan with the named scale laid over it, each value with its own line."""
    merged = Document(deepcopy(document.value), dict(document.lines), [])
    part = {key: value for key, value in deepcopy(scales[name]).items() if key != SCALES}
    merged.value = {**_laid_over(merged, merged.value, part, (), (SCALES, name)), "scale": name}
    return merged


def _laid_over(
    document: Document, below: dict[str, Any], above: dict[str, Any], path: Path, source: Path
) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        here, there = (*path, key), (*source, key)
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _laid_over(document, merged[key], value, here, there)
            continue
        _take_lines(document, (here, merged.get(key)), (there, value))
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _take_lines(document: Document, old: tuple[Path, object], new: tuple[Path, object]) -> None:
    """Replace the lines of a value at its path by the lines of the value laid over it."""
    (path, below), (source, above) = old, new
    for place_below in _paths(path, below):
        document.lines.pop(place_below, None)
    for place_above in _paths(source, above):
        if (line := document.lines.get(place_above)) is not None:
            document.lines[(*path, *place_above[len(source) :])] = line


def _paths(path: Path, value: object) -> Iterator[Path]:
    """The path of a value and of all its parts."""
    yield path
    parts = value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, list) else parts:
        yield from _paths((*path, key), part)
