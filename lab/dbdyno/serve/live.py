"""A run in progress as a stream of events: its feed so far, then each new line.

The lab writes the feed, a file; this module only reads it, at most its last `FEED_BYTES_MAX`. A
late watcher gets the end of every trial in them, and the seconds of the current trial only. A
reconnecting watcher names its last place and goes on behind it. An incomplete line waits for the
next read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import anyio

from dbdyno.errors import StoreError
from dbdyno.files import open_own
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.numbers import number
from dbdyno.report.tell.verdicts import duration

POLL_EVERY_S: Final = 0.25
HEARTBEAT_S: Final = 10.0
"""How often a silent stream says something, so that a closed connection is noticed."""
FEED_BYTES_MAX: Final = 4 * 2**20
"""Part of a feed that is read at once: six hours of seconds."""
LINE_BYTES_MAX: Final = 65_536
NUMBER_MAX: Final = 2**53
"""Largest whole number that a browser reads exactly."""
NUMBERS: Final = ("transactions_per_s", "latency_ms_p95")
"""Numbers of an event that are shown in words."""


async def stream(
    path: Path, is_running: Callable[[], bool], seen: int = 0, language: Language = Language.EN
) -> AsyncIterator[bytes]:
    """Server-sent events of a run until its end; their ids are places in the file.

    Args:
        path: the feed.
        is_running: test for a lab at work on the run.
        seen: place of the watcher's last event; 0 for all.
        language: of the words for its numbers.
    """
    place, events = await anyio.to_thread.run_sync(read, path, seen)
    for end, event in events if seen else caught_up(events):
        yield _event(end, worded(event, language))
    spoken = time.monotonic()
    while True:
        running = await anyio.to_thread.run_sync(is_running)
        place, events = await anyio.to_thread.run_sync(read, path, place)
        for end, event in events:
            yield _event(end, worded(event, language))
        if not events and not running:
            yield _event(place, {"kind": "closed"})
            return
        if events:
            spoken = time.monotonic()
        elif time.monotonic() - spoken > HEARTBEAT_S:
            spoken = time.monotonic()
            yield b": nothing new\n\n"
        await anyio.sleep(POLL_EVERY_S)


def read(path: Path, start: int) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """Complete events behind `start`, each with the place of its end, and the last place.

    A feed that is missing, no regular file or another user's is empty. Other lines are skipped.
    """
    try:
        with os.fdopen(open_own(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            start = max(start, os.fstat(file.fileno()).st_size - FEED_BYTES_MAX)
            file.seek(start)
            content = file.read(FEED_BYTES_MAX)
    except (OSError, StoreError):
        return start, []
    is_endless = b"\n" not in content and len(content) > LINE_BYTES_MAX
    whole = content if is_endless else content[: content.rfind(b"\n") + 1]
    events, place = [], start
    for line in whole.splitlines(keepends=True):
        place += len(line)
        event = _parsed(line)
        if event is not None:
            events.append((place, event))
    return start + len(whole), events


def caught_up(
    events: list[tuple[int, dict[str, Any]]],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Drop the seconds of completed trials."""
    ends = [index for index, (_, event) in enumerate(events) if event["kind"] == "end"]
    last = ends[-1] if ends else -1
    for index, (place, event) in enumerate(events):
        if event["kind"] not in ("interval", "stage") or index > last:
            yield place, event


def worded(event: dict[str, Any], language: Language) -> dict[str, Any]:
    """Add the words for an event's numbers, in the report's digits."""
    said: dict[str, str] = {
        name: number(event[name], BY_NAME[name].decimals)
        for name in NUMBERS
        if isinstance(event.get(name, ""), int | float | None)
    }
    if isinstance(left_s := event.get("left_s"), int):
        said["left"] = said_in(say("{time} left", time=duration(left_s)), language)
    return {**event, "said": said}


def _parsed(line: bytes) -> dict[str, Any] | None:
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(event, dict) and isinstance(event.get("kind"), str)
    return event if is_event and all(map(_is_plain, event.values())) else None


def _is_plain(value: object) -> bool:
    """Test for a text, or a number that a browser can read."""
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, int | float) and abs(value) <= NUMBER_MAX)
    )


def _event(place: int, event: dict[str, Any]) -> bytes:
    return f"id: {place}\ndata: {json.dumps(event)}\n\n".encode()
