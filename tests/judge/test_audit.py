"""The only door from measurements to estimates: what passes it and what does not."""

from __future__ import annotations

import inspect

import pytest

from dbdyno.judge import audit as audit_module
from dbdyno.judge.audit import CHECKS, GATES, Sound, audit
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.metric import TABLE
from dbdyno.report.tell.findings import place
from support import making
from support.making import A, B

PLAN = making.plan()


def test_honest_trials_are_all_sound():
    trials = making.pairs((1.0,) * 5)
    audited = audit(trials, PLAN)
    assert [one.measurement for one in audited.sound] == trials
    assert audited.findings == ()


def test_only_audit_makes_a_sound():
    with pytest.raises(TypeError, match=r"only judge\.audit\.audit makes a Sound"):
        Sound(making.measurement(), object())


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        ({"failure": "the server died"}, "trial-failed"),
        ({"tps": 0, "latency_ms": 1}, "no-events"),
        ({"errors": {"1205": 5000}}, "errors"),
        ({"latency_ms": 4.0}, "little-law"),
        ({"statements": (10, 4, 2)}, "statements-of-event"),
        ({"cpu_share_max": 0.9}, "client-bound"),
        ({"status": {"Uptime": 3}}, "server-restarted"),
    ],
)
def test_void_trial_is_not_sound(broken, check):
    trials = [making.measurement(A), making.measurement(B, **broken)]
    audited = audit(trials, PLAN)
    assert [one.trial.system for one in audited.sound] == [A]
    void = [finding for finding in audited.findings if finding.level is Level.VOID]
    assert [(f.check, f.system, f.cell) for f in void] == [(check, B, trials[1].trial.cell)]


def test_the_first_complete_attempt_counts_even_if_it_is_doubtful_or_void():
    doubtful = audit([making.measurement(steal=0.2)], PLAN)
    assert len(doubtful.sound) == 1
    assert "machine" in {f.check for f in doubtful.findings if f.level is Level.DOUBTFUL}
    void, good = making.measurement(A, latency_ms=4.0), making.measurement(A)
    assert audit([void, good], PLAN).sound == ()
    assert [one.measurement for one in audit([good, void], PLAN).sound] == [good]


def test_finding_on_the_run_voids_the_trials_it_names():
    trials = making.pairs((1.0,) * 3)
    trials[1] = making.with_trial(trials[1], seed=99)
    assert {one.trial.block for one in audit(trials, PLAN).sound} == {1, 2}


def test_void_finding_without_a_trial_voids_all_that_it_concerns(monkeypatch):
    whole = Finding(check="x", level=Level.VOID, system=B)
    monkeypatch.setattr(audit_module, "RUN_CHECKS", (lambda measurements, plan: [whole],))
    audited = audit(making.pairs((1.0,) * 3), PLAN)
    assert {one.trial.system for one in audited.sound} == {A}


def test_shut_gate_says_the_one_thing_that_matters():
    found = audit_module.examine(
        making.measurement(failure="died", latency_ms=1, cpu_share_max=1.0), PLAN
    )
    assert [finding.check for finding in found] == ["trial-failed"]


def test_checks_are_listed_once():
    names = [check.__name__ for check in CHECKS]
    assert len(set(names)) == len(names)
    assert CHECKS[: len(GATES)] == GATES


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_finding_is_called_as_its_check(check):
    source = inspect.getsource(inspect.getmodule(check))
    assert f'"{check.__name__.replace("_", "-")}"' in source
    assert check.__doc__.split(":")[0].split(" ")[0] in ("Void", "Doubtful", "Note")


def test_condensed_measurement_reads_as_the_whole_one():
    (one,) = audit([making.measurement(tps=3000)], PLAN).sound
    for metric in TABLE:
        assert one.value(metric) == one.measurement.value(metric)


def test_place_counts_blocks_from_one_and_is_empty_of_the_run() -> None:
    found = on_trial(making.measurement(B, block=2), "check", Level.NOTE)
    assert place(found) == "mysql:8.0.15, oltp_read_write, 8 threads, block 3"
    assert place(Finding(check="check", level=Level.NOTE)) == ""
