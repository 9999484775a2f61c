from __future__ import annotations

import pytest

from dbdyno.judge.beside.scalability import CurvePoint, Law, Scalability
from dbdyno.judge.interval import Typical
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import cells
from dbdyno.report.charts.levels import fit_rows, latency, throughput
from dbdyno.report.parts import Figure
from dbdyno.report.rows import ladders
from support import making
from support.chart_checks import assert_sound, rows, titles
from support.made_run import Run, run

SYSTEMS = (making.A, making.B)


def chart(made: Run) -> Figure:
    return throughput(ladders(cells(made.plan)), SYSTEMS, made.judgement)


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
    for layer in figure.spec["layer"]:
        assert layer["encoding"]["y"]["scale"]["zero"] is True


def test_workloads_get_panels_of_their_own() -> None:
    plan = making.plan(workloads=("oltp_read_write", "oltp_point_select"))
    both = [making.measurement(workload=workload.label) for workload in plan.workloads]
    figure = chart(run(plan, both))
    assert titles(figure) == ["oltp_read_write", "oltp_point_select"]
    assert_sound(figure)


def test_a_single_load_level_has_bars_with_their_values() -> None:
    made = run(making.plan(), making.pairs((0.8, 0.8, 0.8)))
    figure = chart(made)
    marks = [layer["mark"]["type"] for layer in figure.spec["layer"]]
    assert (marks[0], marks[-1]) == ("bar", "text")
    assert [(row["system"], row["words"]) for row in rows(figure)] == [
        (making.A, "1\u202f000"),
        (making.B, "800.0"),
    ]
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
    assert len(fit) == len(fitted.law.curve)
    assert "fitted scalability curves" in figure.note
    assert [layer["mark"]["type"] for layer in figure.spec["layer"][:2]] == ["area", "line"]
    assert_sound(figure)


def test_percentiles_have_a_panel_each_and_a_row_for_each_ladder() -> None:
    plan = making.plan(workloads=("oltp_read_write", "oltp_delete"))
    both = [making.measurement(workload=w.label, tps=2000) for w in plan.workloads]
    figure = latency(ladders(cells(plan)), SYSTEMS, run(plan, both).judgement)
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
    assert titles(figure) == ["p50", "p95"]
    none = run(plan, [making.measurement(histograms=False, tps=1)])
    assert latency(ladders(cells(plan)), SYSTEMS, none.judgement) is None


LADDER = ladders(Cell(workload="w", threads=threads) for threads in (1, 4, 16))[0]


def law(system: str, setting: str = "default") -> Scalability:
    typical = Typical(value=1, low=1, high=1, blocks=5)
    curve = tuple(
        CurvePoint(threads=threads, per_s=100, low=90, high=110)
        for threads in (0.5, 1, 2, 8, 16, 32)
    )
    fit = Law(per_s_of_one=typical, sigma=typical, kappa=typical, curve=curve, blocks=())
    return Scalability(workload="w", setting=setting, system=system, points=(), law=fit)


def test_a_fit_is_drawn_between_the_levels_and_not_beyond() -> None:
    found = fit_rows(LADDER, SYSTEMS, [law(making.A), law(making.B, "other")])
    assert [row["place"] for row in found] == [0, 0.5, 1.5, 2]
    assert {(row["low"], row["value"], row["high"]) for row in found} == {(90, 100, 110)}


def test_a_refused_fit_and_an_open_loop_have_none() -> None:
    refused = law(making.A).model_copy(update={"law": None})
    assert fit_rows(LADDER, SYSTEMS, [refused]) == []
    rates = ladders([Cell(workload="w", threads=8, rate_per_s=100)])[0]
    assert fit_rows(rates, SYSTEMS, [law(making.A)]) == []
