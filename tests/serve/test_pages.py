"""The pages: what each shows, and that nothing from a run becomes markup or a path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.language.catalogues import Language
from dbdyno.serve.guard import Guard
from dbdyno.serve.pages import TEMPLATES, WORDS, application
from dbdyno.store.store import FEED_NAME
from support import making
from support.asked import ask
from support.made_workspace import runs_of, stored_run

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def pages(tmp_path: Path) -> Guard:
    return application(runs_of(tmp_path))


def test_the_list_leads_to_every_run(pages: Guard, tmp_path: Path) -> None:
    assert "holds no run yet" in ask(pages, "/").text
    run_id = stored_run(tmp_path, blocks=1)
    answer = ask(pages, "/")
    assert answer.status == 200
    assert f'href="/runs/{run_id}"' in answer.text


def test_a_report_brings_its_own_policy_and_a_way_back(pages: Guard, tmp_path: Path) -> None:
    run_id = stored_run(tmp_path)
    answer = ask(pages, f"/runs/{run_id}")
    assert answer.status == 200
    assert "script-src &#39;sha256-" in answer.text
    assert '<a href="/">All runs</a>' in answer.text
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert "worse" in answer.text


def test_every_page_speaks_the_language_that_was_asked_for(tmp_path: Path) -> None:
    chinese = application(runs_of(tmp_path), Language.ZH)
    run_id = stored_run(tmp_path)
    for path in ("/", f"/runs/{run_id}", f"/runs/{run_id}/live", "/nowhere"):
        page = ask(chinese, path).text
        assert '<html lang="zh-Hans">' in page
        visible = re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", "\n", page, flags=re.S)
        kept = re.sub(f"dbdyno (report|replay|bundle|compare|serve)|{making.A}", "", visible)
        assert re.findall("[A-Za-z]{2,} [a-z]{2,}", kept) == []


@pytest.mark.parametrize(
    "path",
    [
        "/runs/nobody",
        "/runs/nobody/live",
        "/runs/nobody/events",
        "/runs/..%2f..%2fetc/live",
        "/static/../pages.py",
        "/static/base.html.j2",
        "/nothing",
    ],
)
def test_what_is_not_there_is_said(pages: Guard, tmp_path: Path, path: str) -> None:
    stored_run(tmp_path, blocks=1)
    answer = ask(pages, path)
    assert answer.status == 404
    assert "<h1>This cannot be shown</h1>" in answer.text


def test_nothing_from_a_run_becomes_markup(pages: Guard, tmp_path: Path) -> None:
    run_id = stored_run(tmp_path, title=HOSTILE)
    for path in ("/", f"/runs/{run_id}", f"/runs/{run_id}/live"):
        text = ask(pages, path).text
        assert HOSTILE not in text
        assert "&lt;script&gt;" in text


def test_the_events_of_a_run_are_its_feed(pages: Guard, tmp_path: Path) -> None:
    run_id = stored_run(tmp_path, blocks=1)
    folder = tmp_path / run_id
    folder.mkdir()
    (folder / FEED_NAME).write_text('{"kind": "stage", "text": "restoring"}\n')
    answer = ask(pages, f"/runs/{run_id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert 'data: {"kind": "stage", "text": "restoring"' in answer.text
    assert answer.text.endswith('data: {"kind": "closed"}\n\n')
    behind = ask(pages, f"/runs/{run_id}/events", headers={"last-event-id": "9999"})
    assert "restoring" not in behind.text
    strange = ask(pages, f"/runs/{run_id}/events", headers={"last-event-id": "-1"})
    assert "restoring" in strange.text
    endless = ask(pages, f"/runs/{run_id}/events", headers={"last-event-id": "9" * 5000})
    assert (endless.status, "restoring" in endless.text) == (200, True)


def test_nothing_can_be_changed_from_a_page(pages: Guard, tmp_path: Path) -> None:
    run_id = stored_run(tmp_path, blocks=1)
    for method in ("POST", "PUT", "DELETE"):
        assert ask(pages, f"/runs/{run_id}", method=method).status == 405


@pytest.mark.parametrize("name", ["colours.js", "live.js", "page.css"])
def test_style_and_scripts_are_served(pages: Guard, name: str) -> None:
    answer = ask(pages, f"/static/{name}")
    assert answer.status == 200
    assert len(answer.text) > 200


# Every word that a page shows is there, and can be shown in another language.


def test_templates_and_scripts_use_every_word_and_only_those() -> None:
    text = "".join(file.read_text() for file in TEMPLATES.iterdir())
    used = set(re.findall(r"\bwords\.(\w+)", text))
    of_other_use = {"warmup", "measured", "no_page"}
    assert used | of_other_use == WORDS.keys()
