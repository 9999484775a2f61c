from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.report.formats import markdown
from dbdyno.report.parts import Code, Column, Paragraph, Section, Story, Table
from dbdyno.report.story import story_of
from support.made_run import Run

GOLDEN = Path(__file__).parents[2] / "golden" / "report.md"


def test_the_page_is_the_golden_one(made: Run) -> None:
    page = markdown.render(story_of(made.plan, made.measurements, made.judgement, made.facts))
    assert page == GOLDEN.read_text(), "if the change is meant, write the new page to the file"


def test_two_cells_are_told_in_900_words_and_everything_else_is_folded(made: Run) -> None:
    page = GOLDEN.read_text()
    seen = re.sub(r"<details>.*?</details>\n\n(?=<details>|$)", "", page + "\n", flags=re.DOTALL)
    assert "<details>" not in seen
    assert 200 < len(seen.split()) <= 900
    for told in ("slower", "1 000", "772.5", "16.17", "buffer pool 256 MiB", "1 data load"):
        assert told in seen


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        ("oltp_read_write", "oltp_read_write"),
        ("a|b", "a\\|b"),
        ("<script>", "&lt;script&gt;"),
        ("&lt;", "&amp;lt;"),
        ("__bold__ *x*", "\\_\\_bold\\_\\_ \\*x\\*"),
        ("run `dbdyno explain RUN_1`; `", "run `dbdyno explain RUN_1`; \\`"),
        ("`<b>` ``x`` \\`y`", "\\`&lt;b&gt;\\` \\`\\`x\\`\\` \\\\\\`y\\`"),
        ("[x](y)", "[x\\](y)"),
        ("two\nlines", "two lines"),
        ("# no heading", "\\# no heading"),
    ],
)
def test_text_from_outside_is_no_markup(plain: str, escaped: str) -> None:
    assert markdown.text(plain) == escaped


def test_a_folded_section_is_a_box_and_one_within_it_has_a_heading() -> None:
    inner = Section("Inner", (Paragraph("said"),))
    story = Story("t", "b", ("c",), (Section("Outer", (inner,), folded=True),))
    box = "<details><summary><b>Outer</b></summary>\n\n### Inner\n\nsaid\n\n</details>\n"
    assert markdown.render(story).endswith(box)


def test_a_long_table_is_folded_and_code_cannot_end_its_fence() -> None:
    table = Table("Many", (Column("a"), Column("b", numeric=True)), (("1", "2"),), folded=True)
    story = Story("t", "b", ("c",), (Section("S", (table, Code("a ``` b"))),))
    page = markdown.render(story)
    assert "<details><summary>Many (1 row)</summary>\n\n**Many**\n\n| a | b |\n" in page
    assert "| --- | ---: |" in page
    assert "a ''' b" in page
