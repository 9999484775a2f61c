from __future__ import annotations

from dbdyno.judge.rate_limit import BlockLimit, RateLimit, RateSearch
from dbdyno.plan.plan import cells
from dbdyno.report.charts.curve import latency_throughput, limits
from dbdyno.report.rows import ladders
from dbdyno.stats.open_loop import Point, RateSide
from support import making
from support.chart_checks import assert_sound, panels, rows
from support.made_run import Run, run

SYSTEMS = (making.A, making.B)


def test_points_join_throughput_and_the_highest_percentile_that_all_have(made: Run) -> None:
    figure = latency_throughput(ladders(cells(made.plan)), SYSTEMS, made.judgement)
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
    assert "p95 latency, ms" in figure.description
    one = run(making.plan(), [making.measurement()])
    assert latency_throughput(ladders(cells(one.plan)), SYSTEMS, one.judgement) is None


def test_with_many_systems_only_the_baseline_is_labelled() -> None:
    systems = ("a", "b", "c")
    plan = making.plan(systems=systems, threads=(1, 2, 4))
    trials = [making.measurement(s, threads=n) for s in systems for n in (1, 2, 4)]
    figure = latency_throughput(ladders(cells(plan)), systems, run(plan, trials).judgement)
    (labels,) = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "text"]
    assert labels["transform"] == [{"filter": {"field": "system", "equal": "a"}}]
    assert_sound(figure)


def limit(system: str, rate_per_s: float | None) -> RateLimit:
    points = (
        Point(rate_per_s=500, latency_ms=5, sustained=True),
        Point(rate_per_s=1000, latency_ms=400, sustained=False),
        Point(rate_per_s=1500, latency_ms=None, sustained=False),
    )
    block = BlockLimit(block=0, side=RateSide.BETWEEN, rate_per_s=rate_per_s, points=points)
    low, high = (None, None) if rate_per_s is None else (rate_per_s * 0.9, rate_per_s * 1.1)
    return RateLimit(
        system=system, rate_per_s=rate_per_s, low=low, high=high, blocks=1, by_block=(block,)
    )


def search(workload: str = "oltp_read_write") -> RateSearch:
    return RateSearch(
        workload=workload,
        setting="default",
        connections=64,
        metric="latency_ms_p99",
        limit_ms=20,
        limits=(limit(making.A, 700.0), limit(making.B, None)),
        verdicts=(),
    )


def test_every_trial_is_a_point_and_every_answer_a_line() -> None:
    figure = limits([search()], SYSTEMS)
    found = rows(figure)
    assert [(r["rate"], r["sustained"]) for r in found if "rate" in r] == [
        (500, True),
        (1000, False),
    ] * 2
    assert [(r["system"], r["at"]) for r in found if "at" in r] == [(making.A, 700.0)]
    assert [r["limit"] for r in found if "limit" in r] == [20]
    assert "p99 within 20 ms, mysql:5.7.22: 700.0/s; " in figure.description
    assert "mysql:8.0.15: —" in figure.description
    assert_sound(figure)


def test_every_workload_has_its_panel_and_no_search_no_chart() -> None:
    figure = limits([search(), search("oltp_point_select")], SYSTEMS)
    assert len(panels(figure)) == 2
    assert_sound(figure)
    assert limits([], SYSTEMS) is None
