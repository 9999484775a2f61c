from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from dbdyno.language.catalogues import Language
from dbdyno.report.charts.base import Drawing
from dbdyno.report.formats import html
from dbdyno.report.parts import Story
from dbdyno.report.story import tell
from dbdyno.report.write import Written
from support import making
from support.made_run import Run, facts, run

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


def rendered(story: Story) -> str:
    """Charts play no part here; an empty SVG stands for each."""
    return html.render(story, [Drawing(figure, "<svg></svg>", b"") for figure in story.figures])


@pytest.fixture(scope="module")
def text(written: Written) -> str:
    return written.html.read_text()


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_section_has_its_heading_and_its_link(made: Run, page: Page) -> None:
    story = tell(made.plan, made.measurements, made.judgement, made.facts)
    headings = [words for tag, words in page.texts if tag == "h2"]
    assert headings == [section.heading for section in story.sections]
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    links = {attrs["href"] for tag, attrs in page.tags if tag == "a"}
    own = {"#report", "#top"}
    assert links == {f"#{section.anchor}" for section in story.sections} | own
    assert {str(link)[1:] for link in links} <= ids


def test_no_id_is_given_twice(page: Page) -> None:
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


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
    text = rendered(tell(plan, trials, made.judgement, hostile))
    assert HOSTILE not in text
    assert "alert('x')<" not in text
    assert text.count("&lt;script&gt;") > 6
    assert ("h1", HOSTILE) in Page(text).texts


def test_an_empty_run_is_a_page_too(empty: Run) -> None:
    page = Page(rendered(tell(empty.plan, [], empty.judgement, empty.facts)))
    assert any("Nothing has been measured yet" in words for _, words in page.texts)


def test_no_line_ends_between_a_number_and_its_percent_sign(made: Run) -> None:
    whole_page = rendered(tell(made.plan, made.measurements, made.judgement, made.facts))
    page = re.sub(r"<(desc|script).*?</\1>", "", whole_page, flags=re.DOTALL)
    assert "2\u00a0%" in page
    assert "2 %" not in page


def test_the_page_says_how_large_it_is_and_where_the_way_up_leads(made: Run) -> None:
    story = tell(made.plan, made.measurements, made.judgement, made.facts)
    drawings = [Drawing(figure, "<svg></svg>", b"") for figure in story.figures]
    text = html.render(story, drawings, language=Language.ZH, home="/")
    assert f"一个 {len(text.encode()) / 1e6:.1f} MB 的独立文件" in text
    assert '<html lang="zh-Hans">' in text
    assert '<a href="/">全部测试</a>' in text


def test_a_page_without_charts_carries_no_chart_program(empty: Run) -> None:
    assert len(rendered(tell(empty.plan, [], empty.judgement, empty.facts))) < 60_000
