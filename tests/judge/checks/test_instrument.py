"""How much the instrument errs: sizes of errors, shares, and when it is out of calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dbdyno.judge.checks import instrument
from dbdyno.judge.checks.instrument import (
    ERROR_MAX,
    error_of,
    error_size,
    error_size_allowed,
    ledger_of,
    out_of_calibration,
    share_of,
)
from dbdyno.judge.finding import Level
from dbdyno.measurement.metric import TABLE
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from support import making
from support.made_controls import outcome
from support.making import A


def same(different: int, total: int) -> list[ControlOutcome]:
    words = ["worse"] * different + ["equivalent"] * (total - different)
    return [outcome(word=word) for word in words]


def test_an_error_is_student_s_made_normal() -> None:
    # the half width is t(0.975, 4) standard errors; an error at its end has a tail of 2.5 %
    assert error_of(outcome(1.0, 1.02)) == pytest.approx(1.959964, abs=1e-5)
    assert error_of(outcome(0.99, 1 / 0.99)) == pytest.approx(0, abs=1e-9)
    twice = error_of(outcome(1.01**0.5, 1.01**1.5))  # two half widths off, t = 5.55, df 4
    assert stats.norm.sf(twice) == pytest.approx(stats.t.sf(2 * stats.t.ppf(0.975, 4), 4))
    planted = outcome(0.97, 0.98, kind="planted")
    assert error_of(planted) == pytest.approx(1.959964, abs=1e-5)
    exact = outcome().model_copy(update={"low": 1.01, "high": 1.01, "ratio": 1.01})
    assert error_of(exact) == ERROR_MAX
    with pytest.raises(ValueError, match="no interval"):
        error_of(outcome().model_copy(update={"low": None}))


def test_their_size_is_one_where_intervals_are_right_and_chance_explains_a_little_more() -> None:
    random = np.random.default_rng(3)
    assert error_size(list(random.normal(0, 1, 4000))) == pytest.approx(1, abs=0.05)
    sizes = np.sqrt((random.normal(0, 1, (4000, 20)) ** 2).mean(axis=1))
    assert 0.003 < (sizes > error_size_allowed(20)).mean() < 0.02


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    found = share_of(3, 60)
    # Its ends are the shares at which so many or more, so many or fewer, are seen in 2.5 %.
    assert stats.binom.sf(2, 60, found.low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 60, found.high) == pytest.approx(0.025)
    none, all_ = share_of(0, 10), share_of(10, 10)
    assert (none.low, none.high) == pytest.approx((0, 0.3084971), abs=1e-6)
    assert (all_.low, all_.high) == pytest.approx((0.6915029, 1), abs=1e-6)
    assert (share_of(0, 0).low, share_of(0, 0).high) == (0, 1)


def test_both_kinds_are_counted_apart_and_those_without_an_interval_not_at_all() -> None:
    planted = [
        outcome(0.97, 0.99, kind="planted", word="worse"),
        outcome(0.97, 1.01, kind="planted", word="undecided"),
        outcome(0.90, 0.95, kind="planted", word="worse"),
    ]
    few = outcome().model_copy(update={"low": None, "high": None, "word": "worse"})
    ledger = ledger_of([*same(1, 4), *planted, few])
    assert (ledger.different.count, ledger.different.total) == (1, 4)
    assert (ledger.found.count, ledger.found.total) == (2, 3)
    assert (ledger.covered.count, ledger.covered.total) == (2, 3)


def test_larger_errors_than_chance_explains_are_a_doubt_about_everything() -> None:
    assert list(out_of_calibration(ledger_of(same(0, 20)))) == []
    assert list(out_of_calibration(ledger_of([]))) == []
    off = [outcome(1.001, 1.021, word="worse")] * 20
    assert list(out_of_calibration(ledger_of(off[:9]))) == []
    (found,) = out_of_calibration(ledger_of(off))
    assert (found.level, found.system, found.cell) == (Level.DOUBTFUL, None, None)
    assert "in 20 runs" in found.evidence
    assert "2.08 times as large" in found.evidence
    assert "chance explains 1.37 times (20 were called different)" in found.evidence


# Which servers could not be treated as the lab's own?


def plan() -> Plan:
    endpoint = SystemPlan(label="cloud", reference="mysql://bench@db1:3306/sbtest")
    own = SystemPlan(label=A, reference=A)
    return making.plan().model_copy(update={"systems": (own, endpoint)})


def test_an_endpoint_is_reported_once_with_what_was_not_done() -> None:
    trials = making.pairs((1.0,) * 3, systems=(A, "cloud"))
    (found,) = instrument.uncontrolled_server(trials, plan())
    assert (found.level, found.system, found.trial) == (Level.DOUBTFUL, "cloud", None)
    assert "in 3 blocks its servers were not restarted and its rows not restored" in found.evidence


def test_servers_of_our_own_are_no_doubt() -> None:
    assert not list(instrument.uncontrolled_server(making.pairs((1.0,)), making.plan()))
    only_own = [making.measurement(A)]
    assert not list(instrument.uncontrolled_server(only_own, plan()))


def test_the_cpu_of_servers_that_nobody_saw_is_no_number() -> None:
    metric = next(m for m in TABLE if m.name == "server_cpu_us_per_query")
    assert making.measurement(server_cpu_s=0.0).value(metric) is None
    assert making.measurement(server_cpu_s=2.0).value(metric) is not None
