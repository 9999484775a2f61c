"""Did machine and generator leave the server alone? Each limit from both sides."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks import machine
from dbdyno.judge.finding import Level
from support import making

PLAN = making.plan()


@pytest.mark.parametrize(("share", "void"), [(0.2, False), (0.70, False), (0.71, True)])
def test_generator_above_70_percent_of_a_core_is_void(share, void):
    found = machine.client_bound(making.measurement(cpu_share_max=share), PLAN)
    assert (found is not None) == void
    if found:
        assert found.level is Level.VOID
        assert "used 71% of a core (limit 70%, threads in all: 1)" in found.evidence


@pytest.mark.parametrize(
    ("cores", "level", "share"),
    [
        (0.0, None, ""),
        (0.019, None, ""),
        (0.03, Level.NOTE, "0.75%"),
        (0.079, Level.NOTE, "1.97%"),
        (0.09, Level.DOUBTFUL, "2.25%"),
    ],
)
def test_stolen_time_is_noted_from_half_a_percent_and_doubtful_from_two(cores, level, share):
    # of four cores: 0.02 are 0.5 %, 0.08 are 2 %
    found = machine.steal(making.measurement(steal=cores), PLAN)
    assert (found and found.level) == level
    assert found is None or found.evidence.startswith(f"{share} of the host's CPU was stolen")


@pytest.mark.parametrize(
    ("cores", "level"), [(0.0, None), (0.07, None), (0.2, Level.NOTE), (1.0, Level.DOUBTFUL)]
)
def test_other_processes(cores, level):
    found = machine.other_processes(making.measurement(other_cpu=cores), PLAN)
    assert (found and found.level) == level
    if found:
        assert f"({cores:.2f} of 4.0 cores; limit 2%)" in found.evidence


@pytest.mark.parametrize(("server_cpu_s", "noted"), [(36.4, True), (30.0, False)])
def test_machine_without_idle_cores_is_noted(server_cpu_s, noted):
    # four cores for 10 s; the generator takes 2 s, the server almost all the rest
    made = making.measurement(server_cpu_s=server_cpu_s, cpu_share_max=0.2)
    found = machine.shared_machine(made, PLAN)
    assert (found is not None) == noted
    if found:
        assert found.level is Level.NOTE
        assert found.evidence.startswith("generator and server share the machine: 4.0%")


def test_without_a_watch_nothing_is_claimed_of_the_machine():
    blind = making.measurement(steal=1, other_cpu=2).model_copy(update={"watch": ()})
    assert machine.steal(blind, PLAN) is None
    assert machine.other_processes(blind, PLAN) is None
    assert machine.shared_machine(blind, PLAN) is None


def test_only_samples_of_the_window_count():
    made = making.measurement(warmup_s=2, window_s=10)
    samples = made.watch_measured
    assert [sample.at_s for sample in samples] == [second + 0.5 for second in range(2, 12)]
