"""What is told while a run goes on: on the screen as golden text, in its log, in its feed."""

from __future__ import annotations

import io
import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dbdyno.cli import progress
from dbdyno.cli.progress import Feed, GrowingFile, growing
from dbdyno.experiment.context import Progress
from dbdyno.store.store import FEED_NAME
from support import making

TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d ", re.MULTILINE)


def interval(at_s: float, phase: str = "measured", **changed: object) -> dict[str, object]:
    return {
        "at_s": at_s,
        "phase": phase,
        "connections": 8,
        "events": 1000,
        "queries": 20_000,
        "reads": 14_000,
        "writes": 4000,
        "others": 2000,
        "errors": 0,
        "reconnects": 0,
        "seconds": 1.0,
        "latency_ms": {"50": 6.5, "95": 9.876, "99": 14.0},
        **changed,
    }


def watch(seen: Progress) -> None:
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
  measured 8 s: TPS 1000.0; last second: TPS 1000.0, QPS 20000.0, p95 9.88 ms; 1 min 00 s left
  measured 18 s: TPS 1000.0; last second: TPS 1000.0, QPS 20000.0, p95 9.88 ms; 1 min 00 s left
  mysql:5.7.22, oltp_read_write, 8 threads: TPS 1000.00, QPS 20000.00, p95 12.38 ms
trial 2/12, block 1/3: mysql:8.0.15, oltp_read_write, 8 threads; 48 s left
  measured 1 s: TPS 1000.0; last second: TPS 1000.0, QPS 20000.0, p95 9.88 ms, errors 3; \
3 min 05 s left
  mysql:8.0.15, oltp_read_write, 8 threads: failed: mysql:8.0.15 died in the window
"""


def test_a_log_gets_a_line_a_trial_and_one_every_ten_seconds() -> None:
    log = io.StringIO()
    with progress.on_console(Console(file=log, width=60), blocks=3) as seen:
        watch(seen)
    assert log.getvalue() == GOLDEN


def test_a_trial_is_told_of_after_a_load_that_ran_until_it_was_steady() -> None:
    log, trial = io.StringIO(), making.measurement(making.A).trial
    with progress.on_console(Console(file=log, width=60), blocks=3) as seen:
        seen.begin(trial, 1, 12, 60)
        for second in range(1, 121):
            seen.interval(trial, interval(second, "warm-up"), 60)
        for second in range(1, 22):
            seen.interval(trial, interval(second), 60)
    told = [line.partition(":")[0] for line in log.getvalue().splitlines()[-4:]]
    assert told == ["  warm-up 120 s", "  measured 1 s", "  measured 11 s", "  measured 21 s"]


def test_nothing_is_waited_for_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "STDERR_EVERY_S", 0.05)
    monkeypatch.setattr(progress, "LOOK_S", 0.01)
    log = io.StringIO()
    with progress.on_console(Console(file=log, width=60), blocks=3) as seen:
        seen.stage("mysql:5.7.22: restoring the dataset")
        ends = time.monotonic() + 60
        while log.getvalue().count("\n") < 3 and time.monotonic() < ends:
            time.sleep(0.01)
    first, *others = log.getvalue().splitlines()
    assert first == "mysql:5.7.22: restoring the dataset"
    assert len(others) >= 2
    assert all(re.fullmatch(rf"  {re.escape(first)}: for \d+ s now", one) for one in others)


@pytest.mark.parametrize("terminal", [False, True])
def test_what_a_server_said_does_not_steer_the_terminal(
    terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    log = io.StringIO()
    failed = making.measurement(making.B, failure="it died: \x1b]0;owned\x07\n\x9b2J")
    console = Console(file=log, width=120, force_terminal=terminal, color_system=None)
    with progress.on_console(console, blocks=3) as seen:
        seen.stage("\x1b]0;owned\x07")
        seen.end(failed.trial, failed, 30.0)
    assert "it died:  ]0;owned" in log.getvalue()
    assert not any(sign in log.getvalue() for sign in ("\x1b]0", "\x07", "\x9b"))
    progress.note("title \x1b[2J\nnext")
    assert capsys.readouterr().err == "title  [2J\nnext\n"


def test_a_terminal_keeps_the_finished_trials_and_redraws_the_rest() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=120, force_terminal=True, color_system=None)
    with progress.on_console(console, blocks=3) as seen:
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
    with progress.on_console(dumb, blocks=3) as seen:
        watch(seen)
    assert screen.getvalue() == GOLDEN


def test_markup_in_a_message_is_printed_as_it_is() -> None:
    log = io.StringIO()
    with progress.on_console(Console(file=log), blocks=1) as seen:
        seen.stage("[red]mysqld[/red] said: no")
    assert log.getvalue() == "[red]mysqld[/red] said: no\n"


def test_a_rate_is_of_the_whole_phase_so_far() -> None:
    meter = progress.Meter()
    meter.line_of(interval(1, "warmup", events=9000))
    meter.line_of(interval(2, events=1000))
    assert meter.line_of(interval(3, events=600)).startswith(
        "measured 2 s: TPS 800.0; last second: TPS 600.0, "
    )


def test_an_interval_without_requests_has_no_p95() -> None:
    nothing = interval(3, events=0, queries=0, seconds=0.0, latency_ms={})
    assert progress.speed(nothing) == "TPS 0.0, QPS 0.0, p95 –"


def test_lines_are_there_at_once_and_behind_those_of_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.txt"
    for line in ("one", "two"):
        with growing(path) as file:
            file.add(line)
            assert path.read_text().endswith(f"{line}\n")
    assert path.read_text() == "one\ntwo\n"


def test_a_full_disk_ends_the_file_only() -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:
        file = GrowingFile(full)
        for _ in range(3):
            watch(Feed(file))
        assert file._file is None


# The screen, the log and the feed of one run at once.

LOG = """\
mysql:5.7.22: restoring the dataset
trial 1/12, block 1/3: mysql:5.7.22, oltp_read_write, 8 threads; 1 h 02 min left
  measured 60 s: TPS 1000.0; last second: TPS 1000.0, QPS 20000.0, p95 9.88 ms; 1 min 00 s left
  mysql:5.7.22, oltp_read_write, 8 threads: TPS 1000.00, QPS 20000.00, p95 12.38 ms
  mysql:5.7.22, oltp_read_write, 8 threads: failed: the server died
