"""Was the machine alone, the same and not held back? Each limit from both sides."""

from __future__ import annotations

import re

import pytest

from dbdyno.judge.checks import disturbance, machine
from dbdyno.judge.finding import Level
from dbdyno.measurement.parts import Probe, TrialEvidence
from support import making
from support.making import A, B

PLAN = making.plan()
OF_A_TRIAL = (
    machine.throttled,
    machine.overheated,
    machine.memory_pressure,
    machine.swapping,
)


def watched(second: int = 5, **fields):
    """A trial of which one watched second (of 2 + 10) says something else."""
    made = making.measurement()
    samples = list(made.watch)
    samples[second] = samples[second].model_copy(update=fields)
    return making.changed(made, watch=tuple(samples))


@pytest.mark.parametrize("check", OF_A_TRIAL)
def test_an_ordinary_trial_is_not_held_back(check):
    assert check(making.measurement(), PLAN) is None
    assert check(making.changed(making.measurement(), watch=()), PLAN) is None


def test_one_period_of_a_quota_is_enough():
    finding = machine.throttled(watched(throttled_per_s=3.0), PLAN)
    assert (finding.level, finding.check) == (Level.DOUBTFUL, "throttled")
    assert finding.evidence == "a CPU quota was used up 3 times in the window (limit 0)"
    assert machine.throttled(watched(second=0, throttled_per_s=3.0), PLAN) is None


def test_heat_is_doubtful():
    finding = machine.overheated(watched(thermal_events_per_s=2.0), PLAN)
    assert finding.level is Level.DOUBTFUL
    assert "2 times" in finding.evidence
    once = machine.overheated(watched(thermal_events_per_s=1.0), PLAN)
    assert "1 time in" in once.evidence


@pytest.mark.parametrize(
    ("share", "level"), [(0.0, None), (0.009, Level.NOTE), (0.2, Level.DOUBTFUL)]
)
def test_waiting_for_memory_of_one_second_in_ten(share, level):
    finding = machine.memory_pressure(watched(pressure_memory_some=share), PLAN)
    assert (finding and finding.level) == level
    assert finding is None or f"in {share * 10:.2f} % of the window" in finding.evidence


def test_waiting_for_memory_counts_by_time_not_by_samples():
    made = watched(second=4, at_s=4.5, length_s=5.0, pressure_memory_some=0.4)
    made = making.changed(made, watch=(*made.watch[:2], made.watch[4], *made.watch[7:]))
    finding = machine.memory_pressure(made, PLAN)
    assert "in 20.00 % of the window" in finding.evidence  # two of ten seconds


@pytest.mark.parametrize(("pages", "level"), [(0, None), (9, Level.NOTE), (10, Level.DOUBTFUL)])
def test_swap(pages, level):
    finding = machine.swapping(watched(swap_pages_per_s=float(pages)), PLAN)
    assert (finding and finding.level) == level


def clocked(*clocks: float):
    made = []
    for block, mhz in enumerate(clocks):
        one = making.measurement(block=block)
        samples = tuple(s.model_copy(update={"cpu_mhz": mhz}) for s in one.watch)
        made.append(making.changed(one, watch=samples))
    return made


@pytest.mark.parametrize(
    ("last", "level", "limit"),
    [(2970.0, None, 0), (2880.0, Level.NOTE, 3), (2400.0, Level.DOUBTFUL, 10)],
)
def test_a_slower_clock_is_reported_from_three_percent_on(last, level, limit):
    found = list(machine.uneven_clock(clocked(3000, 3000, 3000, last), PLAN))
    assert [finding.level for finding in found] == ([level] if level else [])
    if found:
        off = last / 3000 - 1
        assert found[0].evidence == (
            "in 1 of 4 trials the cores' clock was off its usual 3000 MHz by more than "
            f"{limit} %, at worst by {off * 100:+.1f} %"
        )


