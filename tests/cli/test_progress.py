"""What is told while a run goes on: a bar on a terminal, lines elsewhere, a log and a feed."""

from __future__ import annotations

import io
import json
import random
import re
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.experiment.test_repeats import disturbing
from tests.experiment.test_runner import small, start, timed

from dbdyno.cli import progress
from dbdyno.cli.progress import Countdown, Feed, GrowingFile, Lines, Several, TerminalBar, growing
from dbdyno.errors import LoadError
from dbdyno.experiment.context import Progress
from dbdyno.experiment.schedule.forecast import outlook_of
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.schedule.timed import begun
from dbdyno.plan.plan import Plan
from dbdyno.store.store import FEED_NAME, Store
from support import fakes, making
from support.world import Clock, World

TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d ", re.MULTILINE)
NOTE = "after 3 blocks: B is 13 % faster"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time for progress, which passes when a test says so."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


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


def watch(seen: Progress, clock: Clock, seconds: int = 21) -> None:
    """A trial of so many seconds, and a failed trial."""
    first = making.measurement(making.A, tps=1000.0)
    failed = making.measurement(making.B, failure="mysql:8.0.15 died in the window")
    seen.stage("mysql:5.7.22: restoring the dataset")
    seen.begin(first.trial, 1, 12, 3725.0)
    for second in range(1, seconds + 1):
        clock.sleep(1)
        seen.interval(first.trial, interval(second, "warmup" if second < 3 else "measured"), 60)
    seen.end(first.trial, first, 48.0)
    seen.begin(failed.trial, 2, 12, 47.6)
    seen.interval(failed.trial, interval(10, errors=3), 185)
    seen.end(failed.trial, failed, 30.0)


# The countdown: the number and the bar only rise, the time left rises for a cause.


def test_noise_in_the_estimates_never_raises_the_time_left(clock: Clock) -> None:
    drawn, shown = random.Random(0), []
    countdown = Countdown(20, 0, 600.0)
    for number in range(1, 21):
        countdown.begin(number, 20, 30 * (21 - number) * drawn.uniform(0.96, 1.04))
        for _ in range(30):
            shown.append(countdown.seconds)
            clock.sleep(drawn.uniform(0.9, 1.1))
    assert shown == sorted(shown, reverse=True)
    assert shown[0] > 560
    assert shown[-1] < 10


def test_more_trials_and_trials_that_take_much_longer_raise_the_time_left(clock: Clock) -> None:
    countdown = Countdown(10, 0, 100.0)
    countdown.begin(1, 10, 100.0)
    clock.sleep(10)
    countdown.begin(2, 12, 105.0)
    assert countdown.seconds == 105
    countdown.expect(115.0)
    assert countdown.seconds == 105
    clock.sleep(5)
    assert countdown.seconds == 105, "it stands still until the estimate has come down to it"
    clock.sleep(10)
    assert countdown.seconds == 100
    countdown.expect(300.0)
    assert countdown.seconds == 300
    clock.sleep(400)
    assert countdown.seconds == 0


def test_a_resumed_run_begins_where_it_was(clock: Clock) -> None:
    countdown = Countdown(16, 12, 1600.0)
    assert (countdown.number, countdown.share, countdown.seconds) == (13, 0.75, 400)
    countdown.begin(13, 40, 2700.0)
    assert (countdown.number, countdown.total, countdown.share) == (13, 40, 0.75)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("plan", [small(blocks=6), timed(200)])
def test_in_a_whole_run_only_added_trials_raise_the_time_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, plan: Plan, seed: int
) -> None:
    world, outlook, drawn = World(), outlook_of(plan), random.Random(seed)
    monkeypatch.setattr(progress, "time", world.clock)
    disturbing(monkeypatch, trials_of(begun(plan), "")[0].key)
    countdown = Countdown(len(outlook.trials), 0, outlook.seconds)
    seen = []

    def look() -> None:
        world.clock.sleep(drawn.uniform(0, 0.9))
        seen.append((countdown.number, countdown.share, countdown.total, countdown.seconds))

    start(store, plan, world, Several([fakes.Progress(hand_over=look)], countdown))
    numbers, shares, totals, _ = zip(*seen, strict=True)
    assert numbers == tuple(sorted(numbers))
    assert shares == tuple(sorted(shares))
    assert shares[-1] > 0.9
    assert len(set(totals)) > 1, "a block was measured again"
    for (*_, total, before_s), (*_, total_now, now_s) in pairwise(seen):
        assert now_s <= before_s or total_now > total


# Lines, where there is no terminal.


