"""The local page in a real browser: a run that goes on, and the list."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.cli.test_progress import interval

from dbdyno.cli import progress
from dbdyno.store.store import Store
from support import making
from support.axe import CONTRAST, RULES, violations
from support.made_workspace import stored_run
from support.source import ROOT


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


def quiet(page: Page, site: str) -> list[str]:
    """Addresses beside the site's own that the page asks for; filled as it goes on."""
    strange: list[str] = []
    page.on(
        "request",
        lambda one: None if one.url.startswith((site, "data:")) else strange.append(one.url),
    )
    return strange


def test_from_the_list_to_a_report_and_back(page: Page, site: str) -> None:
    strange = quiet(page, site)
    page.goto(site)
    assert page.locator("tbody tr").count() == 2
    page.get_by_role("link", name="Report").first.click()
    figure = page.locator("figure[data-name]").first
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-state", "light")  # charts move under the site's policy
    page.get_by_role("link", name="All runs").click()
    assert page.url == site
    assert strange == []


def test_a_run_is_seen_while_it_goes_on(page: Page, site: str, workspace: Path) -> None:
    run_id = stored_run(workspace, trials=0)
    first, second = (
        making.measurement(one, tps=t) for one, t in ((making.A, 900), (making.B, 700))
    )
    troubled = first.model_copy(update={"failure": "<b>the server died</b>"})
    before = first.trial.model_copy(update={"block": -1, "is_pilot": True})
    searched = first.model_copy(update={"trial": before})
    with (
        Store.open(workspace) as store,
        store.locked(run_id),
        progress.feeding(workspace / run_id) as lab,
    ):
        lab.begin(searched.trial, 1, 2, 90)
        lab.end(searched.trial, searched, 80)
        lab.begin(first.trial, 1, 6, 60)
        for at_s in range(1, 6):
            lab.interval(first.trial, interval(at_s), 60 - at_s)
        page.goto(f"{site}runs/{run_id}/live")
        page.wait_for_selector("#chart[data-rows='5']")
        assert page.locator("h1").inner_text() == "made"
        assert page.locator(".byline").inner_text().startswith(run_id)
        assert page.locator("#stage").inner_text().endswith("(block 1)")
        lab.end(first.trial, first, 50)
        lab.begin(second.trial, 2, 6, 50)
        expect(page.locator("#stage")).to_contain_text("trial 2/6")
        assert page.locator("#chart").get_attribute("data-rows") == "5", "no axes without a line"
        lab.interval(second.trial, interval(1), 49)
        page.wait_for_selector("#chart[data-rows='6']")
        assert page.locator("#chart .mark-line path").count() >= 4, "two systems, two panels"
        assert "trial 2/6" in page.locator("#stage").inner_text()
        assert "0:00:49 left" in page.locator("#speed").inner_text()
        lab.end(troubled.trial, troubled, 40)
        page.wait_for_selector("#ended tr >> nth=2")
    expect(page.locator("#stage")).to_contain_text("Nothing is being measured")
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
