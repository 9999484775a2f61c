from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.language.catalogues import Language
from dbdyno.report.charts.drawing import Drawing
from dbdyno.report.charts.vega import COLOURS
from dbdyno.report.formats import html
from dbdyno.report.parts import Figure, Section, Story
from dbdyno.report.story import story_of
from dbdyno.report.write import Written
from support import making
from support.made_run import Run, facts, of_workloads, run

HOSTILE = "<script>alert('x')</script>"
VOID = {"meta", "link", "br", "hr", "img", "input"}
ADDRESSES = {"src", "href", "srcset", "action", "data", "poster"}


class Page(HTMLParser):
    """Reads a page strictly: every tag closes, in order; keeps what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.unfolded: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.append((self.open[-1], data.strip()))
            is_folded = self.open.count("details") > self.open.count("summary")
            if not is_folded and not {"script", "style", "svg"} & set(self.open):
                self.unfolded += data.split()


def rendered(story: Story) -> str:
    """Charts play no part here; an empty SVG stands for each."""
    return html.render(story, [Drawing(figure, "<svg></svg>", b"") for figure in story.figures])


@pytest.fixture(scope="module")
def text(written: Written) -> str:
    return written.html.read_text()


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_section_has_its_heading_and_its_address(made: Run, page: Page) -> None:
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    headings = [words for tag, words in page.texts if tag == "h2"]
    assert headings == [section.heading for section in story.sections]
    inner = [part for section in story.sections for part in section.parts]
    inner = [part.heading for part in inner if isinstance(part, Section)]
    assert inner == [words for tag, words in page.texts if tag == "h3" and words in inner]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {attrs["href"] for tag, attrs in page.tags if tag == "a"}
    assert links == {"#report", "#top"}
    assert {section.anchor for section in story.sections} | {"report", "top"} <= set(ids)


def test_the_first_screen_of_two_cells_has_at_most_500_words() -> None:
    made = of_workloads({"oltp_read_only": (1.1, 1.12, 1.14), "oltp_write_only": (0.5, 0.6, 0.4)})
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    words = Page(rendered(story)).unfolded
    assert "oltp_write_only," in words
    assert len(words) <= 500


def test_the_page_needs_nothing_from_outside(text: str, page: Page) -> None:
    markup = re.sub(
        r"<script>.*?</script>", "", text, flags=re.DOTALL
    )  # the browser's tests see to it
    assert "http://" not in markup
    assert "https://" not in markup
    assert "@import" not in markup
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "img"}
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert all("src" not in attrs for attrs in scripts)
    named = {v for _, attrs in page.tags for k, v in attrs.items() if k in ADDRESSES}
    assert all(str(address).startswith("#") for address in named)
    assert len(text) < 2_000_000


def test_readers_of_every_kind_are_served(text: str, page: Page, written: Written) -> None:
    assert page.tags[0] == ("html", {"lang": "en"})
    charts = [attrs for tag, attrs in page.tags if tag == "svg" and attrs.get("role") == "img"]
    assert 2 * len(charts) == len(written.charts) > 4
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == sum(tag == "caption" for tag, _ in page.tags) > 5
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 36rem"):
        assert rule in text
    assert "viewport" in {attrs.get("name") for _, attrs in page.tags}


def test_nothing_from_outside_becomes_markup() -> None:
    plan = making.plan().model_copy(update={"title": HOSTILE})
    trials = [
        making.measurement(
            system, failure=HOSTILE, settings={HOSTILE: system, "x": HOSTILE + system}
        )
        for system in (making.A, making.B)
    ]
    made = run(plan, trials)
    hostile = facts(plan, environment={HOSTILE: HOSTILE}).model_copy(update={"command": HOSTILE})
    text = rendered(story_of(plan, trials, made.judgement, hostile))
    assert HOSTILE not in text
    assert "alert('x')<" not in text
    assert text.count("&lt;script&gt;") > 6
    assert ("h1", HOSTILE) in Page(text).texts


def test_a_command_in_a_sentence_is_code_and_nothing_else_is() -> None:
    story = Story("t", "b", ('run `dbdyno "x"`, not `<b>`',), ())
    assert "run <code>dbdyno &#34;x&#34;</code>, not `&lt;b&gt;`" in html.render(story, [])


def test_an_empty_run_is_a_page_too(empty: Run) -> None:
    page = Page(rendered(story_of(empty.plan, [], empty.judgement, empty.facts)))
    assert any("Nothing has been measured yet" in words for _, words in page.texts)


def test_no_line_ends_between_a_number_and_its_percent_sign(made: Run) -> None:
    whole_page = rendered(story_of(made.plan, made.measurements, made.judgement, made.facts))
    page = re.sub(r"<(desc|script).*?</\1>", "", whole_page, flags=re.DOTALL)
    assert "2\u00a0%" in page
    assert "2 %" not in page


def test_the_page_says_how_large_it_is_and_where_the_way_up_leads(made: Run) -> None:
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    drawings = [Drawing(figure, "<svg></svg>", b"") for figure in story.figures]
    text = html.render(story, drawings, language=Language.ZH, home="/")
    assert f"一个 {len(text.encode()) / 1e6:.1f} MB 的独立文件" in text
    assert '<html lang="zh-Hans">' in text
    assert '<a href="/">全部测试</a>' in text


def test_a_page_without_charts_carries_no_chart_program(empty: Run) -> None:
    assert len(rendered(story_of(empty.plan, [], empty.judgement, empty.facts))) < 60_000


# What may run in a page, and text that cannot leave the place where it stands.


def contrast(first: str, second: str) -> float:
    """WCAG 2's contrast ratio of two colours (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""

    def luminance(colour: str) -> float:
        shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_system_can_be_seen_on_a_dark_page() -> None:
    paper = html.DARK["white"]
    shown = [html.DARK.get(colour.lower(), colour) for colour in COLOURS]
    assert len(set(shown)) == len(COLOURS)
    assert [colour for colour in shown if contrast(colour, paper) < 3] == []
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@given(st.text() | st.dictionaries(st.text(), st.integers(), max_size=3))
def test_json_in_a_script_stays_json_and_cannot_end_it(value: object) -> None:
    text = html.as_json({"</script><!--": value, "&": "<script>\u2028"})
    assert json.loads(text) == {"</script><!--": value, "&": "<script>\u2028"}
    assert not set(text) & set("<>&\u2028\u2029")


