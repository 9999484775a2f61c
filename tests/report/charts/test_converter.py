"""The process that draws charts: what it refuses, and what becomes of one that does not answer."""

from __future__ import annotations

import sys

import pytest

from dbdyno.report.charts import converter

BAR = {"mark": "bar", "title": "made"}
VERSION = "6.4"


def draw(spec: dict[str, str]) -> tuple[str, bytes]:
    return converter.drawn(spec, VERSION, 1.0)


def test_what_vega_lite_refuses_is_an_error_and_the_next_chart_is_drawn() -> None:
    with pytest.raises(ValueError, match="Invalid specification"):
        draw({})
    svg, png = draw(BAR)
    assert "made" in svg
    assert png.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("program", "answer_s_max", "status"),
    [("import sys; sys.exit(3)", 60, 3), ("import time; time.sleep(600)", 0.5, -9)],
)
def test_one_that_dies_or_stands_still_is_told_and_followed_by_another(
    program: str, answer_s_max: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(converter, "ANSWER_S_MAX", answer_s_max)
        patch.setattr(converter, "COMMAND", (sys.executable, "-c", program))
        patch.setattr(converter._DrawingProcess, "current", None)
        with pytest.raises(ChildProcessError, match=f"ended with status {status}$"):
            draw(BAR)
    assert draw(BAR)[0].startswith("<svg")


def test_a_process_that_ended_between_two_charts_is_replaced() -> None:
    draw(BAR)
    drawing = converter._DrawingProcess.current
    assert drawing is not None
    drawing._process.kill()
    drawing._process.wait()
    assert draw(BAR)[0].startswith("<svg")
