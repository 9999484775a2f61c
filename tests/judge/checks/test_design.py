"""Is it the experiment that was planned? Checks on all trials together."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest

from dbdyno.judge.checks import design
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.parts import StackProfile
from dbdyno.plan.systems import SystemPlan
from support import making
from support.making import A, B


def test_another_seed_makes_the_block_void():
    trials = making.pairs((1.0,) * 3)
    assert not list(design.unequal_load(trials, making.plan()))
    trials[3] = making.with_trial(trials[3], seed=77)
    found = list(design.unequal_load(trials, making.plan()))
    assert [(f.level, f.trial) for f in found] == [
        (Level.VOID, trials[2].trial.key),
        (Level.VOID, trials[3].trial.key),
    ]
    loads = {A: (2, "uniform", True), B: (77, "uniform", True)}
    assert found[0].values == {"block": 2, "loads": loads}


@pytest.mark.parametrize("other", [{"distribution": "pareto"}, {"prepared_statements": False}])
def test_another_way_of_loading_makes_the_block_void(other):
    trials = making.pairs((1.0,))
    engine = trials[1].engine.model_copy(update=other)
    trials[1] = trials[1].model_copy(update={"engine": engine})
    assert len(list(design.unequal_load(trials, making.plan()))) == 2


def test_a_run_until_decided_owes_only_the_blocks_that_were_begun():
    plan = making.plan(blocks=12, design={"stop": "decided"})
    trials = making.pairs((1.0,) * 3)
    assert not list(design.incomplete_run(trials, plan))
    (missing,) = design.incomplete_run(trials[:-1], plan)
    assert [trial["block"] for trial in missing.values["trials"]] == [3]
    assert len(list(design.incomplete_run([], plan))) == 1


def test_missing_trials_are_named():
    plan = making.plan(blocks=3)
    trials = making.pairs((1.0,) * 3)
    assert not list(design.incomplete_run(trials, plan))
    failed = trials[5].model_copy(update={"failure": "stopped"})
    (found,) = design.incomplete_run([*trials[:5], failed], plan)
    assert found.level is Level.DOUBTFUL
    place = {"block": 3, "system": B, "cell": failed.trial.cell.model_dump()}
    assert found.values == {"trials": [place]}
    (found,) = design.incomplete_run([], plan)
    assert len(found.values["trials"]) == 6


def test_control_is_a_system_that_is_there_twice():
    plan = making.plan()
    assert design.lacks_control(plan)
    again = SystemPlan(label="again", reference=A)
    assert not design.lacks_control(plan.model_copy(update={"systems": (*plan.systems, again)}))
    assert not design.lacks_control(making.plan(systems=(A,)))


# Systems that did not take turns, blocks torn apart, machines that drift: found by their times.


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
    """Linear 0.3 % a place (docs/how-it-works/method.md): no difference between the systems is
    there."""
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
    assert finding.values["change"] == pytest.approx(-0.104, abs=1e-3)
    assert list(design.machine_drift(alternating(6), PLAN)) == []
    assert list(design.machine_drift(drifting(alternating(2), -0.01), PLAN)) == []


def test_a_slower_machine_is_no_drift_of_another():
    made = []
    for m in alternating(12):
        name, tps = ("a", 1000.0) if m.trial.block < 6 else ("b", 800.0)
        place = {"block": m.trial.block, "sequence": m.trial.sequence}
        one = making.measurement(m.trial.system, tps=tps, **place)
        made.append(making.changed(one, machine=name))
    assert list(design.machine_drift(made, PLAN)) == []
    assert list(design.machine_drift([making.changed(m, machine="") for m in made], PLAN)) != []


def timed(*minutes):
    """Trials of 12 s that began so many minutes after the first, two in each block."""
    return [
        making.changed(m, started_at=(BEGIN + timedelta(minutes=after)).isoformat())
        for m, after in zip(alternating(len(minutes) // 2), minutes, strict=True)
    ]


def test_a_block_that_was_interrupted_for_hours_is_doubtful():
    (finding,) = design.split_block(timed(0, 1, 2, 182, 183, 184), PLAN)
    assert finding.level is Level.DOUBTFUL
    pause = {"case": "paused", "block": 2, "hours": pytest.approx(3, abs=0.01), "usual_s": 48}
    assert finding.values == pause


def test_pauses_between_blocks_short_ones_and_unreadable_times_are_left_out():
    assert list(design.split_block(timed(0, 1, 600, 601), PLAN)) == []
    assert list(design.split_block(timed(0, 20, 40, 60), PLAN)) == []
    made = [making.changed(m, started_at="yesterday") for m in timed(0, 100)]
    assert list(design.split_block(made, PLAN)) == []


def served(of_a, of_b):
    """One block of two cells, by the process that served each."""
    made = []
    for system, pids in ((A, of_a), (B, of_b)):
        for threads, pid in zip((1, 8), pids, strict=True):
            one = making.measurement(system, threads=threads)
            made.append(making.changed(one, server=one.server.model_copy(update={"pid": pid})))
    return made


def test_a_server_that_was_started_again_within_a_block_is_doubtful():
    (finding,) = design.split_block(served((41, 41), (42, 43)), PLAN)
    assert (finding.check, finding.level) == ("split-block", Level.DOUBTFUL)
    assert finding.values == {"case": "started-again", "arm": B, "block": 1}
    # those that were started equally often are alike
    assert list(design.split_block(served((41, 41), (42, 42)), PLAN)) == []
    assert list(design.split_block(served((41, 44), (42, 43)), PLAN)) == []
    per_cell = making.with_parts(PLAN, procedure={"restart": "cell"})
    assert list(design.split_block(served((41, 41), (42, 43)), per_cell)) == []


def test_sampled_stacks_are_a_doubt_about_every_verdict():
    trials = making.pairs((0.9,) * 3)
    assert not list(design.sampled_stacks(trials, PLAN))
    profile = StackProfile(
        sampler="perf",
        period_us=10_000.0,
        window_s=9.0,
        events=9000.0,
        sampler_cpu_s=0.2,
        stacks={"connection;do_command": 80},
    )
    sampled = [making.changed(trial, profile=profile) for trial in trials]
    (finding,) = design.sampled_stacks(sampled, PLAN)
    assert (finding.level, finding.system, finding.cell) == (Level.DOUBTFUL, None, None)
    (verdict,) = judge(sampled, making.plan(blocks=3)).verdicts
    assert {"checks": {"sampled-stacks": 1}} in [reason.values for reason in verdict.reasons]
