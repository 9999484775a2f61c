from __future__ import annotations

from dbdyno.plan.plan import cells
from dbdyno.report.charts.curve import latency_throughput
from dbdyno.report.rows import ladders
from support import making
from support.chart_checks import assert_sound, rows
from support.made_run import Run, run

SYSTEMS = (making.A, making.B)


def test_points_join_throughput_and_the_highest_percentile_that_all_have(made: Run) -> None:
    figure = latency_throughput(ladders(cells(made.plan)), SYSTEMS, made.judgement)
    assert figure is not None
    found = rows(figure)
    assert [row["load"] for row in found] == ["1", "8", "1", "8"]
    values = {v.value for v in made.judgement.values if v.metric == "latency_ms_p99"}
    assert {row["latency"] for row in found} == values
    assert "p99 latency, ms" in figure.description
    assert_sound(figure)


def test_a_lower_percentile_is_taken_where_requests_are_few() -> None:
    plan = making.plan(threads=(1, 8))
    few = [making.measurement(threads=n, tps=tps) for n, tps in ((1, 300.0), (8, 5000.0))]
    figure = latency_throughput(ladders(cells(plan)), SYSTEMS, run(plan, few).judgement)
    assert figure is not None
    assert "p95 latency, ms" in figure.description


def test_with_many_systems_only_the_baseline_is_labelled() -> None:
    systems = ("a", "b", "c")
    plan = making.plan(systems=systems, threads=(1, 2, 4))
    trials = [making.measurement(s, threads=n) for s in systems for n in (1, 2, 4)]
    figure = latency_throughput(ladders(cells(plan)), systems, run(plan, trials).judgement)
    assert figure is not None
    (labels,) = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "text"]
    assert labels["transform"] == [{"filter": {"field": "system", "equal": "a"}}]
    assert_sound(figure)


def test_one_level_is_no_curve() -> None:
    one = run(making.plan(), [making.measurement()])
    assert latency_throughput(ladders(cells(one.plan)), SYSTEMS, one.judgement) is None