def test_a_trial_gets_a_line_at_its_ends_and_every_ten_seconds(clock: Clock) -> None:
    log = io.StringIO()
    with progress.on_console(Console(file=log, width=60), Countdown(12, 0, 60)) as seen:
        watch(seen, clock)
    lines = log.getvalue().splitlines()
    assert len(lines) == 1 + (1 + 2 + 1) + 2
    assert lines[1].endswith("1 h 02 min left")
    assert all("TPS 1000.0, QPS 20000.0, p95 9.88 ms" in line for line in lines[2:4])
    assert lines[-1].endswith("failed: mysql:8.0.15 died in the window")


def test_a_load_gets_a_line_every_ten_seconds(clock: Clock) -> None:
    written: list[str] = []
    lines = Lines(written.append, 10.0)
    for percent in range(100):
        lines.stage(f"mysql:8.0.15: loading rows, {percent} %")
        clock.sleep(0.5)
    assert [line.split()[-2] for line in written] == ["0", "20", "40", "60", "80"]
    lines.stage("mysql:5.7.22: loading rows, 0 %")
    assert written[-1] == "mysql:5.7.22: loading rows, 0 %"


def test_nothing_is_waited_for_in_silence(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOOK_S", 0.001)
    log, ends = io.StringIO(), time.monotonic() + 60
    with progress.noted("working"):
        pass
    assert capsys.readouterr().err == ""
    plain = progress.on_console(Console(file=log), Countdown(12, 0, 60))
    with plain as seen, progress.noted("judging"):
        seen.stage("restoring")
        for lines in (1, 2, 3):
            while log.getvalue().count("\n") < lines and time.monotonic() < ends:
                time.sleep(0.01)
            clock.sleep(10)
    assert log.getvalue().startswith(
        "restoring\n  restoring: for 10 s now\n  restoring: for 20 s now\n"
    )
    assert capsys.readouterr().err.startswith("  judging: for ")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_a_server_said_does_not_steer_the_terminal(
    terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    log = io.StringIO()
    failed = making.measurement(making.B, failure="it died: \x1b]0;owned\x07\n\x9b2J")
    console = Console(file=log, width=120, force_terminal=terminal, color_system=None)
    with progress.on_console(console, Countdown(12, 0, 60)) as seen:
        seen.stage("\x1b]0;owned\x07")
        seen.end(failed.trial, failed, 30.0)
    assert "it died:  ]0;owned" in log.getvalue()
    assert not any(sign in log.getvalue() for sign in ("\x1b]0", "\x07", "\x9b"))
    progress.note("title \x1b[2J\nnext")
    assert capsys.readouterr().err == "title  [2J\nnext\n"


def test_markup_in_a_message_is_printed_as_it_is() -> None:
    log = io.StringIO()
    with progress.on_console(Console(file=log), Countdown(12, 0, 60)) as seen:
        seen.stage("[red]mysqld[/red] said: no")
    assert log.getvalue() == "[red]mysqld[/red] said: no\n"


def test_an_interval_without_requests_has_no_p95() -> None:
    nothing = interval(3, events=0, queries=0, seconds=0.0, latency_ms={})
    assert progress.speed(nothing).endswith("TPS 0.0, QPS 0.0, p95 –")


# A bar, where there is a terminal.


def terminal(file: io.StringIO, width: int = 80, term: str = "xterm") -> Console:
    environment = {"TERM": term}
    return Console(
        file=file, width=width, force_terminal=True, color_system=None, _environ=environment
    )


def screen_of(written: str) -> list[str]:
    """The lines of a terminal after the text."""
    lines, row, column = [""], 0, 0
    for sign in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|.|\n", written):
        if sign == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif sign == "\r":
            column = 0
        elif sign == "\x1b[1A":
            row -= 1
        elif sign == "\x1b[2K":
            lines[row] = ""
        elif not sign.startswith("\x1b"):
            kept = lines[row].ljust(column)
            lines[row] = kept[:column] + sign + kept[column + 1 :]
            column += 1
    return [line.rstrip() for line in lines if line.rstrip()]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_bar_is_two_lines_of_the_terminals_width(width: int, clock: Clock) -> None:
    steps: list[list[str]] = []
    countdown = Countdown(12, 0, 3725.0)

    class Drawn(TerminalBar):
        def stage(self, text: str) -> None:
            super().stage(text)
            file = io.StringIO()
            terminal(file, width).print(self)
            steps.append(file.getvalue().splitlines())

    bar = Drawn(terminal(io.StringIO(), width), countdown)
    seen = Several([bar], countdown)
    seen.stage("[b]mysql:8.0.15[/b]: loading rows, 35 %")
    watch(seen, clock)
    seen.stage(f"{'a system with a long name' * 9}: {'a step with a long name' * 9}")
    assert all(len(lines) == 2 for lines in steps)
    assert all(len(line) <= width for lines in steps for line in lines)
    assert all(" of 12 " in first and first.endswith(" left") for first, _ in steps)
    loading, *_ = [second for _, second in steps]
    assert loading.startswith("[b]mysql:8.0.15[/b] ")
    assert loading.endswith(" loading rows, 35 %")
    assert sum("1 000 TPS" in second for _, second in steps) == 22
    assert all("mysql:5.7.22, oltp_read_write" in second for _, second in steps[2:10])
    blocks = [first.count("█") for first, _ in steps]
    assert blocks == sorted(blocks)
    assert blocks[-1] > 0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LoadError("no server answers")])
