from __future__ import annotations

from dbdyno.judge.judgement import cells_of
from dbdyno.plan.plan import cells
from dbdyno.report.charts.verdicts import matrix
from support import making
from support.chart_checks import assert_sound, panels, rows, titles
from support.made_run import Run, run


def test_a_field_has_sign_change_and_word(made: Run) -> None:
    figure = matrix(cells(made.plan), made.judgement.verdicts)
    first, second = rows(figure)
    assert (first["level"], first["word"], first["sign"]) == ("1", "same", "= 0.0 %")
    assert (second["word"], second["sign"]) == ("slower, beyond the margin", "▼ −22.8 %")
    assert second["interval"].startswith("[−2")
    assert "8 threads: slower, beyond the margin" in figure.description
    assert_sound(figure)


def test_every_system_has_a_map_and_many_levels_leave_room_for_the_sign_only() -> None:
    systems, levels = ("a", "b", "c"), (1, 2, 4, 8, 16, 32, 64, 128)
    plan = making.plan(systems=systems, threads=levels, blocks=3)
    trials = [
        making.measurement(system, block, n, histograms=False)
        for block in range(3)
        for system in systems
        for n in levels
    ]
    figure = matrix(cells(plan), run(plan, trials).judgement.verdicts)
    assert titles(figure) == [
        "TPS of b against a",
        "TPS of c against a",
    ]
    assert len(panels(figure)[0]["layer"]) == 2
    assert_sound(figure)


def test_every_setting_has_a_map_of_its_own() -> None:
    plan = making.plan(blocks=3)
    trials = [
        *making.pairs((0.7, 0.71, 0.72), setting="default", histograms=False),
        *making.pairs((1.0, 1.0, 1.0), setting="durability 0/2", histograms=False),
    ]
    made = run(plan, trials)
    figure = matrix(cells_of(plan, trials), made.judgement.verdicts)
    assert [panel["title"].get("subtitle") for panel in panels(figure)] == [None, "durability 0/2"]
    assert_sound(figure)


def test_one_verdict_is_told_by_its_sentence() -> None:
    one = run(making.plan(), making.pairs((0.77, 0.76, 0.78)))
    assert matrix(cells(one.plan), one.judgement.verdicts) is None
