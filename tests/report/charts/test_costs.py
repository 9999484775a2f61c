from __future__ import annotations

from dbdyno.plan.plan import cells
from dbdyno.report.charts.costs import costs
from dbdyno.report.parts import Figure
from dbdyno.report.rows import attempts, ladders
from support import making
from support.chart_checks import assert_sound, panels, titles
from support.made_run import Run


def chart(made: Run) -> Figure | None:
    (ladder,) = ladders(cells(made.plan))
    listed = attempts(made.measurements, made.judgement)
    return costs("costs-1", ladder, (making.A, making.B), listed)


def test_each_cost_has_a_panel_with_a_bar_for_each_system_and_load(made: Run) -> None:
    figure = chart(made)
    named = titles(figure)
    assert named[:3] == ["server CPU", "rows read", "rows changed"]
    assert "read by the server" not in named, "nothing was read"
    cpu = panels(figure)[0]["data"]["values"]
    assert [(row["load"], row["system"], round(row["value"])) for row in cpu] == [
        (load, system, 800) for load in ("1", "8") for system in (making.A, making.B)
    ]
    assert "server CPU, 8 threads, mysql:8.0.15: 800.0 µs" in figure.description
    assert_sound(figure)


def test_nothing_counted_gives_no_chart(empty: Run) -> None:
    assert chart(empty) is None
