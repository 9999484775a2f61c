from __future__ import annotations

from dbdyno.report.charts.timelines import timelines
from dbdyno.report.rows import attempts, cells_of, ladders
from support import making
from support.chart_checks import assert_sound, rows
from support.made_run import Run, run


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


def test_nobody_watched_nothing_is_drawn() -> None:
    alone = making.changed(making.measurement(), watch=())
    made = run(making.plan(), [alone])
    (ladder,) = ladders(cells_of(made.plan, made.measurements))
    assert timelines(1, ladder, (making.A,), attempts([alone], made.judgement)) == []
