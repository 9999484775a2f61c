"""Void beyond the plan's limit, doubtful where arms lost unequal shares, told when repeated."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks.disturbance import (
    UNEVEN_MAX,
    disturbed,
    measured_again,
    uneven_disturbance,
)
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import enough, judge
from dbdyno.judge.verdict import Word
from dbdyno.report.rows import State, attempts
from dbdyno.report.tell.findings import evidence
from support import making
from support.making import A, B

PLAN = making.plan(blocks=3)
QUIET = 0.08  # cores of four: 2 %


def arms(block, of_a, of_b, repeat=0, ratio=1.0):
    """One block; so many cores were in others' hands beside each arm."""
    made = []
    for position, (system, cores) in enumerate(((A, of_a), (B, of_b))):
        place = {"block": block, "position": position, "sequence": 2 * block + position}
        rate = 1000.0 * (ratio if system == B else 1.0)
        one = making.measurement(system, tps=rate, other_cpu=cores, **place)
        made.append(making.with_trial(one, repeat=repeat))
    return made


def notes(judgement):
    found = (one for one in judgement.findings if one.check == "disturbed")
    return [one for one in found if one.level is Level.NOTE]


@pytest.mark.parametrize(("cores", "is_void"), [(0.39, False), (0.42, True)])
def test_a_trial_is_void_beyond_the_limit_that_is_printed(cores, is_void):
    found = disturbed(making.measurement(other_cpu=cores), PLAN)
    assert (found is not None) == is_void
    if found:
        assert (found.level, found.check) == (Level.VOID, "disturbed")
        assert (found.values["others"], found.values["limit"]) == (pytest.approx(0.105), 10)


def test_the_plan_sets_the_limit_or_switches_it_off():
    made = making.measurement(other_cpu=0.3, steal=0.15)
    assert disturbed(made, making.with_parts(PLAN, design={"disturbance_max": 0.11})) is not None
    assert disturbed(made, making.with_parts(PLAN, design={"disturbance_max": 0.115})) is None
    without = making.with_parts(PLAN, design={"disturbance_max": 1.0})
    assert disturbed(making.measurement(other_cpu=3.0), without) is None


def test_arms_that_lost_unequal_shares_are_doubtful_with_the_figures_of_each():
    limit = UNEVEN_MAX * 4
    even = [*arms(0, 0.0, limit - 0.01), *arms(1, 0.3, 0.3), *arms(4, QUIET, 1.0)]
    assert list(uneven_disturbance(even, PLAN)) == []
    (found,) = uneven_disturbance([*even, *arms(2, 0.04, limit + 0.06)], PLAN)
    assert found.level is Level.DOUBTFUL
    assert found.concerns(even[0].trial.cell, B)
    assert (found.values["blocks"], found.values["limit"]) == (4, 5)
    (block,) = found.values["uneven"]
    assert block["block"] == 3
    of_a = {"arm": A, "all": pytest.approx(0.01), "cpu": pytest.approx(0.01), "steal": 0, "wait": 0}
    assert block["arms"][0] == of_a
    assert block["arms"][1]["all"] == pytest.approx(0.065)


def test_steal_alone_makes_arms_uneven():
    stolen = [making.measurement(A, steal=0.0), making.measurement(B, steal=0.3)]
    (found,) = uneven_disturbance(stolen, PLAN)
    of_b = found.values["uneven"][0]["arms"][1]
    assert (of_b["arm"], of_b["cpu"], of_b["steal"]) == (B, 0, pytest.approx(0.075))


def test_of_a_server_that_is_not_seen_only_steal_is_compared():
    beside = making.measurement(A, other_cpu=0.3), making.unseen(making.measurement(B))
    assert list(uneven_disturbance(beside, PLAN)) == []
    stolen = making.measurement(A), making.unseen(making.measurement(B, steal=0.3))
    (found,) = uneven_disturbance(stolen, PLAN)
    assert [set(arm) for arm in found.values["uneven"][0]["arms"]] == [{"arm", "all"}] * 2
    assert "steal alone" in str(evidence(found))


def test_a_replaced_block_is_kept_told_and_in_no_number():
    quiet = [one for block in (0, 1) for one in arms(block, QUIET, QUIET)]
    loud, anew = arms(2, QUIET, 1.0, ratio=0.5), arms(2, QUIET, QUIET, repeat=1)
    made = judge([*quiet, *loud, *anew], PLAN)
    assert made == judge([*quiet, *anew], PLAN).model_copy(update={"findings": made.findings})
    (told,) = notes(made)
    again = {"case": "others", "block": 3, "times": 1, "arm": B, "share": pytest.approx(0.25)}
    assert told.values == {**again, "cell": loud[0].trial.cell.model_dump()}
    assert all(finding.level is not Level.VOID for finding in made.findings)
    states = [(a.state, a.why) for a in attempts([*quiet, *loud, *anew], made)]
    assert states.count((State.REPEATED, "it was measured again")) == 2
    assert [state for state, _ in states].count(State.VALID) == 6


def test_a_block_that_is_measured_again_for_a_lost_machine_says_so():
    kept, one = arms(2, QUIET, QUIET)
    gone = making.changed(one, failure="the machine 10.0.0.7 was lost", lost=True)
    (told,) = measured_again([kept, gone, *arms(2, QUIET, QUIET, repeat=1)], PLAN)
    assert (told.values["case"], told.values["times"]) == ("lost", 1)


def test_a_block_that_stays_disturbed_is_void_and_told():
    trials = [one for block in range(3) for one in arms(block, QUIET, QUIET)]
    trials += [*arms(1, QUIET, 1.0, repeat=1), *arms(1, QUIET, 1.0, repeat=2)]
    made = judge(trials, PLAN)
    (verdict,) = made.verdicts
    assert verdict.word is Word.VOID
    assert verdict.estimate.blocks == 2
    assert notes(made)[1].values == {"case": "used-up", "cells": 1}


def test_whether_a_run_has_enough_is_asked_of_what_counts():
    plan = making.with_parts(making.plan(blocks=12), design={"stop": "decided"})
    decided = [one for block in range(3) for one in arms(block, QUIET, QUIET, ratio=0.5)]
    assert enough(decided, plan)
    assert not enough([*decided, *arms(2, QUIET, 1.0, repeat=1, ratio=0.5)], plan)


def test_nothing_is_told_of_blocks_that_were_measured_once_and_a_pilot_uses_up_no_repeats():
    pilot = making.with_trial(making.measurement(other_cpu=1.0), block=-1, is_pilot=True)
    assert list(measured_again([pilot, *arms(0, QUIET, QUIET)], PLAN)) == []
