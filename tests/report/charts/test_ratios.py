from __future__ import annotations

import math

import pytest

from dbdyno.report.charts.ratios import ratios
from support import making
from support.chart_checks import assert_sound, panels, rows
from support.made_run import Run, run


def test_every_cell_has_its_ratio_and_interval(made: Run) -> None:
    figure = ratios(made.judgement.verdicts, 0.02)
    assert figure is not None
    lines = [row for row in rows(figure) if "name" in row]
    estimates = [verdict.estimate for verdict in made.judgement.verdicts]
    assert [row["at"] for row in lines] == pytest.approx(
        [math.log(e.ratio or 0) for e in estimates]
    )
    assert [row["told"] for row in lines] == ["0.0 % [−0.4, +0.4]", "−22.8 % [−24.1, −21.4]"]
    settled, adjusted = lines[:2]
    assert "inner_low" not in settled, "its own interval is the one that holds"
    low, inner_low, at, inner_high, high = (
        adjusted[name] for name in ("low", "inner_low", "at", "inner_high", "high")
    )
    assert low < inner_low < at < inner_high < high
    (margin,) = {(row["from"], row["to"]) for row in rows(figure) if "from" in row}
    assert margin == pytest.approx((-math.log(1.02), math.log(1.02)))
    assert "oltp_read_write, 8 threads: −22.8 %" in figure.description
    assert_sound(figure)


def test_an_interval_beyond_the_picture_ends_with_an_arrow() -> None:
    made = run(making.plan(blocks=3), making.pairs((0.2, 1.0, 5.0)))
    figure = ratios(made.judgement.verdicts, 0.02)
    assert figure is not None
    (line,) = [row for row in rows(figure) if "name" in row]
    assert line["low_on"]
    assert line["high_on"]
    assert line["high"] == -line["low"] < math.log(1.21)


def test_systems_have_panels_on_one_axis_and_a_sum_is_a_diamond(made: Run) -> None:
    one, two = made.judgement.verdicts
    other = one.model_copy(update={"system": "mariadb:11.4"})
    figure = ratios([one, two, other], 0.02, made.judgement.summaries)
    assert figure is not None
    assert [panel["title"] for panel in panels(figure)] == [making.B, "mariadb:11.4"]
    domains = [p["layer"][2]["encoding"]["x"]["scale"]["domain"] for p in panels(figure)]
    assert domains[0] == domains[1]
    (overall,) = [row for row in rows(figure) if row.get("overall")]
    assert overall["name"] == "all 2 cells, geometric mean"
    assert_sound(figure)


def test_without_a_ratio_there_is_no_plot() -> None:
    assert ratios([], 0.02) is None
