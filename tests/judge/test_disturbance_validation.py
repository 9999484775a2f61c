"""The count of wrong words beside a hog, on made trials; `validation.disturbance` has real ones."""

from __future__ import annotations

import pytest
from validation.disturbance import Hogs, asked, line, seen, summary

from dbdyno.judge.verdict import Word
from support import making


def stored(hog, repeats=()):
    """Three blocks of a against b, whose rate the hog beside it takes."""
    made = []
    for block in range(3):
        for repeat in range(3 if block in repeats else 1):
            for system, cores in (("a", 0.0), ("b", hog)):
                rate = 1000.0 * (1 - cores / 4) + block
                one = making.measurement(system, block, 2, rate, other_cpu=cores)
                made.append(making.with_trial(one, repeat=repeat))
    return made


def test_a_hog_gets_no_word_with_or_without_the_rule():
    plan = asked("mysql:5.7.22", blocks=3, window_s=10)
    plan = plan.model_copy(update={"workloads": making.plan().workloads})
    found = seen(stored(1.0, repeats=(0,)), plan, hogs=1, chance=1.0)
    assert (found.word, found.word_without, found.repeated) == (Word.VOID, Word.UNDECIDED, 2)
    assert found.shares == pytest.approx((0.0, 0.25))
    assert not found.is_wrong
    quiet = seen(stored(0.0), plan, hogs=0, chance=0.0)
    assert quiet.word is Word.EQUIVALENT
    wrong = found._replace(word=Word.BETTER, word_without=Word.WORSE)
    told = summary([wrong._replace(word=Word.VOID), quiet, wrong])
    assert told.startswith("wrong words: 1 of 3 (")
    assert "without the rule: 2 (worse 2, equivalent 1)" in told
    assert "2 blocks again: void; without the rule worse (-25.0%)" in line(
        1, wrong._replace(word=Word.VOID)
    )


def test_hogs_run_with_trials_of_the_second_system_only():
    hogs, made = Hogs(2, 1.0, 0), making.pairs((1.0,), systems=("a", "b"))
    (a, b) = (one.trial for one in made)
    hogs.begin(a, 1, 2, 0.0)
    assert hogs.running == 0
    hogs.begin(b, 2, 2, 0.0)
    assert hogs.running == 2
    hogs.end(b, made[1], 0.0)
    assert hogs.running == 0
