"""Was the machine alone, the same and not held back? Each limit from both sides."""

from __future__ import annotations

import re

import pytest

from dbdyno.judge.checks.disturbance import disturbed
from dbdyno.judge.checks.machine import LIMITS, machine
from dbdyno.judge.finding import Finding, Level
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Probe, TrialEvidence
from dbdyno.report.tell.findings import evidence
from support import making
from support.making import A, B

PLAN = making.plan()
NOTE, DOUBTFUL = Level.NOTE, Level.DOUBTFUL


def watched(second: int = 5, **fields: float) -> Measurement:
    """A trial of which one watched second (of 2 + 10) says something else."""
    made = making.measurement()
    samples = list(made.watch)
    samples[second] = samples[second].model_copy(update=fields)
    return making.changed(made, watch=tuple(samples))


def clocked(*clocks: float) -> list[Measurement]:
    made = []
    for block, mhz in enumerate(clocks):
        one = making.measurement(block=block)
        samples = tuple(s.model_copy(update={"cpu_mhz": mhz}) for s in one.watch)
        made.append(making.changed(one, watch=samples))
    return made


USUAL = (5.00, 5.01, 4.99, 5.02, 5.00, 4.98)


def probed(
    cpu_ms: tuple[float, ...] = USUAL,
    sync_ms: tuple[float, ...] = (0.40, 0.42, 0.38, 0.41, 0.40, 0.39),
) -> list[Measurement]:
    """Three blocks of A and B, their arms' probes in that order."""
    made = making.pairs((1.0,) * 3)
    return [
        making.changed(one, evidence=TrialEvidence(probe=Probe(cpu_ms=cpu, sync_ms=sync)))
        for one, cpu, sync in zip(made, cpu_ms, sync_ms, strict=True)
    ]


def idle(server_cpu_s: float) -> list[Measurement]:
    """Four cores for 10 s; the generator takes 2 s, the server almost all the rest."""
    return [making.measurement(server_cpu_s=server_cpu_s, cpu_share_max=0.2)]


def seen(trials: list[Measurement]) -> tuple[Level | None, str, float]:
    """The level of the only finding, its only quantity and that quantity's value."""
    found = list(machine(trials, PLAN))
    if not found:
        return None, "", 0
    (finding,) = found
    assert (finding.check, len(finding.values["rows"])) == ("machine", 1)
    row = finding.values["rows"][0]
    return finding.level, row["what"], row["value"]


NOTHING = (None, "", 0)


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([making.measurement()], NOTHING),
        ([making.measurement(steal=1, other_cpu=2).model_copy(update={"watch": ()})], NOTHING),
        # of four cores: 0.02 are 0.5 %, 0.08 are 2 %
        ([making.measurement(steal=0.019)], NOTHING),
        ([making.measurement(steal=0.03)], (NOTE, "steal", 0.0075)),
        ([making.measurement(steal=0.09)], (DOUBTFUL, "steal", 0.0225)),
        ([making.measurement(other_cpu=0.07)], NOTHING),
        ([making.measurement(other_cpu=0.2)], (NOTE, "others", 0.05)),
        ([making.measurement(other_cpu=1.0)], (DOUBTFUL, "others", 0.25)),
        ([making.unseen(making.measurement(other_cpu=1.0))], NOTHING),  # the server may be it
        (idle(36.4), (NOTE, "busy", 0.96)),
        (idle(30.0), NOTHING),
        ([watched(throttled_per_s=3.0)], (DOUBTFUL, "quota", 3)),
        ([watched(second=0, throttled_per_s=3.0)], NOTHING),
        ([watched(thermal_events_per_s=1.0)], (DOUBTFUL, "heat", 1)),
        ([watched(pressure_memory_some=0.009)], (NOTE, "memory", 0.0009)),
        ([watched(pressure_memory_some=0.2)], (DOUBTFUL, "memory", 0.02)),
        ([watched(swap_pages_per_s=9.0)], (NOTE, "swap", 0.9)),
        ([watched(swap_pages_per_s=10.0)], (DOUBTFUL, "swap", 1)),
        (clocked(3000, 3000, 3000, 2970), NOTHING),
        (clocked(3000, 3000, 3000, 2880), (NOTE, "clock", -0.04)),
        (clocked(3000, 3000, 3000, 2400), (DOUBTFUL, "clock", -0.2)),
        (clocked(3000, 2000), NOTHING),  # two have no usual clock
        (probed(), NOTHING),
        (probed(cpu_ms=(*USUAL[:3], 5.2, *USUAL[4:])), NOTHING),
        (probed(cpu_ms=(*USUAL[:3], 5.5, *USUAL[4:])), (NOTE, "arithmetic", 0.1)),
        (probed(cpu_ms=(*USUAL[:3], 6.5, *USUAL[4:])), (DOUBTFUL, "arithmetic", 0.3)),
        (probed(cpu_ms=(5, 9, 5, 5, 5, 5))[:4], NOTHING),  # too few for a deviation
        (making.pairs((1.0,) * 5), NOTHING),
    ],
)
def test_each_quantity_has_its_limits(trials, expected) -> None:
    level, what, value = expected
    assert seen(trials) == (level, what, pytest.approx(value, rel=0.01))


