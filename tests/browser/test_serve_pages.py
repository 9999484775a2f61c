"""The local page in a real browser: a run that goes on, and the list."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.cli.test_progress import interval

from dbdyno.cli import progress
from dbdyno.serve.guard import Guard
from dbdyno.store.store import Store
from support import making
from support.axe import CONTRAST, RULES, violations
from support.lab_process import until
from support.made_workspace import stored_run
from support.source import ROOT
from support.vendor import served as served_files


@contextmanager
def served(workspace: Path) -> Iterator[str]:
    """`dbdyno serve` as it is typed; gives the address that it prints."""
    command = [sys.executable, "-m", "dbdyno", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--workspace", str(workspace)],
        env={"PYTHONPATH": str(ROOT / "lab"), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "runs"
    stored_run(folder)
    stored_run(folder, tps=1100.0)
    return folder


@pytest.fixture(scope="module")
def site(workspace: Path) -> Iterator[str]:
    with served(workspace) as address:
        yield address


LONG_WORD = "ibdata1_" * 30


@pytest.fixture(scope="module")
def ended(workspace: Path) -> str:
    """A run whose only trial failed, in a long word."""
    run_id = stored_run(workspace, trials=1)
    trial = making.measurement(making.B, failure=LONG_WORD)
    with progress.feeding(workspace / run_id) as lab:
        lab.begin(trial.trial, 1, 6, 60)
        lab.end(trial.trial, trial, 0)
    return run_id


def quiet(page: Page, site: str) -> list[str]:
    """Addresses beside the site's own that the page asks for; filled as it goes on."""
    strange: list[str] = []
    page.on(
        "request",
        lambda one: None if one.url.startswith((site, "data:")) else strange.append(one.url),
    )
    return strange


OTHERS_PAGE = """
<link rel=stylesheet href=SITE?style><link rel=prefetch href=SITE?prefetch>
<script src=SITE?script></script><img src=SITE?image><video src=SITE?video></video>
<iframe src=SITE?frame></iframe><object data=SITE?object></object><iframe name=inner></iframe>
<form method=post target=inner action=SITE?post><input name=a></form><a href=SITE?link>runs</a>
<script>
document.forms[0].submit()
fetch("SITE?fetch").catch(() => 0)
fetch("SITE?blind", {mode: "no-cors"}).catch(() => 0)
fetch("SITE?asked", {method: "PUT", headers: {"x-a": "1"}}).catch(() => 0)
new EventSource("SITE?events")
navigator.sendBeacon("SITE?beacon", "a")
</script>
"""


