from __future__ import annotations

from dbdyno.report.charts.charts import figures
from dbdyno.report.parts import Figure, Paragraph, Section, Table
from dbdyno.report.story import over_time, story_of, with_charts
from support import making
from support.made_run import Run, run

HEADINGS = (
    "At a glance",
    "Findings",
    "Verdicts in detail",
    "Why",
    "Numbers of every load level",
    "From second to second, from trial to trial",
    "Costs and machine",
    "Method, settings, trials",
    "Trust and limitations",
    "How to repeat it",
)


def inner(made: Run) -> set[str]:
    """The headings within the folded sections."""
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    parts = (part for section in story.sections for part in section.parts)
    return {part.heading for part in parts if isinstance(part, Section)}


def test_the_conclusion_comes_first_and_the_way_to_repeat_it_last(made: Run) -> None:
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    assert tuple(section.heading for section in story.sections) == HEADINGS
    assert [section.folded for section in story.sections] == [False] + [True] * 9
    assert story.title == "made"
    assert "20261121-060000-made" in story.byline
    assert len(story.figures) == 9


def test_an_empty_run_still_tells_what_was_asked_and_that_nothing_is_known(empty: Run) -> None:
    story = story_of(empty.plan, [], empty.judgement, empty.facts)
    assert story.conclusion[0].startswith("Nothing has been measured yet")
    assert story.figures == ()
    assert {"Numbers", "How it was measured", "Limitations"} <= inner(empty)
    assert "Machine" not in inner(empty)


def test_one_system_has_numbers_and_no_verdicts() -> None:
    alone = run(making.plan(systems=(making.A,)), [making.measurement(block=b) for b in range(3)])
    assert "Verdicts" not in inner(alone)
    assert "Settings that differ" not in inner(alone)
    assert "Numbers" in inner(alone)


def test_throughput_and_latency_are_open_and_no_chart_is_shown_twice(made: Run) -> None:
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    glance, *others = story.sections
    assert [one.name for one in glance.figures] == ["ratios", "throughput", "latency"]
    shown = [figure.name for section in others for figure in section.figures]
    assert not {"ratios", "throughput", "latency"} & set(shown)
    assert "latency-throughput" in shown


def test_without_charts_there_is_no_section_of_them() -> None:
    assert over_time(()).parts == ()


def test_charts_stand_behind_what_introduces_them(made: Run) -> None:
    drawn = figures(made.plan, made.measurements, made.judgement)
    head, table = Paragraph("head"), Table("t", (), ())
    section = with_charts(Section("S", (head, table)), drawn, "costs")
    assert [type(part) for part in section.parts] == [Paragraph, Figure, Table]
    section = with_charts(Section("S", (table,)), drawn, "cpu", "disk")
    assert [type(part) for part in section.parts] == [Figure, Figure, Table]
