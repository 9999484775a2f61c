"""What is stored as plain English is recognised with its values, and nothing else is changed."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.language.stored import TEMPLATES, from_stored
from dbdyno.language.words import NAME, translated
from dbdyno.stats.steady import steady
from support.source import LAB

CHANCE = np.random.default_rng(5)


def rates(*parts: tuple[int, float]) -> list[float]:
    """Seconds of these lengths and rates, with 1 % of noise."""
    seconds = [np.full(length, rate) for length, rate in parts]
    return list(np.concatenate(seconds) * CHANCE.normal(1, 0.01, sum(n for n, _ in parts)))


@pytest.mark.parametrize(
    "seen",
    [
        rates((5, 100.0)),
        [0.0] * 200,
        rates((150, 100.0), (60, 80.0)),
        rates((170, 80.0), (30, 100.0)),
        list(np.linspace(80, 120, 200)),
        rates((200, 100.0)),
    ],
)
def test_whatever_is_said_of_a_load_is_known(seen):
    why = steady(seen).why
    found = from_stored(why)
    assert found == why
    assert found.template in TEMPLATES


def test_values_are_found_and_told_in_another_language():
    text = from_stored("dirty pages 812 to 3, history 40 to 0")
    chinese = "脏页 {dirty} → {dirty_left}，历史 {history} → {history_left}"
    assert translated(text, {text.template: chinese}) == "脏页 812 → 3，历史 40 → 0"
    whole = from_stored("not at rest at the cap: dirty pages 812 to 3, history 40 to 0")
    assert whole.values["dirty"] == "812"


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
