"""Reads the lab's own source for test_catalogue: what it says, and with which values."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.judge.audit import CHECKS
from dbdyno.language import words
from support.source import LAB, named, nodes

SAYING = ("say", "phrase", "count", "name", "listed", "clauses", "capital")
"""The functions of `words` by which texts for people are made."""


@dataclass(frozen=True)
class Saying:
    """One call of such a function, and where it stands."""

    function: str
    call: ast.Call
    place: str

    @property
    def template(self) -> str | None:
        """The template that a catalogue must have; None where the call brings none of its own."""
        if self.function in ("say", "phrase"):
            return _text(self.call.args[0])
        if self.function == "count":
            what = _text(self.call.args[1])
            return None if what is None else f"{{count}} {what}s"
        return None

    @property
    def is_put_together(self) -> bool:
        """Whether its template is made on the spot, so that no catalogue can have it."""
        if self.function not in ("say", "phrase"):
            return False
        return isinstance(self.call.args[0], ast.JoinedStr | ast.BinOp | ast.Call)

    @property
    def signs(self) -> list[str]:
        """What stands between the parts of a list, where it is said."""
        given = [*self.call.args[1:2], *(k.value for k in self.call.keywords if k.arg == "sign")]
        return [text for value in given if (text := _text(value)) is not None]

    @property
    def texts(self) -> list[str]:
        """Literal texts among its values, those within f-strings too; none of what it calls."""
        values = [keyword.value for keyword in self.call.keywords]
        values += self.call.args if self.function in ("name", "listed", "clauses") else []
        return [text for value in values for text in _literals(value)]


@cache
def sayings() -> tuple[Saying, ...]:
    """Every such call of the lab."""
    return tuple(
        Saying(node.func.id, node, f"{named(path)}:{node.lineno}")
        for path in sorted(LAB.rglob("*.py"))
        if path != Path(words.__file__)
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in _of_words(path)
    )


def templates() -> dict[str, str]:
    """Every template that a catalogue must have, and one place where it is said."""
    made = {saying.template: saying.place for saying in sayings() if saying.template is not None}
    checks = {check.__name__.replace("_", "-"): "judge.audit" for check in CHECKS}
    words_own = dict.fromkeys((words.CLAUSE, words.CLAUSES, *words.LISTS), "words")
    return {**words_own, **checks, **made}


def placeholders(template: str) -> list[tuple[str, str]]:
    """Names and formats of a template's values, in the order of names."""
    parts = string.Formatter().parse(template)
    return sorted((field, spec or "") for _, field, spec, _ in parts if field is not None)


@cache
def _of_words(path: Path) -> frozenset[str]:
    """Which of those functions a file has from `words`."""
    return frozenset(
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "dbdyno.language.words"
        for alias in node.names
        if alias.name in SAYING
    )


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _literals(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)
