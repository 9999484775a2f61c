"""What a person sees while a run goes on, as golden text."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from dbdyno.cli import progress
from dbdyno.cli.progress import GrowingFile, growing
from support import making


def interval(at_s: float, phase: str = "measured", **changed: object) -> dict[str, object]:
    return {
        "at_s": at_s,
        "phase": phase,
        "connections": 8,
        "events": 500,
        "queries": 10_000,
        "reads": 7000,
        "writes": 2000,
        "others": 1000,
        "errors": 0,
        "reconnects": 0,
        "seconds": 0.5,
        "latency_ms": {"50": 6.5, "95": 9.876, "99": 14.0},
        **changed,
    }


def watch(seen: progress.PlainProgress | progress.LiveProgress) -> None:
    first = making.measurement(making.A, tps=1000.0)
    failed = making.measurement(making.B, failure="mysql:8.0.15 died in the window")
    seen.stage("mysql:5.7.22: restoring the dataset")
    seen.begin(first.trial, 1, 12, 3725.0)
    for second in range(1, 22):
        seen.interval(first.trial, interval(second, "warmup" if second < 3 else "measured"), 60)
    seen.end(first.trial, first, 48.0)
    seen.begin(failed.trial, 2, 12, 47.6)
    seen.interval(failed.trial, interval(10, errors=3), 185)
    seen.end(failed.trial, failed, 30.0)


GOLDEN = """\
mysql:5.7.22: restoring the dataset
trial 1/12, block 1/3: mysql:5.7.22, oltp_read_write, 8 threads; 1 h 02 min left
  measured 10 s: TPS 1000.0, QPS 20000.0, p95 9.88 ms; 1 min 00 s left
  measured 20 s: TPS 1000.0, QPS 20000.0, p95 9.88 ms; 1 min 00 s left
  mysql:5.7.22, oltp_read_write, 8 threads: TPS 1000.00, QPS 20000.00, p95 12.38 ms
trial 2/12, block 1/3: mysql:8.0.15, oltp_read_write, 8 threads; 48 s left
  measured 10 s: TPS 1000.0, QPS 20000.0, p95 9.88 ms, errors 3; 3 min 05 s left
  mysql:8.0.15, oltp_read_write, 8 threads: failed: mysql:8.0.15 died in the window
"""


def test_a_log_gets_a_line_a_trial_and_one_every_ten_seconds() -> None:
    log = io.StringIO()
    with progress.shown(Console(file=log, width=60), blocks=3) as seen:
        watch(seen)
    assert log.getvalue() == GOLDEN


def test_a_terminal_keeps_the_finished_trials_and_redraws_the_rest() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=120, force_terminal=True, color_system=None)
    with progress.shown(console, blocks=3) as seen:
        watch(seen)
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert any(
        "block 1: mysql:5.7.22, oltp_read_write, 8 threads: TPS 1000.00" in line for line in lines
    )
    assert any("failed: mysql:8.0.15 died in the window" in line for line in lines)
    assert "trial 2/12, block 1/3: mysql:8.0.15, oltp_read_write, 8 threads" in screen.getvalue()


def test_a_terminal_that_cannot_redraw_gets_the_lines_of_a_log() -> None:
    screen = io.StringIO()
    dumb = Console(file=screen, width=80, force_terminal=True, _environ={"TERM": "dumb"})
    with progress.shown(dumb, blocks=3) as seen:
        watch(seen)
    assert screen.getvalue() == GOLDEN


def test_markup_in_a_message_is_printed_as_it_is() -> None:
    log = io.StringIO()
    with progress.shown(Console(file=log), blocks=1) as seen:
        seen.stage("[red]mysqld[/red] said: no")
    assert log.getvalue() == "[red]mysqld[/red] said: no\n"


def test_an_interval_without_requests_has_no_p95() -> None:
    nothing = interval(3, events=0, queries=0, seconds=0.0, latency_ms={})
    assert progress.speed(nothing) == "measured 3 s: TPS 0.0, QPS 0.0, p95 –"


def test_lines_are_there_at_once_and_behind_those_of_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.txt"
    for line in ("one", "two"):
        with growing(path) as file:
            file.add(line)
            assert path.read_text().endswith(f"{line}\n")
    assert path.read_text() == "one\ntwo\n"


def test_a_file_that_cannot_be_made_takes_lines_and_keeps_none(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    with growing(tmp_path / "run" / "log.txt") as file:
        file.add("one")
    assert (tmp_path / "run").is_file()


def test_a_full_disk_ends_the_file_only() -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:
        file = GrowingFile(full)
        for _ in range(3):
            file.add("one")
        assert file._file is None
