"""The report in a real browser: what moves, what is printed, who can use it, what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dbdyno.language.catalogues import Language
from dbdyno.report.formats import html
from dbdyno.report.story import story_of
from dbdyno.report.write import Written, write
from support.axe import CONTRAST, RULES, violations
from support.made_run import whole

WIDTHS = (390, 768, 1280)
CHINESE = re.compile("[\u3000-\u9fff\uff00-\uffef]")
LETTER_PX = 8.5
"""A chart's letters are at least so high on a phone, of 12 where there is room."""


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[Language, Written]:
    made = whole()
    parts = (made.plan, made.measurements, made.judgement, made.facts)
    return {
        language: write(tmp_path_factory.mktemp(language), *parts, language)
        for language in (Language.EN, Language.ZH)
    }


@pytest.fixture(scope="session")
def written(reports: dict[Language, Written]) -> Written:
    return reports[Language.EN]


@dataclass
class Shared:
    """The report with every chart drawn by its program, and what it asked for meanwhile."""

    page: Page
    asked: list[str]


@pytest.fixture(scope="module")
def pages(browser: Browser, reports: dict[Language, Written]) -> Iterator[dict[Language, Shared]]:
    """A page in each language with all its boxes open, for the tests that only look at it."""
    context = browser.new_context(color_scheme="light")
    made = {language: Shared(context.new_page(), []) for language in reports}
    for language, one in made.items():
        one.page.on("request", lambda request, asked=one.asked: asked.append(request.url))
        one.page.goto(reports[language].html.as_uri())
        unfold(one.page, wanted=True)
        drawn(one.page, "light")
    yield made
    context.close()


@pytest.fixture
def shared(pages: dict[Language, Shared]) -> Shared:
    return pages[Language.EN]


@pytest.fixture
def report(shared: Shared) -> Page:
    """The shared page as it was at first."""
    shared.page.emulate_media(media="screen", color_scheme="light")
    shared.page.set_viewport_size({"width": 1200, "height": 800})
    shared.page.evaluate("scrollTo(0, 0)")
    return shared.page


def unfold(page: Page, *, wanted: bool) -> None:
    """Opens every box of the page, or closes it."""
    boxes = page.locator("details:not(.words)")
    boxes.evaluate_all("(all, wanted) => all.forEach((one) => { one.open = wanted; })", wanted)


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
    for scheme, width, rules in (("light", 390, RULES), ("dark", 1200, CONTRAST)):
        report.set_viewport_size({"width": width, "height": 800})
        report.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found[scheme, width] = violations(report, axe, rules)
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


OVERFLOWING = """() => {
    const cut = (one) => getComputedStyle(one).overflowX !== "visible"
        && one.scrollWidth > one.clientWidth + 1;
    const beyond = (one) => {
        const box = one.getBoundingClientRect();
        return box.width > 0 && (box.left < -1 || box.right > innerWidth + 1);
    };
    return [...document.querySelectorAll("body *:not(.skip)")]
        .filter((one) => one.checkVisibility() && !one.closest("defs, clipPath"))
        .filter((one) => cut(one) || beyond(one))
        .map((one) => `${one.tagName} ${one.textContent.slice(0, 40)}`);
}"""


@pytest.mark.parametrize("language", [Language.EN, Language.ZH])
def test_nothing_is_cut_off_or_stands_beyond_the_page(
    pages: dict[Language, Shared], language: Language
) -> None:
    page = pages[language].page
    found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("scrollTo(0, 0)")
        for scheme in ("light", "dark"):
            page.emulate_media(media="screen", color_scheme=scheme)  # type: ignore[arg-type]
            first = page.locator("figure[data-name]").first
            first.scroll_into_view_if_needed()
            expect(first).to_have_attribute("data-state", scheme)
            found[width, scheme] = page.evaluate(OVERFLOWING)
        letters = first.locator(".moving svg").evaluate(
            "one => 12 * one.getBoundingClientRect().width / one.viewBox.baseVal.width"
        )
        assert letters >= LETTER_PX, f"the numbers of the first chart at {width} px"
    assert {where: wrong for where, wrong in found.items() if wrong} == {}
    assert page.locator(".moving svg text").filter(has_text="…").count() == 0


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
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-state", "light")
    page.reload()
    assert page.evaluate(paper) == "rgb(255, 255, 255)", "the choice is kept"


