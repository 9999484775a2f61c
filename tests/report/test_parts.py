from __future__ import annotations

from dbdyno.report.parts import Figure, Paragraph, Section, Story


def test_a_section_has_an_address_and_a_story_knows_its_figures() -> None:
    first, second = Figure("a", "A", "a", {}, "n"), Figure("b", "B", "b", {}, "n")
    charts = Section("How it was: measured", (first, Paragraph("between"), second))
    story = Story("title", "by", ("so",), (Section("Verdicts", ()), charts))
    assert charts.anchor == "how-it-was-measured"
    assert story.figures == (first, second)
