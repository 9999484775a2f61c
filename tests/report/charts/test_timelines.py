from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from dbdyno.measurement.measurement import Cell
from dbdyno.report.charts.timelines import POINTS_MAX, Line, Mark, Words, multiples, thinned

WORDS = Words(unit="u", kinds=("solid", "dashed"), of_kinds="line", marks=(("stall", "cross"),))


def cell(threads: int) -> Cell:
    return Cell(workload="w", threads=threads)


def line(threads: int, system: str) -> Line:
    return Line(cell(threads), system, 1, f"{threads}{system}", "solid", ((1.0, 2.0), (2.0, 3.0)))


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