def test_a_specification_names_no_address_and_no_number_that_is_none() -> None:
    spec = {"$schema": "https://x", "data": {"values": [{"y": math.nan}, {"y": 1.5}]}}
    figure = Figure("n", "t", "d", spec, "")
    assert html.specification(figure) == {"data": {"values": [{"y": None}, {"y": 1.5}]}}


def test_the_policy_lets_the_given_scripts_run_and_nothing_else() -> None:
    digest = base64.b64encode(hashlib.sha256(b"alert(1)").digest()).decode()
    policy = html.policy(["alert(1)"])
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert "script-src 'none';" in html.policy([])


def test_the_programs_can_stand_in_a_page() -> None:
    for script in (html.program(), html.page_script()):
        assert "dbdynoEmbed" in script
        ends = ("</script", "<!--", "\r", "\0")
        assert [end for end in ends if end in script.lower()] == []


# Charts without vl-convert: drawn by the browser alone, or named as missing.


def test_without_pictures_charts_are_left_to_the_browser(
    made: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "program", lambda: "window.dbdynoEmbed = 1;")
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    text = html.render(story, [])
    page = Page(text)
    names = [figure.name for figure in story.figures]
    assert [attrs["data-name"] for tag, attrs in page.tags if tag == "figure"] == names
    assert sum(tag == "noscript" for tag, _ in page.tags) == len(names) > 4
    assert "<script>window.dbdynoEmbed = 1;</script>" in text
    assert 'class="still"' not in text


def test_without_pictures_and_program_the_page_says_how_to_get_charts(
    made: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "program", str)
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    page = Page(html.render(story, [], language=Language.ZH))
    assert page.texts.count(("code", "pip install 'dbdyno[charts]'")) == 1
    assert [words for _, words in page.texts if words.startswith("此处没有图表")]
    assert "figure" not in {tag for tag, _ in page.tags}


def test_the_program_is_the_wheels_or_vl_converts_or_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "can_draw", lambda: False)
    assert html.program.__wrapped__() == ""
    (tmp_path / "vega.js").write_text("program")
    monkeypatch.setattr(html, "PROGRAM", tmp_path / "vega.js")
    assert html.program.__wrapped__() == "program"
