from __future__ import annotations

from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.report.charts.timelines import per_second
from dbdyno.report.parts import Figure
from dbdyno.report.rows import attempts, cells_of, ladders, systems_of
from support import making
from support.chart_checks import assert_sound, rows
from support.made_run import Run, run


def chart(made: Run) -> Figure | None:
    ladder = ladders(cells_of(made.plan, made.measurements))[0]
    systems = systems_of(made.plan, made.measurements)
    listed = attempts(made.measurements, made.judgement)
    return per_second("seconds-1", ladder, systems, listed, made.judgement)


def lines(figure: Figure) -> list[dict[str, object]]:
    return [
        {**row, "x": x, "y": y}
        for row in rows(figure)
        if "t" in row
        for x, y in zip(row["x"], row["y"], strict=True)
    ]


def marks(measurement: Measurement) -> list[tuple[str, float]]:
    figure = chart(run(making.plan(), [measurement]))
    assert figure is not None
    assert_sound(figure)
    return [(row["m"], *row["x"]) for row in rows(figure) if "m" in row]


def test_every_second_of_every_attempt_is_drawn_warm_up_included(made: Run) -> None:
    figure = chart(made)
    assert figure is not None
    found = lines(figure)
    assert len(found) == 21 * (10 + 2)
    assert {row["b"] for row in found} == {1, 2, 3, 4, 5}, "people count from one"
    uncounted = {row["t"] for row in found if row["k"] == "does not count"}
    assert len(uncounted) == 2
    assert {row["w"] for row in rows(figure) if "w" in row} == {2.0}
    assert "Trials drawn: 21." in figure.description
    assert len(figure.spec["vconcat"]) == 2


def test_a_sliver_of_a_second_is_not_drawn(made: Run) -> None:
    first = made.measurements[0]
    whole = first.intervals
    sliver = whole[-1].model_copy(update={"start_s": 12.0, "end_s": 12.1})
    one = [first.model_copy(update={"intervals": (*whole, sliver)})]
    figure = chart(Run(made.plan, one, judge(one, made.plan), made.facts))
    assert figure is not None
    assert max(float(str(row["x"])) for row in lines(figure)) == 12.0


def test_dips_and_stalls_are_marked_where_they_ended() -> None:
    rates = (1000.0,) * 4 + (500.0,) + (1000.0,) * 5
    dipped = making.measurement(rates=rates)
    assert marks(dipped) == [("dip", 7.0)]
    intervals = list(making.measurement().intervals)
    intervals[5] = intervals[5].model_copy(update={"silence_ns_max": 250_000_000})
    stalled = making.changed(making.measurement(), intervals=tuple(intervals))
    assert marks(stalled) == [("stall", 6.0)]


def test_checkpoints_are_marked_at_the_ground_while_the_load_ran() -> None:
    plain = making.measurement()
    series = plain.status_seconds
    assert series is not None
    counts = tuple(float(place >= 4) for place in range(len(series.at_s)))
    counted = series.model_copy(update={"counters": {"checkpointer.num_done": counts}})
    assert marks(making.changed(plain, status_seconds=counted)) == [("checkpoint", 4.5)]


def test_nothing_measured_gives_no_chart(empty: Run) -> None:
    assert chart(empty) is None
