"""Limitations of a run."""

from __future__ import annotations

import re

import pytest

from dbdyno.judge.judgement import judge
from dbdyno.language.words import PARTED
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import NetworkPlan, Plan
from dbdyno.plan.template import lua, read
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.formats import markdown
from dbdyno.report.sections.limits import certified, limits
from dbdyno.report.sections.method import how_measured
from dbdyno.report.story import story_of
from support import making
from support.made_certificate import MACHINE, certificate
from support.made_run import Run, run


def sentences(made: Run) -> str:
    return "\n".join(limits(made.plan, made.measurements, made.judgement))


def test_a_small_incomplete_run_says_what_it_cannot_show() -> None:
    plan = making.plan(threads=(1, 8), blocks=10)
    trials = making.pairs((1.0, 1.0))
    trials += making.pairs((1.0,) * 3, failure="the server went away")[4:]
    text = sentences(run(plan, trials, complete=False))
    for limit in (
        "no A/A control",
        "2 cells are correct together",
        "same server start",
        "too short",
        "2 starts of each system",
        "up to 78 %",
        "loopback",
        "fits into the buffer pool (256 MiB)",
        "hides stalls",
    ):
        assert limit in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "latencies contain no network time"),
        (
            {"network": NetworkPlan(client_ms=0.5)},
            "no network time except the added delay of 0.5 ms",
        ),
        ({"fleet": FleetPlan(generators=2)}, ""),
    ],
)
def test_the_network_is_said_that_was_between_load_and_server(
    asked: dict[str, object], said: str
) -> None:
    plan = making.plan(blocks=3).model_copy(update=asked)
    text = sentences(run(plan, making.pairs((1.0,) * 3)))
    assert said in text
    assert text.count("latencies contain") == bool(said)


def test_several_machines_are_not_called_one_and_unseen_processes_are_named() -> None:
    plan, trials = making.plan(blocks=3), making.pairs((1.0,) * 3)
    apart = [making.changed(one, machine=f"m{one.trial.block}") for one in trials]
    text = sentences(run(plan, apart))
    assert "used these machines only: with other processors" in text
    assert "used one machine" not in text
    assert "could not be watched" not in text
    boxed = [making.unseen(one) if one.trial.system == making.B else one for one in trials]
    assert f"The processes of {making.B} could not be watched" in sentences(run(plan, boxed))


def test_what_is_not_known_of_a_script_is_said_and_of_a_template_it_is_known() -> None:
    made = lua(read("events: {look: {statements: [SELECT 1]}}", "shop.yaml"), "shop.yaml")
    workloads = (
        WorkloadPlan(name="mine.lua", script="function event() end"),
        WorkloadPlan(name="shop.yaml", script=made),
    )
    plan = making.plan(blocks=3).model_copy(update={"workloads": workloads})
    assert (
        "What a script sends is known only while it runs: for mine, neither statements per "
        "transaction nor query plans were checked."
    ) in limits(plan, [], judge([], plan))


MINE = WorkloadPlan(name="mine.lua", script="function event() end")
OWN_TABLES = re.compile(
    "of 100.000 rows|about 95.4 MiB|fits into the buffer pool|larger than the buffer pool"
    "|the default of sysbench"
)


def report(plan: Plan, **settings: str) -> list[str]:
    """The lines of the report of a run with the plan's first workload."""
    workload = plan.workloads[0].label
    trials = making.pairs((1.0,) * 3, workload=workload, settings=settings)
    made = run(plan, trials)
    story = story_of(plan, trials, made.judgement, made.facts)
    return markdown.render(story).splitlines()


OF_MINE = "rows made by mine, of unknown size"


@pytest.mark.parametrize("pool_bytes", [2**20, 2**30])
def test_tables_that_nobody_loaded_are_not_described(pool_bytes: int) -> None:
    plan = making.plan(blocks=3)
    pool = {"innodb_buffer_pool_size": str(pool_bytes)}
    assert len([line for line in report(plan, **pool) if OWN_TABLES.search(line)]) == 4
    lines = report(plan.model_copy(update={"workloads": (MINE,)}), **pool)
    assert [line for line in lines if OWN_TABLES.search(line)] == []
    assert any(f"| {OF_MINE}, buffer pool" in line for line in lines)


