"""The same work by every system, and rows that are all there afterwards."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import work
from dbdyno.judge.checks.work import TEMPLATES, said_again
from dbdyno.judge.finding import Level
from dbdyno.language.words import NAME, told
from dbdyno.measurement.parts import TrialEvidence
from dbdyno.stats.steady import steady
from support import making
from support.making import A, B
from support.source import LAB

PLAN = making.plan()
ROWS = PLAN.dataset.rows


@pytest.mark.parametrize(
    ("again", "level"), [(0, None), (1, Level.NOTE), (10, Level.NOTE), (11, Level.DOUBTFUL)]
)
def test_events_begun_again_are_doubtful_above_a_thousandth(again, level):
    finding = work.retries(making.measurement(restarts=again), PLAN)
    assert (finding and finding.level) == level


def planned(system, **ways):
    return making.changed(making.measurement(system), evidence=TrialEvidence(query_plans=ways))


def test_another_way_through_the_tables_is_noted():
    trials = [
        planned(A, point_selects="const PRIMARY", order_ranges="range PRIMARY, Using filesort"),
        planned(B, point_selects="const PRIMARY", order_ranges="range PRIMARY"),
    ]
    (finding,) = work.unequal_plans(trials, PLAN)
    assert (finding.level, finding.system) == (Level.NOTE, B)
    assert finding.evidence == (
        "1 of 2 kinds of statements take another way: order_ranges: mysql:5.7.22 range PRIMARY, "
        "Using filesort; mysql:8.0.15 range PRIMARY"
    )


def test_equal_ways_and_unknown_ones_are_not_told():
    same = [planned(A, point_selects="const PRIMARY"), planned(B, point_selects="const PRIMARY")]
    assert list(work.unequal_plans(same, PLAN)) == []
    assert list(work.unequal_plans([same[0], planned(B)], PLAN)) == []


def left(system=A, rows=ROWS, digest="new", workload="oltp_read_write"):
    made = making.measurement(system, workload=workload)
    evidence = TrialEvidence(rows_after={"sbtest1": rows, "sbtest2": ROWS}, dataset_after=digest)
    return making.changed(made, dataset="loaded", evidence=evidence)


@pytest.mark.parametrize(
    ("workload", "rows", "digest", "void"),
    [
        ("oltp_read_write", ROWS, "new", False),
        ("oltp_read_write", ROWS - 1, "new", True),
        ("oltp_read_only", ROWS, "loaded", False),
        ("oltp_read_only", ROWS, "new", True),
        ("oltp_update_index", ROWS + 1, "new", True),
        ("oltp_insert", ROWS + 7, "new", False),
        ("oltp_delete", ROWS - 7, "new", False),
    ],
)
def test_rows_are_those_that_the_workload_leaves(workload, rows, digest, void):
    plan = making.plan(workloads=(workload,))
    made = left(rows=rows, digest=digest, workload=workload)
    assert bool(list(work.rows_not_kept([made], plan))) == void


def test_a_system_that_lost_a_row_has_no_sound_trial():
    audited = audit([making.measurement(A), left(B, rows=ROWS - 1)], PLAN)
    assert {one.trial.system for one in audited.sound} == {A}
    (finding,) = (f for f in audited.findings if f.check == "rows-not-kept")
    assert finding.evidence == (
        f"its workloads leave {ROWS} rows in each table; at the run's end: sbtest1 has {ROWS - 1}"
    )


# What the making rooms write into a store is found again, and nothing else is changed.


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
    found = said_again(why)
    assert found == why
    assert found.template in TEMPLATES


def test_values_are_found_and_told_in_another_language():
    text = said_again("dirty pages 812 to 3, history 40 to 0")
    chinese = "脏页 {dirty} → {dirty_left}，历史 {history} → {history_left}"
    assert told(text, {text.template: chinese}) == "脏页 812 → 3，历史 40 → 0"
    whole = said_again("not at rest at the cap: dirty pages 812 to 3, history 40 to 0")
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
    assert {text for text in names if text and said_again(text).template == NAME} == set()


@given(st.text())
def test_what_nobody_knows_stays_as_it_is(text):
    assert said_again(text) == text
