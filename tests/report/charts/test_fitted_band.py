from __future__ import annotations

from dbdyno.judge.beside.scalability import CurvePoint, Law, Scalability
from dbdyno.judge.interval import Typical
from dbdyno.measurement.measurement import Cell
from dbdyno.report.charts.levels import layers, points
from dbdyno.report.rows import ladders
from support import making

SYSTEMS = (making.A, making.B)
LADDER = ladders(Cell(workload="w", threads=threads) for threads in (1, 4, 16))[0]


def law(system: str, setting: str = "default") -> Scalability:
    typical = Typical(value=1, low=1, high=1, blocks=5)
    curve = tuple(
        CurvePoint(threads=threads, per_s=100, low=90, high=110)
        for threads in (0.5, 1, 2, 8, 16, 32)
    )
    fit = Law(per_s_of_one=typical, sigma=typical, kappa=typical, curve=curve, blocks=())
    return Scalability(workload="w", setting=setting, system=system, points=(), law=fit)


def test_a_fit_is_drawn_between_the_levels_and_not_beyond() -> None:
    found = points(LADDER, SYSTEMS, [law(making.A), law(making.B, "other")])
    assert [row["place"] for row in found] == [0, 0.5, 1.5, 2]
    assert {(row["low"], row["value"], row["high"]) for row in found} == {(90, 100, 110)}
    assert [layer["mark"]["type"] for layer in layers(SYSTEMS, "1/s")] == ["area", "line"]


def test_a_refused_fit_and_an_open_loop_have_none() -> None:
    refused = law(making.A).model_copy(update={"law": None})
    assert points(LADDER, SYSTEMS, [refused]) == []
    rates = ladders([Cell(workload="w", threads=8, rate_per_s=100)])[0]
    assert points(rates, SYSTEMS, [law(making.A)]) == []
