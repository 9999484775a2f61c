"""The stream of a run: what a late watcher gets, and lines that are incomplete or no events."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.language.catalogues import Language
from dbdyno.serve import live
from dbdyno.store.store import FEED_NAME


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "POLL_EVERY_S", 0.005)


def line(kind: str, **fields: object) -> str:
    return json.dumps({"kind": kind, **fields}) + "\n"


FIRST = line("begin", n=1) + line("interval", n=1) + line("end", n=1)
SECOND = line("stage", n=2) + line("begin", n=2) + line("interval", n=2)


def streamed(path: Path, is_running: Callable[[], bool], seen: int = 0) -> list[tuple[int, dict]]:
    """The whole stream, as a browser takes it apart."""

    async def whole() -> bytes:
        return b"".join([part async for part in live.stream(path, is_running, seen)])

    parts = anyio.run(whole).decode().split("\n\n")[:-1]
    events = [part.removeprefix("id: ").split("\ndata: ") for part in parts if part[0] != ":"]
    return [(int(place), json.loads(text)) for place, text in events]


def kinds(events: list[tuple[int, dict[str, Any]]]) -> list[str]:
    return [f"{event['kind']}{event.get('n', '')}" for _, event in events]


def test_a_late_watcher_is_told_ends_but_only_the_present_seconds(tmp_path: Path) -> None:
    feed = tmp_path / FEED_NAME
    feed.write_text(line("run") + FIRST + SECOND)
    events = streamed(feed, lambda: False)
    assert kinds(events) == ["run", "begin1", "end1", "stage2", "begin2", "interval2", "closed"]
    assert events[-1][0] == feed.stat().st_size


def test_a_watcher_that_was_cut_off_goes_on_behind_what_it_saw(tmp_path: Path) -> None:
    feed = tmp_path / FEED_NAME
    feed.write_text(FIRST + SECOND)
    told = kinds(streamed(feed, lambda: False, seen=len(FIRST)))
    assert told == ["stage2", "begin2", "interval2", "closed"]


def test_what_is_written_meanwhile_is_told_until_nobody_runs_it(tmp_path: Path) -> None:
    feed = tmp_path / FEED_NAME
    parts = ["", FIRST[:10], FIRST[10:], SECOND, ""]

    def is_running() -> bool:
        with feed.open("a") as file:
            file.write(parts.pop(0))
        return bool(parts)

    first = ["begin1", "interval1", "end1"]
    assert kinds(streamed(feed, is_running)) == [*first, "stage2", "begin2", "interval2", "closed"]


def test_without_a_feed_or_behind_its_end_nothing_is_told(tmp_path: Path) -> None:
    feed = tmp_path / "f"
    assert kinds(streamed(feed, lambda: False)) == ["closed"]
    feed.write_text(FIRST)
    assert kinds(streamed(feed, lambda: False, seen=10**6)) == ["closed"]


@pytest.mark.parametrize(
    ("language", "left"),
    [(Language.EN, "3 min 52 s left"), (Language.ZH, "剩余 3 分 52 秒")],
)
def test_numbers_have_the_digits_of_a_report(language: Language, left: str) -> None:
    event = {"kind": "interval", "transactions_per_s": 2390.74, "latency_ms_p95": 9.6149}
    said = live.worded({**event, "left_s": 232}, language)["said"]
    assert said == {
        "transactions_per_s": "2\u202f391",
        "latency_ms_p95": "9.61",
        "left": left,
    }
    assert live.worded({"kind": "end", "latency_ms_p95": None}, language)["said"] == {
        "latency_ms_p95": "—"
    }
    damaged = {"kind": "end", "transactions_per_s": "x", "latency_ms_p95": [], "left_s": None}
    assert live.worded(damaged, language)["said"] == {}


@pytest.mark.parametrize(
    "strange",
    [
        "[" * 60_000,
        f'{{"kind": "note", "text": {"[" * 900}{"]" * 900}}}',
        '{"kind": "interval", "at_s": 1e999}',
        '{"kind": "interval", "at_s": NaN}',
        f'{{"kind": "end", "latency_ms_p95": {"9" * 400}}}',
    ],
)
def test_lines_that_no_browser_could_take_are_left_out(tmp_path: Path, strange: str) -> None:
    feed = tmp_path / FEED_NAME
    feed.write_text(f"{strange}\n{line('note', text=chr(0xD800))}")
    assert kinds(streamed(feed, lambda: False)) == ["note", "closed"]


def test_only_the_end_of_an_endless_feed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = tmp_path / FEED_NAME
    feed.touch()
    os.truncate(feed, 3 * 2**30)
    assert live.read(feed, 0) == (3 * 2**30, [])
    feed.write_text("".join(line("note", n=n) for n in range(100)))
    monkeypatch.setattr(live, "FEED_BYTES_MAX", 2 * len(line("note", n=99)))
    place, events = live.read(feed, 0)
    assert place == feed.stat().st_size
    assert [event["n"] for _, event in events] == [98, 99]


def test_a_feed_that_is_no_file_of_its_own_is_not_read(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(FIRST)
    feed = tmp_path / FEED_NAME
    for target in (other, Path("/dev/zero")):
        feed.symlink_to(target)
        assert live.read(feed, 0) == (0, [])
        feed.unlink()
    os.mkfifo(feed)
    assert live.read(feed, 0) == (0, [])


@given(st.binary(max_size=400))
def test_no_file_is_too_strange_to_be_read(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder) / FEED_NAME
        feed.write_bytes(content)
        place, events = live.read(feed, 0)
    assert place == content.rfind(b"\n") + 1
    assert all(isinstance(event["kind"], str) for _, event in events)
