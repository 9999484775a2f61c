from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.report.charts.charts import figures, named
from dbdyno.report.charts.vega import THEME
from support import making
from support.chart_checks import assert_sound, complaints
from support.made_run import Run, run

ALL = (
    "verdicts",
    "ratios",
    "throughput",
    "latency",
    "latency-throughput",
    "seconds-1",
    "costs-1",
    "cpu-1",
    "disk-1",
)


def test_a_run_has_all_charts_and_each_is_sound(made: Run) -> None:
    drawn = figures(made.plan, made.measurements, made.judgement)
    assert tuple(figure.name for figure in drawn) == ALL
    for figure in drawn:
        assert figure.spec["config"] == THEME
        assert_sound(figure)


def test_every_chart_is_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "first-steps" / "report.md").read_text()
    charts = [name.replace("-1", "-N") for name in ("limits", "flames-1", *ALL)]
    assert [name for name in charts if f"`{name}`" not in page] == []


def test_without_measurements_there_is_nothing_to_draw(empty: Run) -> None:
    assert figures(empty.plan, [], empty.judgement) == ()


def test_one_system_at_one_level_has_no_comparison_and_no_curve() -> None:
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    drawn = figures(alone.plan, alone.measurements, alone.judgement)
    names = [figure.name for figure in drawn]
    assert names == ["throughput", "latency", "seconds-1", "costs-1", "cpu-1", "disk-1"]


def test_charts_are_found_by_the_beginning_of_their_names(made: Run) -> None:
    drawn = figures(made.plan, made.measurements, made.judgement)
    found = named(drawn, "latency", "throughput")
    assert [figure.name for figure in found] == ["latency", "latency-throughput", "throughput"]
    assert named(drawn, "cpu")[0].name == "cpu-1"
    assert named(drawn, "nothing") == ()


def test_a_channel_that_vega_lite_does_not_know_is_complained_of() -> None:
    spec = {"data": {"values": [{"a": 1}]}, "mark": "bar"}
    field = {"field": "a", "type": "quantitative"}
    assert complaints({**spec, "encoding": {"x": field}}) == ""
    assert "yy" in complaints({**spec, "encoding": {"yy": field}})
    with pytest.raises(ValueError, match="conversion failed"):
        complaints({**spec, "mark": "bra"})
