from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from dbdyno.judge.judgement import cells_of, judge
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.report.charts.timelines import (
    POINTS_MAX,
    AxisTitles,
    Mark,
    Series,
    multiples,
    per_second,
    thinned,
    timelines,
)
from dbdyno.report.parts import Figure
from dbdyno.report.rows import attempts, ladders, systems_of
from support import making
from support.chart_checks import assert_sound, rows
from support.made_run import Run, run

WORDS = AxisTitles(
    unit="u", kinds=("solid", "dashed"), of_kinds="line", marks=(("stall", "cross"),)
)


def cell(threads: int) -> Cell:
    return Cell(workload="w", threads=threads)


def line(threads: int, system: str) -> Series:
    return Series(cell(threads), system, 1, f"{threads}{system}", "solid", ((1.0, 2.0), (2.0, 3.0)))


def test_a_system_without_a_line_in_a_row_keeps_its_place() -> None:
    spec = multiples([line(1, "a"), line(1, "b"), line(8, "b")], [], ("a", "b", "c"), 2.0, WORDS)
    first, second = spec["vconcat"]
    for row in (first, second):
        assert row["facet"]["column"]["sort"] == ["a", "b"], "c was never measured"
        assert {data["s"] for data in row["data"]["values"]} == {"a", "b"}
    assert first["facet"]["column"]["header"]["labels"]
    assert not second["facet"]["column"]["header"]["labels"]


def test_marks_stand_on_the_line_or_at_the_ground() -> None:
    marks = [Mark(cell(1), "a", 1, 1.5, "stall", 7.0), Mark(cell(1), "a", 1, 1.0, "stall")]
    spec = multiples([line(1, "a")], marks, ("a",), 0.0, WORDS)
    found = [row for row in spec["data"]["values"] if "m" in row]
    assert [row["y"] for row in found] == [[7.0], [None]]
    assert spec["transform"] == [{"flatten": ["x", "y"]}]
    assert len(spec["spec"]["layer"]) == 4
    assert len(multiples([line(1, "a")], [], ("a",), 0.0, WORDS)["spec"]["layer"]) == 2


@given(some.lists(some.floats(0, 1e6), min_size=1, max_size=3 * POINTS_MAX))
def test_a_long_line_keeps_its_mean_and_its_end(values: list[float]) -> None:
    points = [(float(second), value) for second, value in enumerate(values)]
    thin = thinned(points)
    assert len(thin) <= POINTS_MAX
    assert thin[-1][0] == points[-1][0]
    assert min(values) - 1e-6 <= min(v for _, v in thin)
    assert max(v for _, v in thin) <= max(values) + 1e-6
    assert thin == points or len(points) > POINTS_MAX


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
    assert_sound(figure)
    return [(row["m"], *row["x"]) for row in rows(figure) if "m" in row]


def test_every_second_of_every_attempt_is_drawn_warm_up_included(made: Run) -> None:
    figure = chart(made)
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
    counts = tuple(float(place >= 4) for place in range(len(series.at_s)))
    counted = series.model_copy(update={"counters": {"checkpointer.num_done": counts}})
    assert marks(making.changed(plain, status_seconds=counted)) == [("checkpoint", 4.5)]


def test_nothing_measured_gives_no_chart(empty: Run) -> None:
    assert chart(empty) is None


def test_server_and_others_are_two_lines_of_each_trial(made: Run) -> None:
    (ladder,) = ladders(cells_of(made.plan, made.measurements))
    listed = attempts(made.measurements, made.judgement)
    cpu, disk = timelines(1, ladder, (making.A, making.B), listed)
    assert (cpu.name, disk.name) == ("cpu-1", "disk-1")
    found = [row for row in rows(cpu) if "t" in row]
    assert {row["k"] for row in found} == {"server", "all other processes"}
    assert len({row["t"] for row in found}) == 2 * 21
    first = made.measurements[0].watch[0]
    others = first.host_cpu_user + first.host_cpu_system - first.server_cpu
    values = [row["y"] for row in found if row["k"] == "all other processes"]
    assert abs(values[0][0] - others) < 1e-3
    assert {y for row in rows(disk) if row.get("k") == "written" for y in row["y"]} == {1.0}
    for figure in (cpu, disk):
        assert_sound(figure)


def test_an_endpoint_has_no_line_of_its_own() -> None:
    alone = making.unseen(making.measurement())
    made = run(making.plan(), [alone])
    (ladder,) = ladders(cells_of(made.plan, made.measurements))
    cpu, disk = timelines(1, ladder, (making.A,), attempts([alone], made.judgement))
    assert {row["k"] for row in rows(cpu) if "t" in row} == {"all other processes"}
    assert len([row for row in rows(disk) if "t" in row]) == 2
    assert_sound(cpu)
    unwatched = attempts([making.changed(alone, watch=())], made.judgement)
    assert timelines(1, ladder, (making.A,), unwatched) == []
