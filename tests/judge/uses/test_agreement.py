"""Two runs of one experiment: Welch's interval against SciPy, its error rate, and the words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dbdyno.judge.estimate import Unsettled
from dbdyno.judge.interval import FIXED, quantile
from dbdyno.judge.standstill import Standstill
from dbdyno.judge.uses.agreement import Agreeing, agreements
from dbdyno.judge.verdict import Verdict, verdict_of
from dbdyno.plan.plan import DesignPlan
from support.made_estimates import CELL, estimate, estimate_from

DESIGNS = (FIXED, FIXED)
DECIDED = DesignPlan(stop="decided", blocks=12)


def verdict(logs: np.ndarray | list[float]) -> Verdict:
    return verdict_of(estimate_from(logs), 0.02)


def test_the_interval_is_welchs():
    first, second = [0.01, 0.03, -0.02, 0.0], [-0.2, -0.18, -0.23, -0.21, -0.19, -0.2]
    (found,) = agreements([verdict(first)], [verdict(second)], DESIGNS)
    theirs = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert found.ratio == pytest.approx(math.exp(np.mean(second) - np.mean(first)))
    assert found.low == pytest.approx(math.exp(theirs.low))
    assert found.high == pytest.approx(math.exp(theirs.high))
    assert found.word is Agreeing.DIFFER
    assert not found.same_word


def test_runs_that_stopped_when_decided_have_intervals_as_much_wider_as_their_own() -> None:
    runs = [verdict([0.0, 0.01, -0.01, 0.02])], [verdict([0.03, 0.01, 0.02, 0.0])]
    (fixed,), (stopped,) = agreements(*runs, DESIGNS), agreements(*runs, (DECIDED, DECIDED))
    wider = quantile(4, DECIDED) / quantile(4, FIXED)
    assert wider > 2
    assert math.log(stopped.high / stopped.low) == pytest.approx(
        wider * math.log(fixed.high / fixed.low)
    )


def test_the_cells_of_a_system_share_the_five_percent() -> None:
    logs = [0.0, 0.01, -0.01, 0.02]
    cells = [CELL, CELL.model_copy(update={"threads": 99})]
    one = [verdict(logs), verdict_of(estimate_from(logs, cells[1]), 0.02)]
    found = list(agreements(one, one, DESIGNS))
    assert {agreement.cells for agreement in found} == {2}
    theirs = stats.ttest_ind(logs, logs, equal_var=False).confidence_interval(0.975)
    assert found[0].high == pytest.approx(math.exp(theirs.high))


def test_close_and_precise_runs_agree():
    first, second = [0.001, -0.001, 0.0], [0.002, 0.0, 0.001]
    (found,) = agreements([verdict(first)], [verdict(second)], DESIGNS)
    assert (found.word, found.same_word) == (Agreeing.AGREE, True)
    (same,) = agreements([verdict([0.1, 0.1, 0.1])], [verdict([0.1, 0.1, 0.1])], DESIGNS)
    assert (same.low, same.high, same.word) == (1, 1, Agreeing.AGREE)


def test_an_interval_has_ends_however_far_a_run_scatters() -> None:
    wild, calm = verdict([0.0, 2000.0, -2000.0]), verdict([0.0, 0.1, 0.2])
    (found,) = agreements([wild], [calm], DESIGNS)
    assert 0 < found.low < found.high < math.inf
    assert found.word is Agreeing.NOT_SHOWN


def test_too_few_blocks_show_no_difference_and_missing_ones_are_named():
    (few,) = agreements([verdict([0.0, 0.1])], [verdict([0.5, 0.6, 0.7])], DESIGNS)
    assert (few.word, few.low) == (Agreeing.NOT_SHOWN, None)
    (none,) = agreements([verdict([])], [verdict([0.5, 0.6, 0.7])], DESIGNS)
    assert (none.word, none.ratio) == (Agreeing.MISSING, None)
    (alone,) = agreements([verdict([0.0, 0.1])], [], DESIGNS)
    assert (alone.word, alone.second, alone.same_word) == (Agreeing.MISSING, None, False)


def test_blocks_that_are_left_when_a_system_stood_still_are_not_compared():
    of_others = estimate_from([-0.2, -0.21, -0.19])
    still = verdict_of(
        of_others, 0.02, standstill=Standstill(system=2, baseline=0, both=0, pairs=5)
    )
    (found,) = agreements([verdict([0.0, 0.01, -0.01])], [still], DESIGNS)
    assert (found.word, found.ratio, found.low) == (Agreeing.NOT_SHOWN, None, None)


def test_what_a_warm_up_may_have_left_in_a_run_is_no_difference() -> None:
    cold = estimate_from([-0.2, -0.201, -0.199])
    rest = Unsettled(low=0.1, best=0.2, high=0.3, until_s=44)
    first, second = verdict([0.0, 0.001, -0.001]), verdict_of(cold, 0.02, unsettled=rest)
    (found,) = agreements([first], [second], DESIGNS)
    assert found.ratio == pytest.approx(math.exp(-0.2))
    assert found.high > math.exp(0.1), "settled, the ratio is 0.9 to 1.1 of the first run's"
    assert found.word is Agreeing.NOT_SHOWN
    (counted,) = agreements([first], [verdict_of(cold, 0.02)], DESIGNS)
    assert counted.word is Agreeing.DIFFER
    (faster,) = agreements([verdict([0.3, 0.301, 0.299])], [second], DESIGNS)
    assert faster.word is Agreeing.DIFFER, "beyond what the warm-up may have left"
    (alike,) = agreements([verdict([-0.2, -0.201, -0.199])], [second], DESIGNS)
    assert alike.word is Agreeing.NOT_SHOWN


def test_what_cpu_taken_by_others_may_explain_is_no_difference() -> None:
    fast, slow = estimate_from([0.1, 0.101, 0.099]), estimate_from([0.0, 0.001, -0.001])
    first, second = verdict_of(fast, 0.02), verdict_of(slow, 0.02)
    deprived = verdict_of(slow, 0.02, taken=0.15)
    (plain,) = agreements([first], [second], DESIGNS)
    (now,) = agreements([first], [deprived], DESIGNS)
    (before,) = agreements([deprived], [first], DESIGNS)
    assert plain.word is Agreeing.DIFFER
    assert (now.word, before.word) == (Agreeing.NOT_SHOWN, Agreeing.NOT_SHOWN)
    assert (now.low, now.high) == (plain.low, pytest.approx(plain.high * math.exp(0.15)))


def test_better_and_worse_contradict():
    better = verdict_of(estimate(1.1, 1.08, 1.12), 0.02)
    worse = verdict_of(estimate(0.9, 0.88, 0.92), 0.02)
    (found,) = agreements([better], [worse], DESIGNS)
    assert found.contradict
    assert not next(agreements([better], [better], DESIGNS)).contradict
