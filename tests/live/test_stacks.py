"""Stacks of real servers under load: their threads by groups, their functions by name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.workload import WorkloadPlan
from support.real_run import measured_alone
from support.real_server import small

pytestmark = pytest.mark.live
MYSQL, POSTGRES = "mysql:8.0.33", "postgres:18.6"


def plan(*systems: str, window_s: float = 4) -> Plan:
    return Plan(
        systems=small(*systems),
        workloads=(WorkloadPlan(name="oltp_read_only"),),
        dataset=DatasetPlan(tables=2, rows=1000),
        load=LoadPlan(threads=(4,)),
        trial=TrialPlan(warmup_s=1, window_s=window_s),
        design=DesignPlan(blocks=1, disturbance_max=1.0),
        procedure=ProcedurePlan(sample_stacks=True),
    )


def check(measured: Measurement, function: str) -> None:
    """Stacks of connections with the function, or the reason why there are none."""
    assert measured.failure is None
    profile = measured.profile
    undone = [step for step in measured.procedure if not step.done]
    if profile is None:
        (step,) = undone
        refused = "refused" in step.detail or "not installed" in step.detail
        assert refused, step.detail
        assert shutil.which("perf") is None or "perf is refused" in step.detail
        return
    assert undone == []
    connections = [stack for stack in profile.stacks if stack.startswith("connection;")]
    assert any(function in stack.split(";") for stack in connections), list(profile.stacks)[:20]
    assert profile.events > 0
    assert 0 < profile.sampler_cpu_s < 60
    samples = sum(profile.stacks.values())
    assert samples >= 5
    if profile.sampler == "perf":
        sampled_s = samples * profile.period_us / 1e6
        assert 0.2 < sampled_s / (measured.server.cpu_s * profile.window_s / measured.window_s) < 2
    assert not any("/" in name for stack in profile.stacks for name in stack.split(";")[1:])


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[str, Measurement]]:
    with measured_alone(plan(MYSQL, POSTGRES), 2) as trials:
        yield {one.trial.system: one for one in trials}


@pytest.mark.parametrize(
    ("system", "function"), [(MYSQL, "do_command"), (POSTGRES, "PostgresMain")]
)
def test_a_trial_has_the_stacks_of_its_connections(
    measured: dict[str, Measurement], system: str, function: str
) -> None:
    check(measured[system], function)


@pytest.mark.nightly  # its window is long, as gdb reads symbols at each look
def test_gdb_takes_the_place_of_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in Path("/usr/bin").iterdir():
        if program.name != "perf":
            (tmp_path / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    with measured_alone(plan(MYSQL, window_s=30), 1) as (trial,):
        check(trial, "do_command")
        if shutil.which("gdb") is not None:
            assert trial.profile is not None
            assert trial.profile.sampler == "gdb"
