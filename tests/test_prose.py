"""Readable prose and names as tests: words that point without naming, docstrings that ask.

The counts are a thermometer. A sentence is good when a database engineer who meets the project for
the first time understands it at first reading.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from support import source

POINTING = {"that", "what", "one", "none", "nothing", "nobody", "those", "whose", "such"}
"""Words that point at a thing instead of naming it."""
ASKING = re.compile(r"(What|Whether|How|Where|Which|Who|Why|When)\b")
VAGUE_NAMES = {"one", "found", "made", "told", "asked"}
ERRORS = {"lab/dbdyno/errors.py", "lab/dbdyno/servers/base.py"}
"""Files with the errors' own words: wanted, found, hint."""
POINTING_MAX = 0.025
ASKING_MAX = 0.01


def room(path: Path) -> str:
    """The room of a file: a folder of the lab, a crate of the engine."""
    parts = path.relative_to(source.ROOT).parts
    depth = 2 if parts[0] == "engine" or len(parts) == 3 else 3
    return "/".join(parts[:depth])


def docstrings(path: Path) -> Iterator[str]:
    """Docstrings of a Python file, doc comments of a Rust file."""
    if path.suffix == ".py":
        for node in source.nodes(path):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""
    else:
        for block in re.findall(r"(?:^ *//[/!].*\n)+", path.read_text(), re.MULTILINE):
            yield re.sub(r"^ *//[/!] ?", "", block, flags=re.MULTILINE)


def bound_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Names bound by statements, parameters and attributes; not by comprehensions or lambdas."""
    brief = set[int]()
    for node in nodes:
        if isinstance(node, ast.comprehension):
            brief |= {id(inner) for inner in ast.walk(node.target)}
        elif isinstance(node, ast.Lambda):
            brief |= {id(inner) for inner in ast.walk(node.args)}
    for node in nodes:
        if id(node) in brief:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def test_each_room_says_what_its_things_are() -> None:
    words, pointing, asking, docs, names = (Counter[str]() for _ in range(5))
    for path in source.with_suffix(".py", ".rs"):
        if path.relative_to(source.ROOT).parts[0] not in ("lab", "engine"):
            continue
        for doc in docstrings(path):
            written = [word.lower() for word in re.findall(r"[A-Za-z']+", doc)]
            words[room(path)] += len(written)
            pointing[room(path)] += sum(word in POINTING for word in written)
            asking[room(path)] += bool(ASKING.match(doc))
            docs[room(path)] += bool(doc)
        if path.suffix == ".py" and source.named(path) not in ERRORS:
            names[room(path)] += sum(
                name in VAGUE_NAMES for name in bound_names(source.nodes(path))
            )
    assert docs.total() > 1000
    beyond = {
        name: (pointing[name], asking[name], names[name])
        for name in words
        if pointing[name] > POINTING_MAX * words[name]
        or asking[name] > ASKING_MAX * docs[name]
        or names[name]
    }
    assert beyond == {}, "name the thing, begin with a verb or a noun phrase"
