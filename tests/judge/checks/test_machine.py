"""Quotas, heat, memory, swap, clock: each limit from both sides, silence where nobody looked."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks import machine
from dbdyno.judge.finding import Level
from support import making

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
    ("share", "level"), [(0.009, None), (0.05, Level.NOTE), (0.2, Level.DOUBTFUL)]
)
def test_waiting_for_memory_of_one_second_in_ten(share, level):
    finding = machine.memory_pressure(watched(pressure_memory_some=share), PLAN)
    assert (finding and finding.level) == level
    assert finding is None or f"in {share / 10:.2%} of the window" in finding.evidence


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
    ("last", "level"), [(2970.0, None), (2880.0, Level.NOTE), (2400.0, Level.DOUBTFUL)]
)
def test_a_slower_clock_is_told_from_three_percent_on(last, level):
    found = list(machine.uneven_clock(clocked(3000, 3000, 3000, last), PLAN))
    assert [finding.level for finding in found] == ([level] if level else [])
    if found:
        off = last / 3000 - 1
        assert found[0].evidence == (
            "in 1 of 4 trials the cores' clock was off its usual 3000 MHz by more than 3%, "
            f"at worst by {off:+.1%}"
        )


def test_two_trials_have_no_usual_clock():
    assert list(machine.uneven_clock(clocked(3000, 2000), PLAN)) == []