def test_a_trial_has_one_finding_with_a_clause_for_each_quantity() -> None:
    made = making.measurement(steal=0.03, other_cpu=1.0)
    (found,) = machine([made, making.measurement(block=1)], PLAN)
    assert (found.trial, found.level) == (made.trial.key, DOUBTFUL)
    assert [row["what"] for row in found.values["rows"]] == ["steal", "others"]
    assert not list(machine([making.changed(made, failure="it died")], PLAN))


def test_quantities_count_by_time_not_by_samples() -> None:
    made = watched(second=4, at_s=4.5, length_s=5.0, pressure_memory_some=0.4)
    made = making.changed(made, watch=(*made.watch[:2], made.watch[4], *made.watch[7:]))
    assert seen([made])[1:] == ("memory", pytest.approx(0.2))  # two of ten seconds
    long = making.measurement(window_s=60, warmup_s=0, server_cpu_s=228.0, cpu_share_max=0.2)
    still = {"host_cpu_user": 0.0, "host_cpu_system": 0.0, "host_cpu_idle": 4.0}
    first = long.watch[0].model_copy(update={"at_s": 5.0, "length_s": 10.0, **still})
    assert seen([long])[1] == "busy"
    assert seen([making.changed(long, watch=(first, *long.watch[10:]))])[1] != "busy"


def test_a_probe_is_about_all_trials_of_its_arm() -> None:
    first = probed(cpu_ms=(*USUAL[:3], 6.5, *USUAL[4:]))
    second = [
        making.with_trial(one, cell=one.trial.cell.model_copy(update={"threads": 16}))
        for one in making.pairs((1.0,) * 3)
    ]
    found = list(machine([*first, *second], PLAN))
    assert [(one.system, one.trial.split("/")[0]) for one in found if one.trial] == [(B, "1")] * 2


def test_slow_syncs_of_two_arms() -> None:
    found = list(machine(probed(sync_ms=(0.4, 0.4, 0.41, 0.4, 1.0, 2.0)), PLAN))
    assert [(one.system, one.level) for one in found] == [(A, NOTE), (B, DOUBTFUL)]


def test_a_machine_is_held_against_itself() -> None:
    """Three machines that differ in clock and probe, and the last trial of one slower."""
    made = []
    clocks = clocked(3000, 2400, 3600, 3000, 2400, 3600, 3000, 2400, 3600, 3000, 2400, 3000)
    for number, one in enumerate(clocks):
        made.append(making.changed(one, machine="abc"[number % 3]))
    (found,) = machine(made, PLAN)
    assert found.trial == made[-1].trial.key
    assert list(machine(made[:-1], PLAN)) == []
    probes = []
    for number, one in enumerate(making.pairs((1.0,) * 9)):
        name = ("fast", "slow", "also fast")[number // 2 % 3]
        probe = Probe(cpu_ms=(8.0 if name == "slow" else 5.0) + 0.01 * (number % 2), sync_ms=0.4)
        probes.append(making.changed(one, machine=name, evidence=TrialEvidence(probe=probe)))
    assert list(machine(probes, PLAN)) == []
    assert len(list(machine([making.changed(one, machine="") for one in probes], PLAN))) == 6


WEIGHT = {None: 0, Level.NOTE: 1, Level.DOUBTFUL: 2, Level.VOID: 3}


def of_machine(*trials: Measurement) -> Finding | None:
    return next(machine(trials, PLAN), None)


# What is watched in one second of ten, up to what, and which part of it the evidence's number is.
SWEPT = {
    "steal": (lambda v: of_machine(making.measurement(steal=4 * v)), 0.05),
    "others": (lambda v: of_machine(making.measurement(other_cpu=4 * v)), 0.2),
    "disturbed": (lambda v: disturbed(making.measurement(other_cpu=4 * v), PLAN), 0.2),
    "memory": (lambda v: of_machine(watched(pressure_memory_some=10 * v)), 0.03),
    "swap": (lambda v: of_machine(watched(swap_pages_per_s=10 * v)), 2.0),
    "quota": (lambda v: of_machine(watched(throttled_per_s=v)), 2.0),
    "clock": (lambda v: of_machine(*clocked(3000, 3000, 3000, 3000 * (1 - v))), 0.2),
}


@pytest.mark.parametrize("quantity", SWEPT)
def test_a_printed_limit_is_the_one_that_gave_the_level(quantity: str) -> None:
    """The least value of a level lies just above the limit that it prints, and none below does."""
    assert quantity in LIMITS or quantity == "disturbed"
    found_at, most = SWEPT[quantity]
    step = most / 200
    findings = [(n * step, found_at(n * step)) for n in range(201)]
    begins: dict[Level, tuple[float, str]] = {}
    for value, finding in findings:
        if finding is not None:
            begins.setdefault(finding.level, (value, str(evidence(finding))))
    assert begins
    for value, said in begins.values():
        printed = re.search(r"limit ([0-9.]+) ?(%?)", said)
        limit = float(printed[1]) / (100 if printed[2] else 1)
        assert value - step <= limit * (1 + 1e-9)
        assert limit <= value * (1 + 1e-9)
    weights = [WEIGHT[finding.level if finding else None] for _, finding in findings]
    assert weights == sorted(weights)
