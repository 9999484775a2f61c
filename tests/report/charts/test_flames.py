from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

import pytest

from dbdyno.report.charts.charts import figures
from dbdyno.report.charts.drawing import draw
from dbdyno.report.charts.flames import DEPTH_MAX
from dbdyno.report.formats.html import as_json, specification
from dbdyno.report.parts import Figure
from support import making
from support.chart_checks import assert_sound, rows
from support.made_profiles import profile, sampled_trials
from support.made_run import run

HOSTILE = '<script>alert(1)</script>"]]>&\x01'


def flames(below: Mapping[str, float], above: Mapping[str, float]) -> Figure:
    made = run(making.plan(blocks=3), sampled_trials(profile(below), profile(above)))
    drawn = figures(made.plan, made.measurements, made.judgement)
    return next(figure for figure in drawn if figure.name == "flames-1")


def test_frames_stand_on_their_callers_and_are_as_wide_as_they_cost() -> None:
    figure = flames({"spin": 50.0, "read": 20.0, "old": 10.0}, {"spin": 80.0, "read": 20.0})
    frames = {row["name"]: row for row in rows(figure)}
    spans = {name: (row["begin"], row["end"]) for name, row in frames.items()}
    assert spans["connection"] == spans["execute"] == pytest.approx((0, 90))
    assert spans["old"] == pytest.approx((0, 5)), "half of 10: only one system calls it"
    assert spans["read"] == pytest.approx((5, 25))
    assert spans["spin"] == pytest.approx((25, 90))
    assert [frames[name]["bottom"] for name in ("connection", "execute", "spin")] == [0, 2, 3]
    own = {name: frames[name]["own"] for name in ("connection", "read", "spin", "old")}
    assert own == pytest.approx({"connection": 0, "read": 0, "spin": 30, "old": -10})
    assert frames["connection"]["change"] == "+20.00"
    assert "spin: +30.00 µs" in figure.description
    assert_sound(figure)


def test_a_function_on_another_path_costs_no_more() -> None:
    figure = flames(
        {"first;spin": 50.0, "read": 20.0, "[program]": 10.0},
        {"second;spin": 50.0, "read": 30.0, "second;[program]": 10.0},
    )
    own = {(row["name"], row["own"]) for row in rows(figure)}
    assert own >= {("spin", 0), ("first", 0), ("second", 0), ("read", 10)}
    assert own >= {("[program]", -10), ("[program]", 10)}, "two functions without a name"


def test_a_strangers_names_are_text_in_svg_and_page() -> None:
    figure = flames({HOSTILE: 50.0, "read": 20.0}, {HOSTILE: 80.0, "read": 20.0})
    drawing = draw(figure)
    texts = {(part.text or "").strip() for part in ElementTree.fromstring(drawing.svg).iter()}
    assert '<script>alert(1)</script>"]]>&' in texts
    assert "<script" not in drawing.svg
    assert "<" not in as_json(specification(figure))
    assert drawing.png.startswith(b"\x89PNG")


def test_a_name_is_cut_at_the_end_of_its_frame() -> None:
    costs = {"a_function_with_a_long_name": 10.0, "read": 90.0}
    texts = [
        part.text or "" for part in ElementTree.fromstring(draw(flames(costs, costs)).svg).iter()
    ]
    assert "read" in texts
    assert any(text.startswith("a_func") and text.endswith("…") for text in texts)


def test_deep_stacks_and_rare_functions_are_cut() -> None:
    deep = ";".join(f"f{place}" for place in range(500))
    figure = flames({deep: 500.0, "rare": 0.1}, {deep: 500.0, "rare": 0.1})
    assert max(row["top"] for row in rows(figure)) == DEPTH_MAX
    assert "rare" not in {row["name"] for row in rows(figure)}
    assert "no function surely differs" in figure.description