def test_machines_have_clocks_of_their_own():
    """Three machines that differ, and the last trial of one slower than its others."""
    clocks = (3000, 2400, 3600, 3000, 2400, 3600, 3000, 2400, 3600, 3000, 2400, 3000)
    made = clocked(*clocks)
    for number, one in enumerate(made):
        made[number] = making.changed(one, machine=("a", "b", "c")[number % 3])
    (found,) = machine.uneven_clock(made, PLAN)
    assert found.level is Level.DOUBTFUL
    assert found.evidence.startswith("in 1 of 4 trials the cores' clock was off its usual 3600 MHz")
    assert list(machine.uneven_clock(made[:-1], PLAN)) == []


def test_two_trials_have_no_usual_clock():
    assert list(machine.uneven_clock(clocked(3000, 2000), PLAN)) == []


@pytest.mark.parametrize(
    ("cores", "level", "share"),
    [
        (0.0, None, ""),
        (0.019, None, ""),
        (0.03, Level.NOTE, "0.75 %"),
        (0.079, Level.NOTE, "1.97 %"),
        (0.09, Level.DOUBTFUL, "2.25 %"),
    ],
)
def test_stolen_time_is_noted_from_half_a_percent_and_doubtful_from_two(cores, level, share):
    # of four cores: 0.02 are 0.5 %, 0.08 are 2 %
    found = machine.steal(making.measurement(steal=cores), PLAN)
    assert (found and found.level) == level
    assert found is None or found.evidence.startswith(f"{share} of the host's CPU was stolen")


@pytest.mark.parametrize(
    ("cores", "level", "limit"),
    [(0.0, None, 0), (0.07, None, 0), (0.2, Level.NOTE, 2), (1.0, Level.DOUBTFUL, 10)],
)
def test_other_processes(cores, level, limit):
    found = machine.other_processes(making.measurement(other_cpu=cores), PLAN)
    assert (found and found.level) == level
    if found:
        assert f"({cores:.2f} of 4.0 cores; limit {limit} %)" in found.evidence


@pytest.mark.parametrize(("server_cpu_s", "noted"), [(36.4, True), (30.0, False)])
def test_machine_without_idle_cores_is_noted(server_cpu_s, noted):
    # four cores for 10 s; the generator takes 2 s, the server almost all the rest
    made = making.measurement(server_cpu_s=server_cpu_s, cpu_share_max=0.2)
    found = machine.shared_machine(made, PLAN)
    assert (found is not None) == noted
    if found:
        assert found.level is Level.NOTE
        assert found.evidence.startswith("generator and server share the machine: 4.0 %")


def test_ten_idle_seconds_in_one_sample_are_a_sixth_of_a_minute():
    made = making.measurement(window_s=60, warmup_s=0, server_cpu_s=228.0, cpu_share_max=0.2)
    idle = {"host_cpu_user": 0.0, "host_cpu_system": 0.0, "host_cpu_idle": 4.0}
    still = made.watch[0].model_copy(update={"at_s": 5.0, "length_s": 10.0, **idle})
    assert machine.shared_machine(made, PLAN) is not None
    made = making.changed(made, watch=(still, *made.watch[10:]))
    assert machine.shared_machine(made, PLAN) is None


def test_without_a_watch_nothing_is_claimed_of_the_machine():
    blind = making.measurement(steal=1, other_cpu=2).model_copy(update={"watch": ()})
    assert machine.steal(blind, PLAN) is None
    assert machine.other_processes(blind, PLAN) is None
    assert machine.shared_machine(blind, PLAN) is None


USUAL = (5.00, 5.01, 4.99, 5.02, 5.00, 4.98)


def probed(cpu_ms=USUAL, sync_ms=(0.40, 0.42, 0.38, 0.41, 0.40, 0.39)):
    """Three blocks of A and B, their arms' probes in that order."""
    made = making.pairs((1.0,) * 3)
    return [
        making.changed(one, evidence=TrialEvidence(probe=Probe(cpu_ms=cpu, sync_ms=sync)))
        for one, cpu, sync in zip(made, cpu_ms, sync_ms, strict=True)
    ]