SLOW_FIRST_DRAWING = """() => {
    const embed = window.dbdynoEmbed;
    const waits = [400];
    window.dbdynoEmbed = async (...given) => {
        await new Promise((go) => setTimeout(go, waits.shift() ?? 0));
        const drawn = await embed(...given);
        window.drawings = (window.drawings ?? 0) + 1;
        return drawn;
    };
}"""


def test_a_slow_drawing_in_old_colours_does_not_outlast_the_new(
    page: Page, written: Written
) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(written.html.as_uri())
    figures = page.locator("figure[data-name]")
    figures.first.scroll_into_view_if_needed()
    expect(figures.first).to_have_attribute("data-state", "light")
    near = figures.evaluate_all("all => all.filter(one => one.dataset.state).length")
    page.evaluate(SLOW_FIRST_DRAWING)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_timeout(100)
    page.wait_for_function("near => window.drawings >= 2 * near", arg=near)
    assert figures.first.get_attribute("data-state") == "light"


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


def test_the_keyboard_reaches_the_report_and_opens_its_boxes(page: Page, written: Written) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(written.html.as_uri())
    assert 200 < len(page.inner_text("body").split()) <= 900
    box = page.locator("table", has_text="buffer pool 256 MiB").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900, "the first screen says what was tested"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "report"
    summary = page.locator("details.section > summary").first
    while not summary.evaluate("one => one === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#findings")).to_be_visible()
    page.goto(f"{written.html.as_uri()}#how-to-repeat-it")
    expect(page.locator("#how-to-repeat-it pre").first).to_be_visible()  # its address opens a box


def test_print_has_all_sections_and_the_charts_that_stand_still(
    report: Page, tmp_path: Path
) -> None:
    unfold(report, wanted=False)
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
    unfold(report, wanted=True)
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 2


def test_without_scripts_the_page_is_whole(browser: Browser, written: Written) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written.html.as_uri())
    for summary in page.locator("details.section > summary").all():
        summary.click()
    assert all(one.is_visible() for one in page.locator(".still svg.chart").all())
    assert not any(one.is_visible() for one in page.locator("button").all())
    context.close()


def test_without_pictures_the_browser_draws_every_chart_and_prints_it(
    page: Page, tmp_path: Path
) -> None:
    made = whole()
    story = story_of(made.plan, made.measurements, made.judgement, made.facts)
    file = tmp_path / "report.html"
    file.write_text(html.render(story, []), encoding="utf-8")
    page.goto(file.as_uri())
    for figure in page.locator("figure[data-name]").all():
        expect(figure).to_have_attribute("data-state", "light")
    page.emulate_media(media="print")
    low = "all => all.filter(one => one.offsetHeight < 50).length"
    charts = page.locator(".moving")
    assert (charts.count(), charts.evaluate_all(low)) == (len(story.figures), 0)


def test_the_chinese_page_is_chinese_in_its_charts_too(pages: dict[Language, Shared]) -> None:
    page = pages[Language.ZH].page
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    words = page.locator(".moving svg text").evaluate_all("all => all.map(one => one.textContent)")
    assert {"线程数（连接数）", "每秒事务数", "更慢，超出等价界值"} <= set(words)
    expect(page.get_by_role("button", name="深色配色")).to_be_visible()


def test_chinese_is_set_in_the_font_that_the_page_carries(pages: dict[Language, Shared]) -> None:
    page = pages[Language.ZH].page
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    for where in (
        ".conclusion p",
        "td:last-child",
        "summary h2",
        ".moving svg .role-axis-title text",
    ):
        text = page.locator(where).first.text_content()
        node = session.send("DOM.querySelector", {"nodeId": root, "selector": where})["nodeId"]
        fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
        carried = sum(font["glyphCount"] for font in fonts if font["isCustomFont"])
        assert carried == len(CHINESE.findall(text or "")) > 0, where