def test_the_end_of_a_run_leaves_notes_and_failures_and_no_bar(
    error: BaseException, clock: Clock
) -> None:
    file = io.StringIO()
    with (
        suppress(type(error)),
        progress.on_console(terminal(file, 120), Countdown(12, 0, 60)) as seen,
    ):
        watch(seen, clock)
        seen.note(NOTE)
        *above, bar, _ = screen_of(file.getvalue())
        assert bar.endswith(" left")
        assert not any(line.endswith(" left") for line in above)
        raise error
    failure, note = screen_of(file.getvalue())
    assert failure.endswith("failed: mysql:8.0.15 died in the window")
    assert note == NOTE
    assert file.getvalue().rindex("\x1b[?25h") > file.getvalue().rindex("\x1b[?25l")


def test_a_terminal_without_a_cursor_or_blocks_gets_lines(clock: Clock) -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"

    dumb, ascii_only = io.StringIO(), Ascii()
    for console in (terminal(dumb, term="dumb"), terminal(ascii_only)):
        with progress.on_console(console, Countdown(12, 0, 60)) as seen:
            watch(seen, clock)
    assert dumb.getvalue() == ascii_only.getvalue()
    assert len(dumb.getvalue().splitlines()) == 7


# Files that grow beside a report.


def test_lines_are_there_at_once_and_behind_those_of_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.txt"
    for line in ("one", "two"):
        with growing(path) as file:
            file.add(line)
            assert path.read_text().endswith(f"{line}\n")
    assert path.read_text() == "one\ntwo\n"


def test_a_full_disk_ends_the_file_only(clock: Clock) -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:
        file = GrowingFile(full)
        for _ in range(3):
            watch(Feed(file), clock)
        assert file._file is None


def watch_all(folder: Path, clock: Clock) -> str:
    """The screen in a trial of 69 seconds and a failed trial; log and feed are in the folder."""
    screen = io.StringIO()
    countdown = Countdown(12, 0, 60)
    with progress.watched(Console(file=screen, width=200), folder, countdown) as seen:
        watch(seen, clock, 69)
        seen.note(NOTE)
    return screen.getvalue()


def events(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / FEED_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_resumed_run_goes_on_in_its_log_and_in_its_feed(tmp_path: Path, clock: Clock) -> None:
    for _ in range(2):
        screen = watch_all(tmp_path / "run", clock).splitlines()
    written = (tmp_path / "run" / progress.LOG_NAME).read_text()
    log = TIME.sub("", written).splitlines()
    assert len(TIME.findall(written)) == len(log) == 2 * 7
    assert log[:7] == log[7:]
    assert screen == [*log[:2], *[log[2]] * 6, *log[3:7]], "a line every ten seconds, and a minute"
    assert NOTE in log
    once = ["run", "stage", "begin", *["interval"] * 69, "end", "begin", "interval", "end"]
    assert [event["kind"] for event in events(tmp_path / "run")] == [*once, "note", "over"] * 2


def test_the_feed_has_numbers_for_a_chart(tmp_path: Path, clock: Clock) -> None:
    watch_all(tmp_path, clock)
    _, _, begin, second, *_, failed, note, _ = events(tmp_path)
    assert (begin["system"], begin["cell"]) == (making.A, "oltp_read_write, 8 threads")
    assert (begin["block"], begin["number"], begin["total"]) == (1, 1, 12)
    assert second["transactions_per_s"] == pytest.approx(1000)
    assert second["latency_ms_p95"] == pytest.approx(9.88, abs=0.01)
    assert failed["failure"] == "mysql:8.0.15 died in the window"
    assert failed["transactions_per_s"] is None
    assert note["text"] == NOTE


def test_a_run_that_is_broken_off_is_over_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), progress.feeding(tmp_path):
        raise KeyboardInterrupt
    assert [event["kind"] for event in events(tmp_path)] == ["run", "over"]


def test_files_that_cannot_be_made_do_not_end_the_run(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    assert NOTE in watch_all(tmp_path / "run", clock)
