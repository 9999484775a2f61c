"""What is stored as plain English is recognised with its values, and nothing else is changed."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.language.stored import from_stored
from dbdyno.language.words import NAME, translated
from support.source import LAB


def test_values_are_found_and_told_in_another_language():
    text = from_stored("dirty pages 812 to 3, history 40 to 0")
    chinese = "脏页 {dirty} → {dirty_left}，历史 {history} → {history_left}"
    assert translated(text, {text.template: chinese}) == "脏页 812 → 3，历史 40 → 0"
    whole = from_stored("not at rest at the cap: dirty pages 812 to 3, history 40 to 0")
    assert whole.values["dirty"] == "812"
    before = from_stored("3 of 12.5 MB")  # as older stores have it
    assert before.values == {"files": "3", "size": "12.5"}


@pytest.mark.parametrize("module", ["procedure", "arm"])
def test_steps_and_what_they_come_to_are_known(module):
    """Every literal name and detail of a step, and nothing that could be taken for another."""
    tree = ast.parse((LAB / "experiment" / f"{module}.py").read_text())
    names = {
        argument.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for argument in [
            *(k.value for k in node.keywords if k.arg in ("name", "detail")),
            *(
                node.args
                if isinstance(node.func, ast.Attribute) and node.func.attr == "timed"
                else []
            ),
        ]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert {text for text in names if text and from_stored(text).template == NAME} == set()


@given(st.text())
def test_what_nobody_knows_stays_as_it_is(text):
    assert from_stored(text) == text


def test_whatever_is_being_prepared_is_known() -> None:
    """Every text that a room tells progress while a run goes on, with any values."""
    told = [
        (path.name, "".join(_literal(part) for part in node.args[0].values))
        for room in ("experiment", "fleet")
        for path in sorted((LAB / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("stage", "_report")
        if isinstance(node.args[0], ast.JoinedStr)
    ]
    assert len(told) > 10
    unknown = {text for _, text in told if from_stored(text).template == NAME}
    assert unknown == {
        "7: 7",  # an error's own message
        "7; measured again on all systems: 7",  # the end of a sentence that is put
        "7; its repeats are used, its trial is void",  # together, whose whole is below
    }
    disturbed = "block 3 was disturbed: others had 12.0% of the host's CPU beside A (limit 10 %); "
    whole = from_stored(f"{disturbed}measured again on all systems: oltp_read_write/threads=8")
    assert whole.values["share"] == "12.0%"


@pytest.mark.parametrize(("module", "tells"), [("certify", "tell"), ("durability", "report")])
def test_what_a_proof_tells_is_known(module: str, tells: str) -> None:
    told = [
        "".join(map(_literal, getattr(node.args[0], "values", node.args)))
        for node in ast.walk(ast.parse((LAB / "experiment" / f"{module}.py").read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == tells
    ]
    assert len(told) > 1
    assert {text for text in told if from_stored(text).template == NAME} == set()


def _literal(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) else "7"