def test_no_page_of_another_site_reaches_the_pages(page: Page, tmp_path: Path) -> None:
    came, reached = set[str](), set[str]()

    async def pages(scope: Scope, receive: Receive, send: Send) -> None:
        reached.add(scope["query_string"].decode())
        await PlainTextResponse("the runs")(scope, receive, send)

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        came.add(scope["query_string"].decode())
        await Guard(pages)(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    site = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server = uvicorn.Server(uvicorn.Config(counted, lifespan="off", log_level="critical"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        page.goto(f"{site}?typed")
        (tmp_path / "others.html").write_text(OTHERS_PAGE.replace("SITE", site))
        with served_files(tmp_path) as other:
            page.goto(other.replace("127.0.0.1", "localhost") + "/others.html")
        ways = {*re.findall(r"SITE\?(\w+)", OTHERS_PAGE)}
        until(lambda: ways - came <= {"link"}, "the page has tried all ways", 20)
        page.get_by_role("link").click()
        assert "Another site asked" in page.content()
    finally:
        server.should_exit = True
        thread.join()
    assert reached == {"typed"}


def test_from_the_list_to_a_report_and_back(page: Page, site: str) -> None:
    strange = quiet(page, site)
    page.goto(site)
    assert page.locator("tbody tr").count() == 2
    conclusions = page.locator("td[data-label='Verdict']")
    expect(conclusions.first).to_contain_text("slower −30.0 %")
    expect(conclusions.last).to_contain_text("slower −30.0 %")
    page.get_by_role("link", name="Report").first.click()
    figure = page.locator("figure[data-name]").first
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-state", "light")  # charts move under the site's policy
    page.get_by_role("link", name="All runs").click()
    assert page.url == site
    assert strange == []


def test_the_colours_chosen_on_a_page_hold_on_all(page: Page, site: str) -> None:
    page.goto(site)
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    page.get_by_role("button", name="Dark colours").click()
    for link in ("Live", "Report"):
        page.get_by_role("link", name=link).first.click()
        switch = page.get_by_role("button", name="Dark colours")
        expect(switch).to_have_attribute("aria-pressed", "true")
        expect(page.locator("body")).to_have_css("background-color", "rgb(20, 24, 29)")


BROKEN_WORDS = """() => {
    const broken = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        for (const word of walker.currentNode.data.matchAll(/[\\w.:]+/g)) {
            const range = document.createRange();
            range.setStart(walker.currentNode, word.index);
            range.setEnd(walker.currentNode, word.index + word[0].length);
            const tops = new Set([...range.getClientRects()].map((line) => line.top));
            if (tops.size > 1) broken.push(word[0]);
        }
    }
    return broken;
}"""


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_words_stay_whole_and_links_in_sight(page: Page, site: str, width: int, ended: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for path, rows in (("", 2), (f"runs/{ended}/live", 1)):
        page.goto(site + path)
        expect(page.locator("tbody tr").nth(rows - 1)).to_be_visible()
        assert set(page.evaluate(BROKEN_WORDS)) <= {LONG_WORD}, path
        cut = page.locator(".wide").evaluate("one => one.scrollWidth - one.clientWidth")
        assert cut == 0, path
    page.goto(site)
    for link in page.get_by_role("link", name="Live").all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


@contextmanager
def running(workspace: Path) -> Iterator[tuple[str, progress.Feed]]:
    """A run in progress without a stored trial, and its feed."""
    run_id = stored_run(workspace, trials=0)
    with (
        Store.open(workspace) as store,
        store.locked(run_id),
        progress.feeding(workspace / run_id) as lab,
    ):
        yield run_id, lab


FIRST, SECOND = (making.measurement(one, tps=t) for one, t in ((making.A, 900), (making.B, 700)))


def test_the_steps_before_the_first_trial_are_seen(page: Page, site: str, workspace: Path) -> None:
    with running(workspace) as (run_id, lab):
        for kind in ("__proto__", "__defineGetter__"):
            lab.add(kind)  # known to every object, and to no page
        lab.stage("mysql:5.7.22: loading table 2, 35 %")
        page.goto(f"{site}runs/{run_id}/live")
        expect(page.locator("#stage")).to_have_text("mysql:5.7.22: loading table 2, 35 %")
        trials = page.get_by_role("progressbar", name="Trials done")
        assert trials.evaluate("one => [one.value, one.max]") == [0, 6]
        step = page.get_by_role("progressbar", name="Current step")
        assert step.evaluate("one => one.position") == 0.35
        assert page.locator("figure").is_hidden(), "no blank where the chart will be"
        lab.begin(FIRST.trial, 2, 6, 60)
        expect(page.locator("#stage")).to_have_text("starting")
        assert trials.evaluate("one => [one.value, one.max]") == [1, 6]
        assert step.is_hidden()


def test_the_answers_of_the_last_block_are_seen(page: Page, site: str, workspace: Path) -> None:
    with running(workspace) as (run_id, lab):
        page.goto(f"{site}runs/{run_id}/live")
        for text in ("after 3 blocks: b reads faster", "after 3 blocks: b writes slower"):
            lab.note(text)
        answers = ["after 3 blocks: b reads faster", "b writes slower"]
        expect(page.locator("#so-far p")).to_have_text(answers)
        for text in ("python3 took 12 % of the CPU", "after 4 blocks: b reads faster"):
            lab.note(text)
        expect(page.locator("#so-far")).to_have_text("after 4 blocks: b reads faster")
        assert page.locator("#notes").inner_text() == "python3 took 12\u00a0% of the CPU"


def test_a_run_is_seen_while_it_goes_on(page: Page, site: str, workspace: Path) -> None:
    troubled = FIRST.model_copy(update={"failure": "<b>the server died</b>"})
    before = FIRST.trial.model_copy(update={"block": -1, "is_pilot": True})
    searched = FIRST.model_copy(update={"trial": before})
    with running(workspace) as (run_id, lab):
        lab.begin(searched.trial, 1, 2, 90)
        lab.end(searched.trial, searched, 80)
        lab.begin(FIRST.trial, 1, 6, 60)
        for at_s in range(1, 6):
            phase = "warmup" if at_s <= 2 else "measured"
            lab.interval(FIRST.trial, interval(at_s, phase), 60 - at_s)
        page.goto(f"{site}runs/{run_id}/live")
        page.wait_for_selector("#chart[data-rows='5']")
        assert page.locator("h1").inner_text() == "made"
        assert page.locator(".byline").inner_text().startswith(run_id)
        assert page.locator("#place").inner_text().endswith("(block 1)")
        assert page.locator("#stage").inner_text() == "measuring"
        assert page.locator("#speed").inner_text() == "3 s: TPS 1\u202f000, p95 9.88 ms"
        shaded, drawn = (
            page.locator(f"#chart .mark-{mark} path").first.evaluate("one => one.getBBox().width")
            for mark in ("rect", "line")
        )
        assert shaded == pytest.approx(2 / 4 * drawn, rel=0.01), "2 s of warm-up, 4 s of line"
        lab.interval(FIRST.trial, interval(5.3, "drain", events=90, seconds=0.3), 55)
        expect(page.locator("#stage")).to_have_text("finishing")
        lab.end(FIRST.trial, FIRST, 50)
        lab.begin(SECOND.trial, 2, 6, 50)
        expect(page.locator("#place")).to_contain_text("trial 2/6")
        assert page.locator("#chart").get_attribute("data-rows") == "5", "no axes without a line"
        lab.interval(SECOND.trial, interval(1), 49)
        page.wait_for_selector("#chart[data-rows='6']")
        assert page.locator("#chart .mark-line path").count() >= 4, "two systems, two panels"
        assert page.locator("#left").inner_text() == "49 s left"
        lab.end(troubled.trial, troubled, 40)
        page.wait_for_selector("#ended tr >> nth=2")
    expect(page.locator("#stage")).to_contain_text("No measurement is in progress")
    rows = page.locator("#ended tr").all_inner_texts()
    assert "<b>the server died</b>" in rows[0]
    assert "900.0" in rows[1]
    assert [row.split("\t")[0] for row in rows] == ["1", "1", "pilot"]


def test_everybody_can_use_the_pages(
    browser: Browser, site: str, axe: str, workspace: Path
) -> None:
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(site)
    run_id = page.locator("tbody th").last.inner_text()
    paths = ["", f"runs/{run_id}/live", "nothing"]
    found = {}
    for path in paths:
        page.goto(site + path)
        for scheme, rules in (("light", RULES), ("dark", CONTRAST)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            found[path, scheme] = violations(page, axe, rules)
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == 360, path
    context.close()
    assert {where: wrong for where, wrong in found.items() if wrong} == {}
