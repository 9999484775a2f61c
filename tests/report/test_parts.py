from __future__ import annotations

import json
import re

import pytest
from tests.report.formats.test_gate import gate_of
from tests.report.formats.test_history import course
from tests.report.formats.test_replay import other, side
from tests.report.sections.test_cells import MADE as OF_RATES

from dbdyno.language.catalogues import Language
from dbdyno.language.words import name, say
from dbdyno.report.charts.drawing import Drawing
from dbdyno.report.formats import html, markdown
from dbdyno.report.formats.gate import GateResult
from dbdyno.report.formats.history import History, entries
from dbdyno.report.formats.replay import replay
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.parts import (
    Code,
    Column,
    Entry,
    Figure,
    Paragraph,
    Section,
    Story,
    Table,
    line,
    translated,
)
from dbdyno.report.story import story_of
from support import making, rich_run
from support.made_run import Run, run


def test_a_section_has_an_address_and_a_story_knows_its_figures() -> None:
    first, second = Figure("a", "A", "a", {}, "n"), Figure("b", "B", "b", {}, "n")
    charts = Section("How it was: measured", (first, Paragraph("between"), second))
    story = Story("title", "by", ("so",), (Section("Verdicts", ()), charts))
    assert charts.anchor == "how-it-was-measured"
    assert story.figures == (first, second)


# A report in Chinese: complete, read from the same values, with the same addresses and numbers.


ZH = Language.ZH
TWO_WORDS = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
NAMES = re.compile(
    r"dbdyno (?:report|replay|bundle|compare|explain) \S+|durability double-1|after sync"
    r"|server gone|the server went away|mode of mysql|GreatSQL and MySQL"
)
"""Commands, values of settings, and what a server or the store said."""
SECTIONS_MIN, FIGURES_MIN, CHECKS_MIN = 9, 13, 7


@pytest.fixture(scope="module")
def rich() -> Run:
    return rich_run.whole()


def whole_story(made: Run) -> Story:
    return story_of(made.plan, made.measurements, made.judgement, made.facts)


def english_in(text: str) -> list[str]:
    return TWO_WORDS.findall(NAMES.sub("", text))


def texts_of(value: object) -> list[str]:
    """Every text in a chart's specification that somebody reads: titles, data, words of scales."""
    if isinstance(value, str):
        return [value] if hasattr(value, "template") else []
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts_of(inner)]
    if isinstance(value, list | tuple):
        return [text for inner in value for text in texts_of(inner)]
    return []


def test_a_report_with_everything_in_it_says_all_of_it_in_chinese(rich: Run) -> None:
    story = whole_story(rich)
    assert len(story.sections) >= SECTIONS_MIN
    assert len(story.figures) >= FIGURES_MIN
    assert len({finding.check for finding in rich.judgement.findings}) >= CHECKS_MIN
    chinese = translated(story, ZH)
    assert english_in(markdown.render(chinese, ZH)) == []
    for figure in chinese.figures:
        assert english_in(f"{figure.title} {figure.note} {figure.description}") == []
        assert [text for text in texts_of(figure.spec) if english_in(text)] == []


def test_other_kinds_of_runs_are_told_in_chinese_too(empty: Run) -> None:
    alone = making.plan(systems=(making.A, making.B)).model_copy(
        update={"systems": making.plan().systems[:1]}
    )
    for made in (OF_RATES, empty, run(alone, [making.measurement(block=b) for b in range(3)])):
        chinese = translated(whole_story(made), ZH)
        assert english_in(markdown.render(chinese, ZH)) == []
        assert all(english_in(f"{f.title} {f.note}") == [] for f in chinese.figures)


def test_stdout_is_chinese_in_every_command(made: Run, rich: Run) -> None:
    for result in (
        Summary(rich.plan, rich.judgement, rich.facts),
        Summary(OF_RATES.plan, OF_RATES.judgement, OF_RATES.facts),
        GateResult(gate_of(rich), rich.judgement, rich.facts),
        History(entries(course(), making.B)),
        replay(side(made), other(made)),
    ):
        plain, page = (render(result, form, ZH) for form in (Output.PLAIN, Output.MARKDOWN))
        text = plain + page
        assert english_in(text) == []
        assert re.search("[\u4e00-\u9fff]", text)


def test_json_is_english_in_every_language(made: Run) -> None:
    summary = Summary(made.plan, made.judgement, made.facts)
    gate = GateResult(gate_of(made), made.judgement, made.facts)
    for result in (summary, gate):
        assert render(result, Output.JSON, ZH) == render(result, Output.JSON)


def test_numbers_names_and_commands_stay_and_english_is_the_very_same_story(made: Run) -> None:
    story = whole_story(made)
    assert translated(story, Language.EN) is story
    chinese = translated(story, ZH)
    for section, other_section in zip(story.sections, chinese.sections, strict=True):
        assert other_section.anchor == section.anchor
        for part, chinese_part in zip(section.parts, other_section.parts, strict=True):
            if isinstance(part, Code):
                assert chinese_part == part
            if isinstance(part, Table) and isinstance(chinese_part, Table):
                assert [len(row) for row in chinese_part.rows] == [len(row) for row in part.rows]
    for figure, chinese_figure in zip(story.figures, chinese.figures, strict=True):
        assert chinese_figure.name == figure.name
        numbers = re.compile(r":(-?[0-9.e-]+)[,}]")
        here, there = (
            numbers.findall(json.dumps(one.spec, separators=(",", ":")))
            for one in (figure, chinese_figure)
        )
        assert here == there


def test_scales_and_data_of_a_chart_agree_in_every_language(rich: Run) -> None:
    (matrix,) = [f for f in translated(whole_story(rich), ZH).figures if f.name == "verdicts"]
    layers = matrix.spec["layer"]
    domain = layers[0]["encoding"]["color"]["scale"]["domain"]
    assert {row["word"] for row in matrix.spec["data"]["values"]} == set(domain)
    assert "更慢，超出等价界值" in domain


def test_the_page_keeps_its_addresses_and_colours(made: Run) -> None:
    chinese = translated(whole_story(made), ZH)
    drawings = [Drawing(figure, "<svg></svg>", b"") for figure in chinese.figures]
    page = html.render(chinese, drawings, language=ZH)
    assert '<html lang="zh-Hans">' in page
    assert '<h2>检查发现</h2></summary>\n<div id="findings">' in page
    assert '<article class="entry worse">' in page
    visible = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.S)
    assert english_in(re.sub(r"<[^>]+>", "\n", visible)) == []


def test_parts_that_were_not_said_stay_as_they_are() -> None:
    section = Section(say("Verdicts"), (Table("plain", (Column(name("#")),), ()),))
    chinese = translated(Story(name("t"), name("b"), (), (section,)), ZH)
    assert chinese.sections[0].heading == "判定"
    assert chinese.sections[0].anchor == "verdicts"
    assert chinese.sections[0].parts == section.parts
    entry = Entry(say("no verdict"), name("x"), name("y"))
    assert entry.look == "no-verdict"
    assert line("plain", ZH) == "plain"
