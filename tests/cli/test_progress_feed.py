"""What a watching page finds in the feed, and a feed that cannot be written."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.cli.test_progress import interval

from dbdyno.cli import progress
from dbdyno.cli.progress import GrowingFile, PlainProgress
from dbdyno.serve import live
from support import making


def shown() -> tuple[PlainProgress, io.StringIO]:
    screen = io.StringIO()
    return PlainProgress(Console(file=screen, width=200), 3), screen


def watch(seen: progress.FedProgress) -> None:
    first = making.measurement(making.A, tps=1000.0)
    seen.stage("mysql:5.7.22: restoring the dataset")
    seen.begin(first.trial, 1, 12, 3725.0)
    seen.interval(first.trial, interval(1), 60)
    seen.end(first.trial, first, 48.0)
    failed = first.model_copy(update={"failure": "the server died"})
    seen.end(failed.trial, failed, 48.0)


def events(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / progress.FEED_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_event_is_a_line_and_a_resumed_run_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        plain, screen = shown()
        with progress.fed(plain, tmp_path / "run", 3) as seen:
            watch(seen)
        assert "restoring" in screen.getvalue(), "the screen is told as before"
    told = events(tmp_path / "run")
    once = ["run", "stage", "begin", "interval", "end", "end", "over"]
    assert [event["kind"] for event in told] == once * 2
    begin, second, end, failed = told[2:6]
    assert (begin["system"], begin["block"], begin["number"], begin["total"]) == (
        making.A,
        1,
        1,
        12,
    )
    assert begin["cell"] == "oltp_read_write, 8 threads"
    assert second["transactions_per_s"] == pytest.approx(1000)
    assert second["latency_ms_p95"] == pytest.approx(9.88, abs=0.01)
    assert end["transactions_per_s"] == pytest.approx(1000)
    assert (failed["failure"], failed["transactions_per_s"]) == ("the server died", None)


def test_a_run_that_is_broken_off_is_over_too(tmp_path: Path) -> None:
    plain, _ = shown()
    with pytest.raises(KeyboardInterrupt), progress.fed(plain, tmp_path, 3):
        raise KeyboardInterrupt
    assert [event["kind"] for event in events(tmp_path)] == ["run", "over"]


def test_the_page_reads_what_the_lab_writes() -> None:
    assert progress.FEED_NAME == live.FEED


def test_a_feed_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    plain, screen = shown()
    with progress.fed(plain, tmp_path / "run", 3) as seen:
        watch(seen)
    assert "the server died" in screen.getvalue()


def test_a_disk_that_is_full_ends_the_feed_only() -> None:
    plain, screen = shown()
    with suppress(OSError), Path("/dev/full").open("w") as full:
        watch(progress.FedProgress(plain, GrowingFile(full)))
    assert "the server died" in screen.getvalue()
