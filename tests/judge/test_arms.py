"""Arms against each other: planted rates of systems and settings come out as ratios and words."""

from __future__ import annotations

import pytest

from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import Judgement, judge
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.report.tell.verdicts import sentence
from support import making
from support.making import A, B

OFF, ON = "thread_pool off", "thread_pool on"
RATES = {(A, OFF): 1000.0, (A, ON): 900.0, (B, OFF): 800.0, (B, ON): 1200.0}
BLOCKS = (1.0, 1.01, 0.99, 1.005, 0.995)
"""What a block does to all its trials."""


def plan(*compare: str, systems: tuple[str, ...] = (A, B)) -> Plan:
    return making.plan(
        systems=systems, settings=SettingsPlan(thread_pool=("off", "on")), compare=compare
    )


def trials(
    rates: dict[tuple[str, str], float] = RATES, threads: tuple[int, ...] = (8,)
) -> list[Measurement]:
    return [
        making.measurement(
            system,
            block,
            threads=load,
            tps=rate * moved,
            setting=setting,
            sequence=block * 100 + place,
        )
        for block, moved in enumerate(BLOCKS)
        for place, ((system, setting), rate, load) in enumerate(
            (arm, rate, load) for arm, rate in rates.items() for load in threads
        )
    ]


def ratios(judged: Judgement) -> dict[tuple[str, str, str], float]:
    return {
        (one.cell.setting, one.baseline, one.system): round(one.estimate.ratio or 0, 3)
        for one in judged.verdicts
    }


def test_systems_under_each_setting_unless_asked_otherwise() -> None:
    assert ratios(judge(trials(), plan())) == {(OFF, A, B): 0.8, (ON, A, B): 1.333}


def test_a_system_with_its_pool_against_another_without() -> None:
    judged = judge(trials(), plan(f"{B}, {ON} against {A}, {OFF}", f"{B} against {A}"))
    assert ratios(judged) == {
        ("default", f"{A}, {OFF}", f"{B}, {ON}"): 1.2,
        (OFF, A, B): 0.8,
        (ON, A, B): 1.333,
    }


def test_the_settings_of_each_system() -> None:
    judged = judge(trials(), plan(f"{ON} against {OFF}"))
    assert ratios(judged) == {
        ("default", f"{A}, {OFF}", f"{A}, {ON}"): 0.9,
        ("default", f"{B}, {OFF}", f"{B}, {ON}"): 1.5,
    }


def test_one_system_is_compared_over_its_settings() -> None:
    alone = {arm: rate for arm, rate in RATES.items() if arm[0] == B}
    judged = judge(trials(alone), plan(systems=(B,)))
    (verdict,) = judged.verdicts
    assert sentence(verdict) == (
        "thread_pool on is faster than thread_pool off: TPS +50.0 % [+50.0, +50.0], 5 blocks"
    )
    assert judged.accounting(verdict) is not None
    assert judged.estimate(verdict.cell, OFF, ON, PRIMARY.name) == verdict.estimate


def test_a_void_arm_takes_only_its_own_verdicts() -> None:
    made = trials()
    broken = [
        making.changed(one, engine=one.engine.model_copy(update={"cpu_share_max": 0.95}))
        if (one.trial.system, one.trial.cell.setting) == (A, ON)
        else one
        for one in made
    ]
    judged = judge(broken, plan(f"{B}, {ON} against {A}, {OFF}", f"{ON} against {OFF}"))
    words = {verdict.system: verdict.word for verdict in judged.verdicts}
    assert words == {
        f"{B}, {ON}": Word.BETTER,
        f"{A}, {ON}": Word.VOID,
    }
    assert any(finding.level is Level.VOID for finding in judged.findings)


def test_the_cells_of_one_comparison_hold_together() -> None:
    two = judge(trials(threads=(8, 16)), plan(f"{ON} against {OFF}"))
    of_b: list[Verdict] = [one for one in two.verdicts if one.system == f"{B}, {ON}"]
    assert [(one.cell.threads, one.cells) for one in of_b] == [(8, 2), (16, 2)]
    whole = next(one for one in two.summaries if one.system == f"{B}, {ON}")
    assert whole.ratio == pytest.approx(1.5, rel=1e-3)
    assert whole.cells == 2


def test_systems_have_a_mean_ratio_for_each_setting() -> None:
    judged = judge(trials(threads=(8, 16)), plan())
    means = {(one.workload, one.setting): round(one.ratio or 0, 3) for one in judged.summaries}
    assert means == {
        ("", ""): pytest.approx(1.033, abs=0.001),
        ("oltp_read_write", OFF): 0.8,
        ("oltp_read_write", ON): 1.333,
    }
