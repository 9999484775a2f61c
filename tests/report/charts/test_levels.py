from __future__ import annotations

import pytest

from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import cells
from dbdyno.report.charts.levels import latency, throughput
from dbdyno.report.parts import Figure
from dbdyno.report.rows import ladders
from support import making
from support.chart_checks import assert_sound, rows, titles
from support.made_run import Run, run

SYSTEMS = (making.A, making.B)


def chart(made: Run) -> Figure:
    figure = throughput(ladders(cells(made.plan)), SYSTEMS, made.judgement)
    assert figure is not None
    return figure


def test_the_points_are_the_judgements_values_with_their_intervals(made: Run) -> None:
    figure = chart(made)
    found = rows(figure)
    judged = [value for value in made.judgement.values if value.metric == PRIMARY.name]
    judged.sort(key=lambda value: (value.system, value.cell.threads))
    assert [(r["value"], r["low"], r["high"]) for r in found] == [
        (v.value, v.low, v.high) for v in judged
    ]
    assert [row["place"] for row in found] == pytest.approx([-0.035, 0.965, 0.035, 1.035])
    assert "8 threads, mysql:8.0.15: 772.5" in figure.description


def test_throughput_begins_at_zero_in_every_layer(made: Run) -> None:
    for layer in chart(made).spec["layer"]:
        assert layer["encoding"]["y"]["scale"]["zero"] is True


def test_workloads_get_panels_of_their_own() -> None:
    plan = making.plan(workloads=("oltp_read_write", "oltp_point_select"))
    both = [making.measurement(workload=workload.label) for workload in plan.workloads]
    figure = chart(run(plan, both))
    assert titles(figure) == ["oltp_read_write", "oltp_point_select"]
    assert_sound(figure)


def test_a_scalability_law_is_drawn_as_a_band_behind_the_points() -> None:
    levels = (1, 2, 4, 8, 16, 32, 64)
    plan = making.plan(threads=levels, systems=(making.A,))
    trials = [
        making.measurement(
            block=block, threads=n, tps=300 * n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1)) * noise
        )
        for block, noise in enumerate((0.99, 1.0, 1.01))
        for n in levels
    ]
    made = run(plan, trials)
    figure = chart(made)
    fit = [row for row in rows(figure) if row.get("fit")]
    (fitted,) = made.judgement.scalability
    assert fitted.law is not None
    assert len(fit) == len(fitted.law.curve)
    assert "fitted scalability law" in figure.note
    assert figure.spec["layer"][0]["mark"]["type"] == "area"
    assert_sound(figure)


def test_percentiles_have_a_panel_each_and_a_row_for_each_ladder() -> None:
    plan = making.plan(workloads=("oltp_read_write", "oltp_delete"))
    both = [making.measurement(workload=w.label, tps=2000) for w in plan.workloads]
    figure = latency(ladders(cells(plan)), SYSTEMS, run(plan, both).judgement)
    assert figure is not None
    assert figure.spec["columns"] == 3
    assert titles(figure)[:4] == [
        "oltp_read_write: p50",
        "oltp_read_write: p95",
        "oltp_read_write: p99",
        "oltp_delete: p50",
    ]
    assert_sound(figure)


def test_a_percentile_without_enough_requests_has_no_panel() -> None:
    plan = making.plan()
    few = run(plan, [making.measurement(tps=300)])
    figure = latency(ladders(cells(plan)), SYSTEMS, few.judgement)
    assert figure is not None
    assert titles(figure) == ["p50", "p95"]
    none = run(plan, [making.measurement(histograms=False, tps=1)])
    assert latency(ladders(cells(plan)), SYSTEMS, none.judgement) is None