"""


def watch_long(folder: Path) -> str:
    """What the screen shows of a trial of 69 seconds, and of one that fails."""
    screen = io.StringIO()
    first = making.measurement(making.A, tps=1000.0)
    failed = first.model_copy(update={"failure": "the server died"})
    with progress.watched(Console(file=screen, width=200), folder, 3) as seen:
        seen.stage("mysql:5.7.22: restoring the dataset")
        seen.begin(first.trial, 1, 12, 3725.0)
        for second in range(1, 70):
            seen.interval(first.trial, interval(second), 60)
        seen.end(first.trial, first, 48.0)
        seen.end(failed.trial, failed, 48.0)
    return screen.getvalue()


def events(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / FEED_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_resumed_run_goes_on_in_its_log_and_in_its_feed(tmp_path: Path) -> None:
    for _ in range(2):
        assert "measured 10 s" in watch_long(tmp_path / "run")
    written = (tmp_path / "run" / progress.LOG_NAME).read_text()
    assert TIME.sub("", written) == 2 * LOG
    assert len(TIME.findall(written)) == 10
    once = ["run", "stage", "begin", *["interval"] * 69, "end", "end", "over"]
    assert [event["kind"] for event in events(tmp_path / "run")] == once * 2


def test_the_feed_has_numbers_for_a_chart(tmp_path: Path) -> None:
    watch_long(tmp_path)
    _, _, begin, second, *_, end, failed, _ = events(tmp_path)
    assert (begin["system"], begin["cell"]) == (making.A, "oltp_read_write, 8 threads")
    assert (begin["block"], begin["number"], begin["total"]) == (1, 1, 12)
    assert second["transactions_per_s"] == pytest.approx(1000)
    assert second["latency_ms_p95"] == pytest.approx(9.88, abs=0.01)
    assert end["transactions_per_s"] == pytest.approx(1000)
    assert (failed["failure"], failed["transactions_per_s"]) == ("the server died", None)


@pytest.mark.parametrize("terminal", [False, True])
def test_an_answer_so_far_stays_on_screen_in_log_and_feed(tmp_path: Path, terminal: bool) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=120, force_terminal=terminal, color_system=None)
    with progress.watched(console, tmp_path, 5) as seen:
        seen.so_far("after 3 blocks: B is 13 % faster")
        watch(seen)
    assert "after 3 blocks: B is 13 % faster\n" in screen.getvalue()
    assert "after 3 blocks: B is 13 % faster\n" in (tmp_path / progress.LOG_NAME).read_text()
    assert {"kind": "so_far", "text": "after 3 blocks: B is 13 % faster"} in events(tmp_path)


def test_a_run_that_is_broken_off_is_over_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), progress.feeding(tmp_path, 3):
        raise KeyboardInterrupt
    assert [event["kind"] for event in events(tmp_path)] == ["run", "over"]


def test_files_that_cannot_be_made_do_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    assert "the server died" in watch_long(tmp_path / "run")


def test_what_takes_long_is_told_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOOK_S", 0.01)
    with progress.noted("working"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "STDERR_EVERY_S", 0.1)
    with progress.noted("working"):
        time.sleep(1)
    assert capsys.readouterr().err.startswith("  working: for ")
