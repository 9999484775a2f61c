"""The pages: what each shows, and that nothing from a run becomes markup or a path."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from threading import Semaphore

import anyio
import pytest

from dbdyno.judge.judgement import JudgedRun
from dbdyno.language.catalogues import Language
from dbdyno.serve.guard import Guard
from dbdyno.serve.pages import TEMPLATES, WORDS, application
from dbdyno.serve.runs import Runs, RunVersion
from dbdyno.store.store import FEED_NAME, Store
from support import making
from support.asked import Answer, answered, ask
from support.made_workspace import runs_of, stored_run

HOSTILE = "<script>alert('x')</script>"


def at_once(pages: Guard, *paths: str) -> list[Answer]:
    """Answers to requests that are sent together."""
    answers = []

    async def one(path: str) -> None:
        answers.append(await answered(pages, path))

    async def whole() -> None:
        async with anyio.create_task_group() as group:
            for path in paths:
                group.start_soon(one, path)

    anyio.run(whole)
    return answers


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


def counted(monkeypatch: pytest.MonkeyPatch, requests: int) -> list[str]:
    """Ids of the runs judged from here on, none before so many requests are there."""
    judged, judge, version = [], Runs.judged, Runs.version
    coming = Semaphore(0)

    def asked(runs: Runs, run_id: str) -> RunVersion:
        coming.release()
        return version(runs, run_id)

    def late(runs: Runs, run_id: str) -> JudgedRun:
        if not judged:
            assert all(coming.acquire(timeout=10) for _ in range(requests))
            time.sleep(0.05)
        judged.append(run_id)
        return judge(runs, run_id)

    monkeypatch.setattr(Runs, "version", asked)
    monkeypatch.setattr(Runs, "judged", late)
    return judged


def test_a_report_is_drawn_once_for_all_who_ask_until_a_trial_is_added(
    pages: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stored_run(tmp_path, blocks=3, trials=4)
    judged = counted(monkeypatch, 5)
    answers = at_once(pages, *[f"/runs/{run_id}"] * 5)
    assert {answer.text for answer in answers} == {ask(pages, f"/runs/{run_id}").text}
    assert judged == [run_id]
    with Store.open(tmp_path) as store:
        trial = making.measurement(making.B, block=2, sequence=5)
        store.append(making.with_trial(trial, run_id=run_id))
    assert ask(pages, f"/runs/{run_id}").text != answers[0].text
    assert judged == [run_id, run_id]


def test_requests_that_would_wait_long_are_refused(
    pages: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stored_run(tmp_path)
    counted(monkeypatch, 5)
    monkeypatch.setattr("dbdyno.serve.pages.WAITING_MAX", 2)
    answers = at_once(pages, *[f"/runs/{run_id}"] * 5)
    assert Counter(answer.status for answer in answers) == {200: 2, 503: 3}
    assert "Try again in a moment" in next(a.text for a in answers if a.status == 503)
    monkeypatch.setattr("dbdyno.serve.pages.WATCHING_MAX", 0)
    assert ask(pages, f"/runs/{run_id}/events").status == 503


def test_the_list_asks_for_conclusions_that_it_lacks_unless_a_run_is_in_progress(
    pages: Guard, tmp_path: Path
) -> None:
    run_id = stored_run(tmp_path)
    wanted = f'data-from="/runs/{run_id}/conclusion">—<'
    assert wanted in ask(pages, "/").text
    with Store.open(tmp_path) as store, store.locked(run_id):
        assert "data-from" not in ask(pages, "/").text
    (tmp_path / run_id).mkdir()
    (tmp_path / run_id / "report.json").write_text('{"verdicts": [{"word": "better"}]}')
    assert wanted in ask(pages, "/").text
    words = ask(pages, f"/runs/{run_id}/conclusion").text
    assert words.startswith("slower −30.0 % [")
    page = ask(pages, "/").text
    assert f">{words}<" in page
    assert "data-from" not in page


def test_a_long_list_has_several_pages(
    pages: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.serve.runs.LISTED_MAX", 2)
    monkeypatch.setattr("dbdyno.serve.pages.LISTED_MAX", 2)
    ids = [stored_run(tmp_path, blocks=1, trials=0) for _ in range(5)][::-1]
    shown, links = [], []
    for address in ("/", "/?from=2", "/?from=4", "/?from=99", "/?from=-1"):
        page = ask(pages, address).text
        shown.append(re.findall('<th scope="row">(.*?)</th>', page))
        links.append(re.findall('href="(/.from=[0-9]*)"', page))
    assert shown == [ids[:2], ids[2:4], ids[4:], [], ids[:2]]
    assert links == [
        ["/?from=2"],
        ["/?from=0", "/?from=4"],
        ["/?from=2"],
        ["/?from=97"],
        ["/?from=2"],
    ]


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


@pytest.mark.parametrize("name", ["colours.js", "live.js", "runs.js", "page.css"])
def test_style_and_scripts_are_served(pages: Guard, name: str) -> None:
    answer = ask(pages, f"/static/{name}")
    assert answer.status == 200
    assert len(answer.text) > 200


# Every word that a page shows is there, and can be shown in another language.


def test_templates_and_scripts_use_every_word_and_only_those() -> None:
    text = "".join(file.read_text() for file in TEMPLATES.iterdir())
    used = set(re.findall(r"\bwords\.(\w+)", text))
    of_other_use = {"warmup", "measured", "no_page", "busy"}
    assert used | of_other_use == WORDS.keys()
