"""Chromium as the system has it, without a window; one for each file, a fresh page for each test.

Its driver keeps an event loop in this thread while it lives, beside which no other may run: so it
ends with the file, and what comes after may have a loop of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from support import axe as axe_core

CHROMIUMS = ("chromium-headless-shell", "chromium", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # The shell without a window takes a third less CPU than the whole browser.
    chromium = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    assert chromium is not None, "tools/requirements.sh test installs chromium-headless-shell"
    expect.set_options(timeout=30_000)  # a slow machine is no failure
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in which an error of a script is an error of the test."""
    context = browser.new_context(color_scheme="light")
    context.set_default_timeout(120_000)
    made = context.new_page()
    troubles: list[str] = []
    made.on("pageerror", lambda error: troubles.append(str(error)))
    yield made
    context.close()
    assert troubles == []


@pytest.fixture(scope="session")
def axe() -> str:
    cache = os.environ.get("DBDYNO_CACHE", "~/.cache/dbdyno")
    return axe_core.program(Path(cache).expanduser() / "tests")
