"""The report in a real browser: what moves, what is printed, who can use it, what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dbdyno.language.catalogues import Language
from dbdyno.report.story import story_of
from dbdyno.report.write import Written, write
from support.axe import violations
from support.made_run import whole

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    made = whole()
    folder = tmp_path_factory.mktemp("page")
    return write(folder, made.plan, made.measurements, made.judgement, made.facts)


@dataclass
class Shared:
    """The report with every chart drawn by its program, and what it asked for meanwhile."""

    page: Page
    asked: list[str]


@pytest.fixture(scope="module")
def shared(browser: Browser, written: Written) -> Iterator[Shared]:
    """One page for the tests that only look at it."""
    context = browser.new_context(color_scheme="light")
    made = Shared(context.new_page(), [])
    made.page.on("request", lambda request: made.asked.append(request.url))
    made.page.goto(written.html.as_uri())
    drawn(made.page, "light")
    yield made
    context.close()


@pytest.fixture
def report(shared: Shared) -> Page:
    """The shared page as it was at first."""
    shared.page.emulate_media(media="screen", color_scheme="light")
    shared.page.set_viewport_size({"width": 1200, "height": 800})
    shared.page.evaluate("scrollTo(0, 0)")
    return shared.page


def drawn(page: Page, scheme: str) -> None:
    """Every chart has been near once and is drawn in these colours."""
    for figure in page.locator("figure[data-name]").all():
        figure.scroll_into_view_if_needed()
        expect(figure).to_have_attribute("data-state", scheme)


def test_the_page_asks_nothing_of_any_network(shared: Shared, written: Written) -> None:
    assert [url for url in shared.asked if not url.startswith("data:")] == [written.html.as_uri()]
    figures = shared.page.locator("figure[data-name]")
    states = figures.evaluate_all("all => all.map(one => one.dataset.state)")
    assert states == ["light"] * len(states)
    assert len(states) >= 3


def test_everybody_can_use_it(report: Page, axe: str) -> None:
    found = {}
    for scheme, width in (("light", PHONE["width"]), ("dark", 1200)):
        report.set_viewport_size({"width": width, "height": 800})
        report.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found[scheme, width] = violations(report, axe)
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


def test_a_phone_scrolls_down_only(report: Page) -> None:
    report.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert report.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_colours_follow_the_system_and_the_switch_and_are_kept(
    page: Page, written: Written
) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(written.html.as_uri())
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 24, 29)"
    figure = page.locator("figure[data-name]").first
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-state", "dark")
    switch = page.get_by_role("button", name="Dark colours")
    assert switch.get_attribute("aria-pressed") == "true"
    switch.click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    expect(figure).to_have_attribute("data-state", "light")
    page.reload()
    assert page.evaluate(paper) == "rgb(255, 255, 255)", "the choice is kept"


def test_no_word_of_a_chart_is_dark_on_dark(report: Page) -> None:
    report.emulate_media(color_scheme="dark")
    drawn(report, "dark")
    roles = ("axis-label", "axis-title", "legend-label", "legend-title", "title-text")
    words = ", ".join(f".moving svg .role-{role} text" for role in roles)
    colours = report.locator(words).evaluate_all(
        "all => all.filter(one => one.textContent).map(one => getComputedStyle(one).fill)"
    )
    assert len(colours) > 20
    shades = {max(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours}
    assert min(shades) > 120


def test_a_chart_tells_its_numbers_where_the_pointer_is(report: Page) -> None:
    figure = report.locator("figure[data-name=throughput]")
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-state", "light")
    figure.locator(".moving .mark-symbol.role-mark path").first.hover()
    tip = report.locator(".tip")
    tip.wait_for(state="visible")
    assert "system: mysql:" in tip.inner_text()
    assert "load: 1 thread" in tip.inner_text()
    assert "transactions per second: 300" in tip.inner_text()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_chart_can_be_saved(report: Page, kind: str, tmp_path: Path) -> None:
    with report.expect_download() as download:
        report.locator(f"button[data-kind={kind}]").first.click()
    download.value.save_as(tmp_path / "chart")
    assert download.value.suggested_filename.endswith(f".{kind}")
    begins = {"svg": b"<svg", "png": b"\x89PNG"}
    assert (tmp_path / "chart").read_bytes().startswith(begins[kind])


def test_the_keyboard_reaches_the_report_and_every_wide_table(page: Page, written: Written) -> None:
    page.goto(written.html.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "report"
    unreachable = page.evaluate(
        "[...document.querySelectorAll('.wide')].filter(one => one.tabIndex !== 0).length"
    )
    assert unreachable == 0
    page.get_by_role("navigation").get_by_role("link").last.click()
    assert page.evaluate("document.querySelector(':target') !== null")


def test_print_has_all_sections_and_the_charts_that_stand_still(
    report: Page, tmp_path: Path
) -> None:
    report.emulate_media(media="print")
    hidden = report.evaluate("""() => [
        [...document.querySelectorAll('.still')].filter(one => one.offsetHeight < 50).length,
        [...document.querySelectorAll('.moving')].filter(one => one.offsetHeight > 0).length,
        [...document.querySelectorAll('main h2')].filter(one => one.offsetHeight === 0).length,
        [...document.querySelectorAll('details:not(.words) tr')]
            .filter(one => one.getBoundingClientRect().height === 0).length]""")
    assert hidden == [0, 0, 0, 0]
    made = whole()
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    headings = report.locator("main h2").all_inner_texts()
    assert headings == [section.heading for section in story.sections]
    pdf = report.pdf(format="A4", path=tmp_path / "report.pdf")
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 2


def test_without_scripts_the_page_is_whole(browser: Browser, written: Written) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written.html.as_uri())
    assert all(one.is_visible() for one in page.locator(".still svg.chart").all())
    assert not any(one.is_visible() for one in page.locator("button").all())
    context.close()


def test_the_chinese_page_draws_its_charts_and_everybody_can_use_it(
    page: Page, axe: str, tmp_path: Path
) -> None:
    made = whole()
    parts = (made.plan, made.measurements, made.judgement, made.facts)
    page.goto(write(tmp_path, *parts, Language.ZH).html.as_uri())
    drawn(page, "light")
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    words = page.locator(".moving svg text").evaluate_all("all => all.map(one => one.textContent)")
    assert {"线程数（连接数）", "每秒事务数", "更差，超出等价界值"} <= set(words)
    expect(page.get_by_role("button", name="深色配色")).to_be_visible()
    assert violations(page, axe) == []
