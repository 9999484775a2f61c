"""Reads the project's own source for test_tidy and test_docs: files, imports, function lengths."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "lab" / "dbdyno"


@cache
def files() -> tuple[Path, ...]:
    """Every file that is or would be committed, in order."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def named(path: Path) -> str:
    """The path inside the project, for tables and messages."""
    return path.relative_to(ROOT).as_posix()


def with_suffix(*suffixes: str) -> list[Path]:
    """The files with one of these endings."""
    return [path for path in files() if path.suffix in suffixes]


@cache
def tree(path: Path) -> ast.Module:
    """A Python file as Python reads it."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a Python file; to walk through all files again takes a second."""
    return tuple(ast.walk(tree(path)))


@cache
def lab_modules() -> dict[str, Path]:
    """Every module of the lab by its name without `dbdyno.`; packages by their folder's name."""
    modules = {}
    for path in sorted(LAB.rglob("*.py")):
        parts = path.relative_to(LAB).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            modules[name] = path
    return modules


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules of the lab that a file imports anywhere in it, without `dbdyno.`."""
    found = set()
    known = {*lab_modules(), "_engine"}
    for node in nodes(path):
        if isinstance(node, ast.Import):
            ours = {a.name for a in node.names if _ours(a.name)}
            found |= {name.removeprefix("dbdyno").removeprefix(".") for name in ours}
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, path)
            if base is None:
                continue
            for alias in node.names:
                whole = f"{base}.{alias.name}".strip(".")
                found.add(whole if whole in known else base)
    return frozenset(found - {""})


def _ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] == "dbdyno"


def _base(node: ast.ImportFrom, path: Path) -> str | None:
    """The module a `from … import` names, without `dbdyno.`; None if it is not of the lab."""
    if node.level == 0:
        if not _ours(node.module or ""):
            return None
        return (node.module or "").removeprefix("dbdyno").removeprefix(".")
    folder = path.relative_to(LAB).parts[: -node.level]
    return ".".join([*folder, *((node.module or "").split(".") if node.module else [])])


@dataclass(frozen=True)
class Function:
    """One function and the lines of its work: signature and docstring of Python not counted."""

    name: str
    lines: int


def functions(path: Path) -> Iterator[Function]:
    """The functions of a Python or Rust file."""
    if path.suffix == ".py":
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                work = node.body[1:] if ast.get_docstring(node) is not None else node.body
                start = work[0].lineno if work else node.lineno
                yield Function(node.name, (node.end_lineno or start) - start + 1)
    else:
        yield from _rust_functions(path.read_text().splitlines())


def _rust_functions(lines: list[str]) -> Iterator[Function]:
    """From `fn` to the brace in the same column, which rustfmt vouches for."""
    opening = re.compile(r"^( *)(?:pub(?:\([a-z]+\))? |const |unsafe |extern \"C\" )*fn (\w+)")
    for start, line in enumerate(lines):
        match = opening.match(line)
        if match is None:
            continue
        end = next(
            (
                i
                for i in range(start, len(lines))
                if lines[i] == f"{match[1]}}}" or (i == start and line.endswith(("}", ";")))
            ),
            start,
        )
        yield Function(match[2], end - start + 1)
