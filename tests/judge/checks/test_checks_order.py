"""Systems that did not take turns, blocks torn apart, machines that drift: told from the times."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from dbdyno.judge.checks import design
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from support import making
from support.making import A, B

PLAN = making.plan()
BEGIN = datetime.fromisoformat("2026-11-21T06:00:00+00:00")


def sequential(tps_b=1000.0, blocks=5):
    """All of A, then all of B."""
    first = [making.measurement(A, block=b, sequence=b) for b in range(blocks)]
    then = [making.measurement(B, block=b, sequence=blocks + b, tps=tps_b) for b in range(blocks)]
    return [*first, *then]


def test_one_system_after_the_other_is_doubtful():
    (finding,) = design.sequential_design(sequential(), PLAN)
    assert (finding.level, finding.system) == (Level.DOUBTFUL, B)
    assert "did not take turns" in finding.evidence


def test_systems_that_take_turns_are_not_told():
    assert list(design.sequential_design(making.pairs((1.0,) * 3), PLAN)) == []
    assert list(design.sequential_design(sequential(blocks=1), PLAN)) == []


def drifting(trials, per_place):
    """The same machine, slower by that share at each place of the run."""
    return [
        making.measurement(
            m.trial.system,
            block=m.trial.block,
            sequence=m.trial.sequence,
            tps=1000.0 * math.exp(per_place * m.trial.sequence),
        )
        for m in trials
    ]


def alternating(blocks):
    """AB, BA, AB, … as the lab draws it."""
    made = []
    for block in range(blocks):
        for position, system in enumerate((A, B) if block % 2 == 0 else (B, A)):
            made.append(making.measurement(system, block=block, sequence=2 * block + position))
    return made


def test_the_trap_a_slowing_machine_fools_a_sequential_design_and_not_blocks():
    """Linear 0.3 % a place (method.md 3.4, 8): no difference between the systems is there."""
    drift = -0.003
    blocks, one_by_one = drifting(alternating(12), drift), drifting(sequential(blocks=12), drift)
    plan = making.plan(blocks=12)
    assert judge(blocks, plan).verdicts[0].word in (Word.EQUIVALENT, Word.UNDECIDED)
    fooled = judge(one_by_one, plan)
    assert fooled.verdicts[0].word is Word.WORSE
    assert "sequential-design" in {f.check for f in fooled.findings}


def test_the_drift_itself_is_noted():
    (finding,) = design.machine_drift(drifting(alternating(6), -0.01), PLAN)
    assert finding.level is Level.NOTE
    assert "changed by -10." in finding.evidence
    assert list(design.machine_drift(alternating(6), PLAN)) == []
    assert list(design.machine_drift(drifting(alternating(2), -0.01), PLAN)) == []


def timed(*minutes):
    """Trials of 12 s that began so many minutes after the first, two in each block."""
    return [
        making.changed(m, started_at=(BEGIN + timedelta(minutes=after)).isoformat())
        for m, after in zip(alternating(len(minutes) // 2), minutes, strict=True)
    ]


def test_a_block_that_was_interrupted_for_hours_is_doubtful():
    (finding,) = design.split_block(timed(0, 1, 2, 182, 183, 184), PLAN)
    assert finding.level is Level.DOUBTFUL
    assert finding.evidence == "3.0 h lie between trials of block 2; 48 s are usual"


def test_pauses_between_blocks_and_short_ones_are_nobodys_business():
    assert list(design.split_block(timed(0, 1, 600, 601), PLAN)) == []
    assert list(design.split_block(timed(0, 20, 40, 60), PLAN)) == []


def test_trials_without_a_readable_time_are_left_out():
    made = [making.changed(m, started_at="yesterday") for m in timed(0, 100)]
    assert list(design.split_block(made, PLAN)) == []
