from __future__ import annotations

from tests.report.made_run import Run

from dbdyno.judge import judge
from dbdyno.report.chart_seconds import per_second
from dbdyno.report.parts import Figure
from dbdyno.report.trials import attempts, cells_of, systems_of


def chart(made: Run) -> Figure | None:
    cells = cells_of(made.plan, made.measurements)
    systems = systems_of(made.plan, made.measurements)
    listed = attempts(made.measurements, made.judgement)
    return per_second("seconds", "oltp_read_write", cells, systems, listed)


def test_every_second_of_every_attempt_is_drawn_warm_up_included(made: Run) -> None:
    figure = chart(made)
    assert figure is not None
    rows = [row for data in figure.spec["datasets"].values() for row in data]
    assert len(rows) == 21 * (10 + 2)
    assert sum(row["phase"] == "warmup" for row in rows) == 21 * 2
    assert {row["block"] for row in rows} == {1, 2, 3, 4, 5}, "people count from one"
    uncounted = {row["trial"] for row in rows if row["state"] == "does not count"}
    assert len(uncounted) == 2
    assert "Trials drawn: 21." in figure.description
    assert len(figure.spec["vconcat"]) == 2


def test_a_sliver_of_a_second_is_not_drawn(made: Run) -> None:
    first = made.measurements[0]
    whole = first.intervals
    sliver = whole[-1].model_copy(update={"start_s": 12.0, "end_s": 12.1})
    one = [first.model_copy(update={"intervals": (*whole, sliver)})]
    figure = chart(Run(made.plan, one, judge(one, made.plan), made.facts))
    assert figure is not None
    (rows,) = figure.spec["datasets"].values()
    assert max(row["end"] for row in rows) == 12.0


def test_nothing_measured_gives_no_chart(empty: Run) -> None:
    assert chart(empty) is None
