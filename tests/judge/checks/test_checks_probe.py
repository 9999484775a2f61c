"""The machine before each arm: what strays by three deviations and by enough to matter is told."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks import machine
from dbdyno.judge.finding import Level
from dbdyno.measurement.parts import Probe, TrialEvidence
from support import making
from support.making import A, B

PLAN = making.plan()
USUAL = (5.00, 5.01, 4.99, 5.02, 5.00, 4.98)


def probed(cpu_ms=USUAL, sync_ms=(0.40, 0.42, 0.38, 0.41, 0.40, 0.39)):
    """Three blocks of A and B, their arms' probes in that order."""
    made = making.pairs((1.0,) * 3)
    return [
        making.changed(one, evidence=TrialEvidence(probe=Probe(cpu_ms=cpu, sync_ms=sync)))
        for one, cpu, sync in zip(made, cpu_ms, sync_ms, strict=True)
    ]


def told(trials):
    return [(f.system, f.level, str(f.evidence)) for f in machine.probe_strays(trials, PLAN)]


def test_an_even_machine_is_not_told():
    assert told(probed()) == []


@pytest.mark.parametrize(
    ("cpu_ms", "level"), [(5.2, None), (5.5, Level.NOTE), (6.5, Level.DOUBTFUL)]
)
def test_slow_arithmetic(cpu_ms, level):
    found = told(probed(cpu_ms=(*USUAL[:3], cpu_ms, *USUAL[4:])))
    assert [(system, lvl) for system, lvl, _ in found] == ([(B, level)] if level else [])
    if found:
        assert found[0][2].endswith(f": block 2: arithmetic {cpu_ms / 5.0 - 1:+.0%}")


def test_slow_syncs_of_two_arms():
    found = told(probed(sync_ms=(0.4, 0.4, 0.41, 0.4, 1.0, 2.0)))
    assert [(system, level) for system, level, _ in found] == [
        (A, Level.NOTE),
        (B, Level.DOUBTFUL),
    ]
    assert "block 3: a sync +" in found[0][2]


def test_few_probes_say_nothing():
    assert told(probed(cpu_ms=(5, 9, 5, 5, 5, 5))[:4]) == []


def test_trials_without_a_probe_are_left_out():
    assert told(making.pairs((1.0,) * 5)) == []
