"""A difference in throughput is CPU per transaction and CPU used, and the two multiply to it."""

from __future__ import annotations

import pytest

from dbdyno.judge.beside.accounting import Accounting
from dbdyno.judge.judgement import judge
from dbdyno.judge.uses.gate import GateOutcome, gate
from dbdyno.judge.verdict import Word
from dbdyno.plan.load import LoadPlan
from dbdyno.report.tell.verdicts import accounting
from support import making
from support.made_rates import at_rate
from support.making import A, B

PLAN = making.plan(blocks=3)


def trials(tps_of_b, cpu_s_of_b, *, other_cpu=0.0, blocks=3):
    """A does 1000 transactions/s with 10 s of CPU in a window of 10 s."""
    made = []
    for block in range(blocks):
        own = {"block": block, "sequence": 2 * block}
        made.append(making.measurement(A, tps=1000.0, server_cpu_s=10.0, **own))
        own |= {"sequence": 2 * block + 1, "position": 1, "other_cpu": other_cpu}
        made.append(making.measurement(B, tps=tps_of_b, server_cpu_s=cpu_s_of_b, **own))
    return made


def account(*args, plan=PLAN, **facts):
    return judge(trials(*args, **facts), plan).accountings


def said(work, use, taken=0.0):
    cell = making.measurement().trial.cell
    return accounting(
        Accounting(
            cell=cell,
            baseline=A,
            system=B,
            ratio=work * use,
            by_work=work,
            by_use=use,
            taken=taken,
            blocks=3,
        )
    )


def test_the_reviews_run_is_told_apart():
    """TPS −38.9 %: CPU per transaction ×1.29, and 21 % less CPU, which others had."""
    per_transaction = 10.0 / 10_000 / 0.774
    cpu_s = 6110 * per_transaction
    off = making.with_parts(PLAN, design={"disturbance_max": 1.0})
    (found,) = account(611.0, cpu_s, other_cpu=0.8, plan=off)
    assert found.ratio == pytest.approx(0.611, abs=1e-3)
    assert found.by_work == pytest.approx(0.774, abs=1e-3)
    assert found.by_work * found.by_use == pytest.approx(found.ratio)
    assert found.taken == pytest.approx(0.2)
    assert accounting(found) == (
        "server CPU per transaction × 1.29, server CPU in total × 0.789, so throughput × 0.611; "
        f"other processes took 20.0 % more of the host's CPU during the trials of {making.B}"
    )


def test_a_loss_that_is_no_more_than_the_cpu_that_others_took_is_no_verdict():
    (quiet,) = judge(trials(950.0, 9.4), PLAN).verdicts
    assert quiet.word is Word.WORSE
    off = making.with_parts(PLAN, design={"disturbance_max": 1.0})
    (verdict,) = judge(trials(950.0, 9.4, other_cpu=0.4), off).verdicts
    assert verdict.word is Word.UNDECIDED
    assert (verdict.low, verdict.high) == pytest.approx((0.95, 0.95 / 0.94), rel=1e-3)
    assert "cpu-taken" in {one.kind for one in verdict.reasons}
    assert gate((verdict,), 0.03).count(GateOutcome.SLOWER) == 0
    (worse,) = judge(trials(700.0, 9.4, other_cpu=0.4), off).verdicts
    assert worse.word is Word.WORSE, "more than the CPU that it lost"


def test_others_are_named_only_where_the_system_used_less_cpu():
    assert "per transaction × 1.25, server CPU in total × 0.9" in said(0.8, 0.9, 0.0)
    assert "other processes took 10.0" in said(1.0, 0.8, 0.1)
    assert "other processes" not in said(0.8, 1.1, 0.2)


def test_parts_too_small_to_speak_of_are_not():
    assert said(1.004, 0.996) is None


def test_nothing_is_said_where_the_servers_cpu_is_unknown():
    assert account(900.0, 0.0) == ()
    assert len(account(900.0, 9.0)) == 1


def test_nothing_is_said_of_latency_at_a_rate():
    plan = making.with_parts(PLAN, load=LoadPlan(rates=("1000",), connections=64))
    judged = judge([at_rate(system, block) for block in range(3) for system in (A, B)], plan)
    assert [verdict.metric for verdict in judged.verdicts] == ["latency_ms_p99"]
    assert judged.accountings == ()
