"""A real run on real servers, watched in a real browser from its first trial to its report."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.test_serve_pages import served

from dbdyno.store.store import FEED_NAME, Store
from support import lab_process
from support.real_server import CROWDED, SMALL_REDO_TYPED

pytestmark = pytest.mark.live
SYSTEMS = ("a=mysql:5.7.22", "b=mysql:5.7.22")
TINY = ("--tables", "1", "--table-size", "1000", "--warmup", "0", "--window", "3")


def test_a_run_is_watched_until_its_report_is_there(page: Page) -> None:
    with lab_process.workspace() as folder:
        Store.open(folder).close()
        # The server makes the chart program when it is first asked for, which takes a while: here
        # before the run, so that the page is there in time to see it.
        with served(folder) as site:
            page.goto(f"{site}/static/charts.js", timeout=120_000)
            _watched(page, site, folder)


def _watched(page: Page, site: str, folder: Path) -> None:
    compared = (
        "compare",
        *SYSTEMS,
        "--threads",
        "2",
        "--blocks",
        "1",
        *TINY,
        *SMALL_REDO_TYPED,
        *CROWDED,
    )
    with lab_process.started(folder, *compared) as lab:
        lab_process.until(lambda: list(folder.glob(f"*/{FEED_NAME}")), "a feed", 60)
        page.goto(site)
        page.get_by_role("link", name="Live").click()
        expect(page.locator("#chart svg")).to_be_visible(timeout=120_000)
        expect(page.locator("#ended tr")).to_have_count(2, timeout=120_000)
        assert lab.wait(timeout=60) == 0
        expect(page.locator("#stage")).to_contain_text("No measurement is in progress")
        page.get_by_role("link", name="Report").click()
        assert "a and b" in page.locator("h1").inner_text()
        page.goto(site)
        assert "complete" in page.locator("tbody tr").inner_text()