def test_beside_the_plans_tables_those_of_scripts_may_not_fit_into_memory() -> None:
    plan = making.plan(blocks=3)
    plan = plan.model_copy(update={"workloads": (*plan.workloads, MINE)})
    lines = report(plan, innodb_buffer_pool_size=str(2**30))
    assert not any("fits into the buffer pool" in line for line in lines)
    rows = "4 tables of 100 000 rows, about 95 MiB"
    assert f"| data | {rows} |" in lines
    assert f"| data | {OF_MINE} |" in lines
    assert any(f"| {rows}; {OF_MINE}, buffer pool 1 024 MiB" in line for line in lines)
    small = report(plan, innodb_buffer_pool_size=str(2**20))
    assert any("is larger than the buffer pool (1 MiB)" in line for line in small)


RESTING = lua(
    read("events: {look: {statements: [SELECT 1], think_time: 5ms}}", "people.yaml"), "people.yaml"
)


@pytest.mark.parametrize(
    ("changed", "saturated", "hides"),
    [
        ({}, True, True),
        ({"load": LoadPlan(threads=(8,), rates=("400",), connections=8)}, True, True),
        ({"load": LoadPlan(rates=("400",), connections=8)}, False, False),
        ({"workloads": (WorkloadPlan(name="people.yaml", script=RESTING),)}, False, True),
        (
            {"workloads": (WorkloadPlan(name="a.lua", script="function thread_run() end"),)},
            False,
            True,
        ),
    ],
)
def test_latency_is_service_time_at_saturation_where_connections_never_rest(
    changed: dict[str, object], saturated: bool, hides: bool
) -> None:
    plan = making.plan(blocks=3).model_copy(update=changed)
    limitations = "\n".join(limits(plan, [], judge([], plan)))
    method = str(how_measured(plan, []).parts)
    fewer = "slower server gets fewer requests" in method
    assert ("kept arriving at a fixed rate" in limitations, fewer) == (saturated, saturated)
    assert ("A closed loop hides stalls" in limitations) is hides


def test_limits_that_do_not_hold_are_not_claimed() -> None:
    plan = making.plan(systems=(making.A, making.B), blocks=10, window_s=60)
    aa = plan.system(making.A).model_copy(update={"label": "control"})
    plan = plan.model_copy(update={"systems": (plan.systems[0], aa)})
    pool = {"innodb_buffer_pool_size": str(2**20)}
    trials = making.pairs((1.0,) * 10, systems=(making.A, "control"), settings=pool)
    text = sentences(run(plan, trials))
    assert "larger than the buffer pool (1 MiB)" in text
    for limit in ("A/A", "verdicts", "same server start", "too short"):
        assert limit not in text


# The generator's certificate.


def test_a_certificate_is_quoted_in_the_protocol_of_the_servers() -> None:
    facts = certificate().facts(MACHINE)
    mysql = making.changed(making.measurement(), certificate=facts)
    pgsql = making.measurement(making.B, settings={"synchronous_commit": "on"})
    pgsql = making.changed(pgsql, certificate=facts)
    of_mysql = f"200{PARTED}000 queries/s in MySQL's protocol"
    of_postgres = f"180{PARTED}000 queries/s in PostgreSQL's protocol"
    for trials, most in (
        ([mysql], of_mysql),
        ([pgsql], of_postgres),
        ([mysql, pgsql], f"{of_mysql}, {of_postgres}"),
    ):
        (said,) = certified(trials)
        assert said.endswith(f" (highest rate {most}).")
    earlier = facts.model_copy(update={"pgsql_queries_per_s": 0.0})
    (said,) = certified([making.changed(pgsql, certificate=earlier)])
    assert said.endswith(f" (highest rate {of_mysql}).")
