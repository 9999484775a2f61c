"""What people read of arms: sentences with both names, a table of pairs, systems over settings."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.judge.judgement import cells_of
from dbdyno.plan.settings import SettingsPlan
from dbdyno.report.charts.ratios import ratios
from dbdyno.report.charts.verdicts import matrix
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.parts import Section, Table
from dbdyno.report.story import story_of
from support import making
from support.chart_checks import assert_sound, titles
from support.made_run import Run, run
from support.making import A, B

OFF, ON = "thread_pool off", "thread_pool on"
RATES = {(A, OFF): 1000.0, (A, ON): 900.0, (B, OFF): 800.0, (B, ON): 1200.0}
HEADLINE = f"{B}, {ON} against {A}, {OFF}"


def made(*compare: str, systems: tuple[str, ...] = (A, B)) -> Run:
    plan = making.plan(
        systems=systems,
        threads=(8, 16),
        settings=SettingsPlan(thread_pool=("off", "on")),
        compare=compare,
    )
    trials = [
        making.measurement(
            system, block, threads, rate * (1 + block / 200), setting=setting, histograms=False
        )
        for block in range(5)
        for (system, setting), rate in RATES.items()
        for threads in (8, 16)
        if system in systems
    ]
    return run(plan, trials)


def tables(one: Run) -> dict[str, Table]:
    story = story_of(one.plan, one.measurements, one.judgement, one.facts)
    return {table.caption: table for section in story.sections for table in _in(section)}


def _in(section: Section) -> Iterator[Table]:
    for part in section.parts:
        if isinstance(part, Section):
            yield from _in(part)
        elif isinstance(part, Table):
            yield part


def test_each_pair_is_a_row_with_both_names_and_numbers_stand_apart() -> None:
    found = tables(made(HEADLINE, f"{ON} against {OFF}"))
    pairs = found["What was compared"]
    assert [row[1:] for row in pairs.rows[::2]] == [
        (HEADLINE, "faster", "+20.0 % [+20.0, +20.0]"),
        (f"{A}, {ON} against {A}, {OFF}", "slower", "−10.0 % [−10.0, −10.0]"),
        (f"{B}, {ON} against {B}, {OFF}", "faster", "+50.0 % [+50.0, +50.0]"),
    ]
    assert set(pairs.looks) == {"better", "worse"}
    numbers = found[f"oltp_read_write, {ON}"]
    assert [column.heading for column in numbers.columns][1:] == ["threads (connections)", A, B]


def test_each_system_has_a_table_over_its_settings_as_published() -> None:
    found = tables(made(f"{ON} against {OFF}"))
    of_b = found[f"TPS, 1/s: {B} under each setting, oltp_read_write"]
    assert [column.heading for column in of_b.columns] == [
        *("threads (connections)", OFF, ON),
        "Change [95 %]",
    ]
    assert of_b.rows[0] == ("8", "808.0", "1\u202f212", "+50.0 % [+50.0, +50.0]")


def test_systems_have_a_mean_ratio_for_each_setting_and_over_all() -> None:
    together = tables(made())[f"All cells against {A}"]
    assert [(row[1], row[4].partition(" [")[0], row[5]) for row in together.rows] == [
        ("all", "+3.3 %", "faster"),
        (f"oltp_read_write, {OFF}", "−20.0 %", "slower"),
        (f"oltp_read_write, {ON}", "+33.3 %", "faster"),
    ]


def test_a_system_alone_is_told_by_its_settings() -> None:
    alone = made(systems=(B,))
    text = render(Summary(alone.plan, alone.judgement, alone.facts), Output.PLAIN)
    assert (
        "oltp_read_write, 8 threads: thread_pool on is faster than thread_pool off: TPS +50.0 %"
        in text
    )
    story = story_of(alone.plan, alone.measurements, alone.judgement, alone.facts)
    assert story.conclusion[1].startswith(
        f"oltp_read_write, 2 cells: {ON} is faster than {OFF}: TPS +50.0 % ["
    )
    assert story.conclusion[2] == f"{ON} against {OFF} in 2 cells: faster in 2."


def test_charts_name_each_baseline() -> None:
    one = made(HEADLINE, f"{B} against {A}")
    verdicts = one.judgement.verdicts
    figure = matrix(cells_of(one.plan, one.measurements), verdicts)
    assert titles(figure) == [
        f"TPS of {B} against {A}",
        f"TPS of {B} against {A}",
        f"TPS of {B}, {ON} against {A}, {OFF}",
    ]
    assert_sound(figure)
    forest = ratios(verdicts, 0.02, one.judgement.summaries)
    assert forest.title == "Changes, with intervals"
    assert_sound(forest)
