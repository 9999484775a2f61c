from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.report.formats import markdown
from dbdyno.report.parts import Code, Column, Section, Story, Table
from dbdyno.report.story import story_of
from support.made_run import Run

GOLDEN = Path(__file__).parents[2] / "golden" / "report.md"


def test_the_page_is_the_golden_one(made: Run) -> None:
    page = markdown.render(story_of(made.plan, made.measurements, made.judgement, made.facts))
    assert page == GOLDEN.read_text(), "if the change is meant, write the new page to the file"


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        ("oltp_read_write", "oltp_read_write"),
        ("a|b", "a\\|b"),
        ("<script>", "&lt;script&gt;"),
        ("&lt;", "&amp;lt;"),
        ("__bold__ *x* `y`", "\\_\\_bold\\_\\_ \\*x\\* \\`y\\`"),
        ("[x](y)", "[x\\](y)"),
        ("two\nlines", "two lines"),
        ("# no heading", "\\# no heading"),
    ],
)
def test_text_from_outside_is_no_markup(plain: str, escaped: str) -> None:
    assert markdown.text(plain) == escaped


def test_a_long_table_is_folded_and_code_cannot_end_its_fence() -> None:
    table = Table("Many", (Column("a"), Column("b", numeric=True)), (("1", "2"),), folded=True)
    story = Story("t", "b", ("c",), (Section("S", (table, Code("a ``` b"))),))
    page = markdown.render(story)
    assert "<details><summary>Many (1 row)</summary>\n\n**Many**\n\n| a | b |\n" in page
    assert "| --- | ---: |" in page
    assert "a ''' b" in page
