from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.measurement.measurement import Cell
from dbdyno.report.charts.ratios import TICKS_APART, View, ratios, view_of
from dbdyno.report.tell.measured import cell_title
from support import making
from support.chart_checks import assert_sound, panels, rows
from support.made_run import Run, of_workloads, run


def test_every_cell_has_its_ratio_and_interval(made: Run) -> None:
    figure = ratios(made.judgement.verdicts, 0.02)
    lines = [row for row in rows(figure) if "name" in row]
    estimates = [verdict.estimate for verdict in made.judgement.verdicts]
    assert [row["at"] for row in lines] == pytest.approx(
        [math.log(e.ratio or 0) for e in estimates]
    )
    assert [row["told"].partition(" [")[0] for row in lines] == ["0.0 %", "−22.8 %"]
    for line in lines[:2]:
        low, inner_low, at, inner_high, high = (
            line[name] for name in ("low", "inner_low", "at", "inner_high", "high")
        )
        assert low < inner_low < at < inner_high < high
    (margin,) = {(row["from"], row["to"]) for row in rows(figure) if "from" in row}
    assert margin == pytest.approx((-math.log(1.02), math.log(1.02)))
    assert "oltp_read_write, 8 threads: −22.8 %" in figure.description
    assert_sound(figure)


def test_an_interval_beyond_the_picture_ends_with_an_arrow() -> None:
    assert ratios([], 0.02) is None, "without a ratio there is no plot"
    made = run(making.plan(blocks=3), making.pairs((0.2, 1.0, 5.0)))
    figure = ratios(made.judgement.verdicts, 0.02)
    (line,) = [row for row in rows(figure) if "name" in row]
    assert line["low_on"]
    assert line["high_on"]
    assert line["high"] == -line["low"] < math.log(1.21)


@pytest.mark.parametrize(("writes", "has_mean"), [(0.8, False), (1.1, True)])
def test_a_workload_heads_its_cells_and_a_mean_of_the_same_sign_is_last(
    writes: float, has_mean: bool
) -> None:
    blocks = (1.0, 1.001, 0.999)
    ratios_of = {
        workload: tuple(ratio * block for block in blocks)
        for workload, ratio in (("oltp_read_only", 1.2), ("oltp_write_only", writes))
    }
    judgement = of_workloads(ratios_of, (1, 8)).judgement
    figure = ratios(judgement.verdicts, 0.02, judgement.summaries)
    lines = [(row["name"], row["overall"]) for row in rows(figure) if "name" in row]
    workloads = [
        line
        for workload in ratios_of
        for line in (
            (f"{workload}, 2 cells", True),
            (f"{workload}, 1 thread", False),
            (f"{workload}, 8 threads", False),
        )
    ]
    mean = [("All 4 cells, workloads weighted equally", True)]
    assert lines == [*workloads, *(mean if has_mean else [])]
    assert_sound(figure)


def test_systems_have_panels_on_one_axis_and_a_sum_is_a_diamond(made: Run) -> None:
    one, two = made.judgement.verdicts
    other = one.model_copy(update={"system": "mariadb:11.4"})
    figure = ratios([one, two, other], 0.02, made.judgement.summaries)
    assert [panel["title"] for panel in panels(figure)] == [making.B, "mariadb:11.4"]
    domains = [p["layer"][2]["encoding"]["x"]["scale"]["domain"] for p in panels(figure)]
    assert domains[0] == domains[1]
    (overall,) = [row for row in rows(figure) if row.get("overall")]
    assert overall["name"] == "oltp_read_write, 2 cells"
    assert_sound(figure)


def test_a_smooth_curve_and_its_band_lie_behind_the_cells_of_their_ladder() -> None:
    courses = {"oltp_read_only": 0.3, "oltp_write_only": 0.1}
    plan = making.plan(workloads=tuple(courses), threads=(1, 2, 4, 8, 16, 32), blocks=3)
    noise = np.random.default_rng(5)
    trials = [
        trial
        for workload, slope in courses.items()
        for level, threads in enumerate(plan.load.threads)
        for trial in making.pairs(
            tuple(np.exp(slope - 0.1 * level + noise.normal(0, 0.01, 3))),
            workload=workload,
            threads=threads,
        )
    ]
    judgement = run(plan, trials).judgement
    curves = judgement.curves
    assert len(curves) == 2
    figure = ratios(judgement.verdicts, 0.02, judgement.summaries, curves)
    points = [(curve, point) for curve in curves for point in curve.points]
    band = [row for row in rows(figure) if "curve" in row]
    assert [
        (row["cell"], *(math.exp(row[end]) for end in ("curve_low", "curve", "curve_high")))
        for row in band[: len(points)]
    ] == [
        (
            cell_title(Cell(workload=curve.workload, threads=point.threads)),
            *(pytest.approx(end) for end in (point.low, point.ratio, point.high)),
        )
        for curve, point in points
    ]
    assert len({row["ladder"] for row in band}) == 2
    marks = [layer["mark"]["type"] for layer in figure.spec["layer"]]
    assert marks[:5] == ["rect", "rule", "area", "line", "rule"]
    assert "smooth curve" in figure.note
    assert_sound(figure)
    other = [one.model_copy(update={"system": "mariadb:11.4"}) for one in curves]
    without = ratios(judgement.verdicts, 0.02, judgement.summaries, other)
    assert not any("curve" in row for row in rows(without)), "the curve of another comparison"


@given(some.floats(0.005, 8))
def test_any_view_has_a_few_round_ticks_within_it(reach: float) -> None:
    ticks = View(reach).ticks()
    places = [place for place, _ in ticks]
    assert all(abs(place) <= reach + 1e-9 for place in places)
    assert all(b - a >= TICKS_APART * reach * 0.999 for a, b in pairwise(places))
    assert (0.0, "0") in ticks


@pytest.mark.parametrize(
    ("reach", "labels"),
    [
        (math.log(1.06), ["−4 %", "−2 %", "0", "+2 %", "+4 %", "+6 %"]),
        (math.log(4.5), ["−70 %", "−40 %", "0", "+100 %", "+300 %"]),
    ],
)
def test_ticks_are_changes(reach: float, labels: list[str]) -> None:
    assert [words for _, words in View(reach).ticks()] == labels


def test_margin_and_ratios_are_in_view_and_a_wide_interval_does_not_press_them_together() -> None:
    assert view_of([1.0], [], margin=0.05).holds(1.05)
    assert view_of([0.2], [], margin=0.02).holds(0.2)
    view = view_of([0.95, 1.05], [0.01, 100.0], margin=0.02)
    assert view.reach < math.log(1.3)
    assert not view.holds(100.0)
    assert view.within(100.0) == view.reach
    assert view.within(0.01) == -view.reach
