from __future__ import annotations

from dbdyno.measurement.measurement import Cell
from dbdyno.report.rows import ladders, level_of, level_words


def test_cells_of_a_workload_and_setting_rise_by_load() -> None:
    cells = [Cell(workload="a", threads=n, setting=s) for s in ("default", "x") for n in (8, 1, 8)]
    first, second = ladders(cells)
    assert first.levels == ["1", "8"]
    assert (first.title, second.title) == ("a", "a, x")
    assert second.place(Cell(workload="a", threads=8, setting="x")) == 1
    assert second.place(cells[0]) is None


def test_an_open_loop_stands_on_a_ladder_of_its_own() -> None:
    closed = Cell(workload="a", threads=16)
    rates = [Cell(workload="a", threads=16, rate_per_s=rate) for rate in (1500, 500)]
    first, second = ladders([closed, *rates])
    assert not first.is_open
    assert second.is_open
    assert second.title == "a, open loop"
    assert second.levels == ["500", "1\u202f500"]
    assert second.load_title == "events due per second"
    setting = Cell(workload="a", threads=1, setting="s", rate_per_s=1)
    assert ladders([setting])[0].title == "a, s, open loop"


def test_a_load_in_words() -> None:
    assert level_words(Cell(workload="a", threads=1)) == "1 thread"
    assert level_words(Cell(workload="a", threads=2)) == "2 threads"
    assert level_words(Cell(workload="a", threads=2, rate_per_s=50)) == "50/s over 2 threads"
    assert level_of(Cell(workload="a", threads=2)) == "2"