def strays(trials):
    return [(f.system, f.level, str(f.evidence)) for f in machine.probe_strays(trials, PLAN)]


def test_an_even_machine_is_not_reported():
    assert strays(probed()) == []


@pytest.mark.parametrize(
    ("cpu_ms", "level"), [(5.2, None), (5.5, Level.NOTE), (6.5, Level.DOUBTFUL)]
)
def test_slow_arithmetic(cpu_ms, level):
    found = strays(probed(cpu_ms=(*USUAL[:3], cpu_ms, *USUAL[4:])))
    assert [(system, lvl) for system, lvl, _ in found] == ([(B, level)] if level else [])
    if found:
        assert found[0][2].endswith(f": block 2: arithmetic {(cpu_ms / 5.0 - 1) * 100:+.0f} %")


def test_slow_syncs_of_two_arms():
    found = strays(probed(sync_ms=(0.4, 0.4, 0.41, 0.4, 1.0, 2.0)))
    assert [(system, level) for system, level, _ in found] == [
        (A, Level.NOTE),
        (B, Level.DOUBTFUL),
    ]
    assert "block 3: a sync +" in found[0][2]


def test_a_machine_is_held_against_itself():
    """Blocks of a slow machine among those of two fast ones."""
    made = []
    for number, one in enumerate(making.pairs((1.0,) * 9)):
        name = ("fast", "slow", "also fast")[number // 2 % 3]
        probe = Probe(cpu_ms=(8.0 if name == "slow" else 5.0) + 0.01 * (number % 2), sync_ms=0.4)
        made.append(making.changed(one, machine=name, evidence=TrialEvidence(probe=probe)))
    assert strays(made) == []
    assert len(strays([making.changed(one, machine="") for one in made])) == 2


def test_few_probes_say_nothing():
    assert strays(probed(cpu_ms=(5, 9, 5, 5, 5, 5))[:4]) == []


def test_trials_without_a_probe_are_left_out():
    assert strays(making.pairs((1.0,) * 5)) == []


WEIGHT = {None: 0, Level.NOTE: 1, Level.DOUBTFUL: 2, Level.VOID: 3}
# What is watched in one second of ten, up to what, and which part of it the evidence's number is.
SWEPT = {
    "steal": (lambda v: machine.steal(making.measurement(steal=4 * v), PLAN), 0.05),
    "other-processes": (
        lambda v: machine.other_processes(making.measurement(other_cpu=4 * v), PLAN),
        0.2,
    ),
    "disturbed": (
        lambda v: disturbance.disturbed(making.measurement(other_cpu=4 * v), PLAN),
        0.2,
    ),
    "memory-pressure": (
        lambda v: machine.memory_pressure(watched(pressure_memory_some=10 * v), PLAN),
        0.03,
    ),
    "swapping": (lambda v: machine.swapping(watched(swap_pages_per_s=10 * v), PLAN), 2.0),
    "throttled": (lambda v: machine.throttled(watched(throttled_per_s=v), PLAN), 2.0),
    "uneven-clock": (
        lambda v: next(machine.uneven_clock(clocked(3000, 3000, 3000, 3000 * (1 - v)), PLAN), None),
        0.2,
    ),
}


@pytest.mark.parametrize("check", SWEPT)
def test_a_printed_limit_is_the_one_that_gave_the_level(check):
    """The least value of a level lies just above the limit that it prints, and none below does."""
    found_at, most = SWEPT[check]
    step = most / 400
    findings = [(n * step, found_at(n * step)) for n in range(401)]
    begins = {}
    for value, finding in findings:
        if finding is not None:
            begins.setdefault(finding.level, (value, finding.evidence))
    assert begins
    for value, evidence in begins.values():
        number, percent = re.search(r"(?:limit|more than) ([0-9.]+) ?(%?)", evidence).groups()
        limit = float(number) / (100 if percent else 1)
        assert value - step <= limit * (1 + 1e-9)
        assert limit <= value * (1 + 1e-9)
    weights = [WEIGHT[finding and finding.level] for _, finding in findings]
    assert weights == sorted(weights)
