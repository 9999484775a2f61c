"""From measurements to verdicts, whole: planted truths must come out as words."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.judge.finding import Level, Reason
from dbdyno.judge.judgement import Judgement, enough, judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import PRIMARY, TABLE
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.report.tell.verdicts import sentence
from support import making
from support.made_ladders import LEVELS, PEAKING, noisy, trials
from support.made_rates import at_rate
from support.making import A, B

CELL = Cell(workload="oltp_read_write", threads=8)
SLOWER = (0.77, 0.76, 0.78, 0.77, 0.765)


def test_planted_difference_is_found():
    judged = judge(making.pairs(SLOWER), making.plan())
    (verdict,) = judged.verdicts
    assert (verdict.word, verdict.material, verdict.reasons) == (Word.WORSE, True, ())
    assert (verdict.cell, verdict.baseline, verdict.system) == (CELL, A, B)
    assert sentence(verdict) == f"{B} is slower than {A}: TPS −23.1 % [−24.0, −22.2], 5 blocks"


def test_tie_is_equivalent_and_a_noisy_one_undecided():
    tie = judge(making.pairs((1.0, 1.003, 0.997, 1.001, 0.999)), making.plan())
    assert tie.verdicts[0].word is Word.EQUIVALENT
    noisy = judge(making.pairs((1.0, 1.05, 0.95, 1.02, 0.98)), making.plan())
    assert noisy.verdicts[0].word is Word.UNDECIDED
    assert noisy.verdicts[0].blocks_needed > 5


def test_swapping_baseline_and_system_inverts_ratio_and_word():
    trials = making.pairs(SLOWER)
    (there,) = judge(trials, making.plan()).verdicts
    (back,) = judge(trials, making.plan(systems=(B, A))).verdicts
    assert (there.word, back.word) == (Word.WORSE, Word.BETTER)
    assert back.estimate.ratio == pytest.approx(1 / there.estimate.ratio)
    assert back.estimate.low == pytest.approx(1 / there.estimate.high)
    assert back.material == there.material


def void_in(trials: list[Measurement], *places: int) -> list[Measurement]:
    """The same trials, those at the places with a generator that was too slow."""
    made = list(trials)
    for place in places:
        engine = made[place].engine.model_copy(update={"cpu_share_max": 0.9})
        made[place] = made[place].model_copy(update={"engine": engine})
    return made


def test_void_trials_are_left_out_and_said():
    judged = judge(void_in(making.pairs(SLOWER), 1, 4), making.plan())
    (verdict,) = judged.verdicts
    assert (verdict.word, verdict.estimate.blocks) == (Word.WORSE, 3)
    assert verdict.reasons == (
        Reason(kind="few-blocks", values={"blocks": 3, "good": 5}),
        Reason(kind="void", values={"trials": 2, "checks": {"client-bound": 2}}),
    )


def test_failed_attempt_made_good_leaves_no_trace_in_the_verdict():
    failed = making.measurement(B, failure="interrupted", position=1, sequence=1)
    judged = judge([failed, *making.pairs(SLOWER)], making.plan())
    assert judged.verdicts[0].reasons == ()
    assert judged.verdicts[0].estimate.blocks == 5
    assert "trial-failed" in {f.check for f in judged.findings if f.level is Level.VOID}


def test_interrupted_run_without_enough_blocks_has_no_verdict():
    judged = judge(making.pairs(SLOWER[:2]), making.plan())
    (verdict,) = judged.verdicts
    assert verdict.word is Word.NO_VERDICT
    assert verdict.estimate.ratio == pytest.approx(0.765, abs=0.001)
    assert verdict.reasons[-1].values == {"checks": {"incomplete-run": 1}}


def test_each_cell_is_judged_by_its_own_trials():
    plan = making.plan(threads=(1, 8), blocks=3)
    trials = making.pairs(SLOWER[:3], threads=8) + making.pairs((1.3, 1.31, 1.29), threads=1)
    judged = judge(void_in(trials, 0), plan)
    assert [(v.cell.threads, v.word) for v in judged.verdicts] == [
        (1, Word.BETTER),
        (8, Word.VOID),
    ]
    assert [reason.kind for reason in judged.verdicts[0].reasons] == ["few-blocks"]


def test_cell_that_only_the_measurements_have_is_judged_too():
    trials = making.pairs(SLOWER, setting="small pool")
    judged = judge(trials, making.plan())
    assert [v.word for v in judged.verdicts] == [Word.NO_VERDICT, Word.WORSE]
    assert judged.verdicts[1].cell.setting == "small pool"


def test_third_system_is_compared_with_the_first():
    plan = making.plan(systems=(A, B, "mariadb:11.4"), blocks=3)
    trials = making.pairs(SLOWER[:3])
    trials += [making.measurement("mariadb:11.4", block, tps=1500) for block in range(3)]
    judged = judge(trials, plan)
    assert [(v.baseline, v.system, v.word) for v in judged.verdicts] == [
        (A, B, Word.WORSE),
        (A, "mariadb:11.4", Word.BETTER),
    ]


def test_one_system_has_values_but_no_verdicts():
    trials = [making.measurement(A, block) for block in range(3)]
    judged = judge(trials, making.plan(systems=(A,), blocks=3))
    assert (judged.estimates, judged.verdicts, judged.stability_counts) == ((), (), ())
    assert judged.value(CELL, A, PRIMARY.name).value == pytest.approx(1000)


def test_a_run_until_decided_that_compares_nothing_takes_all_of_its_blocks():
    both = making.plan(blocks=12, design={"stop": "decided"})
    trials = making.pairs((0.5, 0.5, 0.5))
    assert enough(trials, both)
    alone = making.with_parts(both, systems=both.systems[:1])
    assert not enough([one for one in trials if one.trial.system == A], alone)


def test_looking_up_values_and_estimates():
    judged = judge(making.pairs(SLOWER), making.plan())
    assert len(judged.values) == 2 * len(TABLE)
    assert judged.value(CELL, B, "queries_per_s").value == pytest.approx(15_380)
    assert judged.estimate(CELL, A, B, "latency_ms_avg").ratio == pytest.approx(1.3, abs=0.005)
    assert judged.estimate(CELL, A, A, PRIMARY.name) is None
    assert judged.value(CELL, "mysql:9", PRIMARY.name) is None


# What a judgement says beside its verdicts, whole: planted shapes of two systems come out.


PLAN = making.plan(threads=LEVELS, window_s=2, blocks=6)


def made():
    random = np.random.default_rng(8)
    of_a, of_b = (noisy(LEVELS, PEAKING, (6,), random) for _ in range(2))
    of_b[4] *= 0.6  # one restart was bad
    return [*trials(A, of_a), *trials(B, 1.3 * of_b)]


def test_a_judgement_has_the_shape_of_its_sound_trials_and_is_pure():
    trials = made()
    judged = judge(trials, PLAN)
    assert [one.system for one in judged.scalability if one.peak] == [A, B]
    assert {(one.system, one.block) for one in judged.outliers} == {(B, 4)}
    assert judge(trials, PLAN) == judged
    assert Judgement.model_validate_json(judged.model_dump_json()) == judged


def test_it_is_ordered_by_cells_systems_and_blocks_however_trials_ran():
    judged = judge(made()[::-1], PLAN)
    places = [(one.cell.threads, one.system, one.block) for one in judged.stability]
    assert places == [(n, system, block) for n in LEVELS for system in (A, B) for block in range(6)]
    assert [one.system for one in judged.scalability] == [A, B]


def test_nothing_measured_is_no_verdict_and_no_error():
    found = judge([], PLAN)
    assert {verdict.word for verdict in found.verdicts} == {Word.NO_VERDICT}
    parts = ("values", "scalability", "stability", "stability_counts", "outliers")
    assert all(getattr(found, part) == () for part in parts)


def test_with_a_limit_on_p95_odd_runs_are_those_of_p95_as_the_verdict_is():
    slo = SloPlan(metric="p95", limit_ms=50)
    plan = making.plan(blocks=6, load=LoadPlan(rates=("1000",), slo=slo))
    slow = {(B, 4): 30.0}  # one restart was bad
    made = [
        at_rate(system, block, latency_ms=slow.get((system, block), 10.0 + 0.05 * block))
        for block in range(6)
        for system in (A, B)
    ]
    judged = judge(made, plan)
    assert {one.estimate.metric for one in judged.verdicts} == {"latency_ms_p95"}
    assert [(one.block, one.metric) for one in judged.outliers] == [(4, "latency_ms_p95")]
