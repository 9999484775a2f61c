"""The report in a real browser: what moves, what is printed, who can use it, what it asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.axe import violations
from tests.report.made_run import whole

from dbdyno.report import Written, tell, write

PHONE = {"width": 360, "height": 740}
ALL_DRAWN = """scheme => [...document.querySelectorAll('figure[data-name]')]
    .every(one => scheme ? one.dataset.state === scheme : one.dataset.state)"""


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    made = whole()
    folder = tmp_path_factory.mktemp("page")
    return write(folder, made.plan, made.measurements, made.judgement, made.facts)


def opened(page: Page, written: Written) -> None:
    """The report with every chart drawn by its program."""
    page.goto(written.html.as_uri())
    for figure in page.locator("figure[data-name]").all():
        figure.scroll_into_view_if_needed()
    page.wait_for_function(ALL_DRAWN)


def test_the_page_asks_nothing_of_any_network(page: Page, written: Written) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, written)
    assert [url for url in asked if not url.startswith("data:")] == [written.html.as_uri()]
    states = page.locator("figure[data-name]").evaluate_all("all => all.map(f => f.dataset.state)")
    assert states == ["light"] * len(states)
    assert len(states) >= 3


def test_everybody_can_use_it(browser: Browser, written: Written, axe: str) -> None:
    context = browser.new_context(bypass_csp=True)  # axe is let in
    page = context.new_page()
    opened(page, written)
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_function(ALL_DRAWN, arg=scheme)
        for width in (1200, PHONE["width"]):
            page.set_viewport_size({"width": width, "height": 800})
            found[scheme, width] = violations(page, axe)
    context.close()
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


def test_a_phone_scrolls_down_only(page: Page, written: Written) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    opened(page, written)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_colours_follow_the_system_and_the_switch_and_are_kept(
    page: Page, written: Written
) -> None:
    page.emulate_media(color_scheme="dark")
    opened(page, written)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 24, 29)"
    figure = page.locator("figure[data-name]").first
    assert figure.get_attribute("data-state") == "dark"
    switch = page.get_by_role("button", name="Dark colours")
    assert switch.get_attribute("aria-pressed") == "true"
    switch.click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.wait_for_function("document.querySelector('figure[data-name]').dataset.state === 'light'")
    page.reload()
    assert page.evaluate(paper) == "rgb(255, 255, 255)", "the choice is kept"


def test_no_word_of_a_chart_is_dark_on_dark(page: Page, written: Written) -> None:
    page.emulate_media(color_scheme="dark")
    opened(page, written)
    colours = page.locator(".moving svg text").evaluate_all(
        "all => all.filter(one => one.textContent).map(one => getComputedStyle(one).fill)"
    )
    assert len(colours) > 20
    shades = {max(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours}
    assert min(shades) > 120


def test_a_chart_tells_its_numbers_where_the_pointer_is(page: Page, written: Written) -> None:
    opened(page, written)
    page.locator("figure[data-name] .moving svg .mark-symbol path").first.hover()
    tip = page.locator(".tip")
    tip.wait_for(state="visible")
    assert "system: mysql:" in tip.inner_text()
    assert "threads: " in tip.inner_text()
    assert "place" not in tip.inner_text()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_chart_can_be_saved(page: Page, written: Written, kind: str, tmp_path: Path) -> None:
    opened(page, written)
    with page.expect_download() as download:
        page.locator(f"button[data-kind={kind}]").first.click()
    download.value.save_as(tmp_path / "chart")
    assert download.value.suggested_filename.endswith(f".{kind}")
    begins = {"svg": b"<svg", "png": b"\x89PNG"}
    assert (tmp_path / "chart").read_bytes().startswith(begins[kind])


def test_the_keyboard_reaches_the_report_and_every_wide_table(page: Page, written: Written) -> None:
    opened(page, written)
    page.evaluate("scrollTo(0, 0)")
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
    page: Page, written: Written, tmp_path: Path
) -> None:
    opened(page, written)
    page.emulate_media(media="print")
    hidden = page.evaluate("""() => [
        [...document.querySelectorAll('.still')].filter(one => one.offsetHeight < 50).length,
        [...document.querySelectorAll('.moving')].filter(one => one.offsetHeight > 0).length,
        [...document.querySelectorAll('main h2')].filter(one => one.offsetHeight === 0).length,
        [...document.querySelectorAll('details:not(.words) tr')]
            .filter(one => one.getBoundingClientRect().height === 0).length]""")
    assert hidden == [0, 0, 0, 0]
    made = whole()
    story = tell(made.plan, made.measurements, made.judgement, made.facts)
    headings = page.locator("main h2").all_inner_texts()
    assert headings == [section.heading for section in story.sections]
    pdf = page.pdf(format="A4", path=tmp_path / "report.pdf")
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 2


def test_without_scripts_the_page_is_whole(browser: Browser, written: Written) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written.html.as_uri())
    assert all(one.is_visible() for one in page.locator(".still svg.chart").all())
    assert not any(one.is_visible() for one in page.locator("button").all())
    context.close()
