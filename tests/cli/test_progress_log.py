"""What is found in a run's log the morning after, and a log that cannot be written."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from tests.cli.test_progress import interval

from dbdyno.cli import progress
from dbdyno.cli.progress import GrowingFile, PlainProgress
from dbdyno.experiment.context import Progress
from support import making

TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d ", re.MULTILINE)


def watch(seen: Progress) -> None:
    first = making.measurement(making.A, tps=1000.0)
    seen.stage("mysql:5.7.22: restoring the dataset")
    seen.begin(first.trial, 1, 12, 3725.0)
    for second in range(1, 70):
        seen.interval(first.trial, interval(second), 60)
    seen.end(first.trial, first, 48.0)


GOLDEN = """\
mysql:5.7.22: restoring the dataset
trial 1/12, block 1/3: mysql:5.7.22, oltp_read_write, 8 threads; 1 h 02 min left
  measured 60 s: TPS 1000.0, QPS 20000.0, p95 9.88 ms; 1 min 00 s left
  mysql:5.7.22, oltp_read_write, 8 threads: TPS 1000.00, QPS 20000.00, p95 12.38 ms
"""


def shown() -> tuple[PlainProgress, io.StringIO]:
    screen = io.StringIO()
    return PlainProgress(Console(file=screen, width=200), 3), screen


def test_a_resumed_run_goes_on_in_its_log(tmp_path: Path) -> None:
    for _ in range(2):
        plain, screen = shown()
        with progress.logged(plain, tmp_path / "run", 3) as seen:
            watch(seen)
        assert "measured 10 s" in screen.getvalue(), "the screen is told as before"
    written = (tmp_path / "run" / progress.LOG_NAME).read_text()
    assert TIME.sub("", written) == 2 * GOLDEN
    assert len(TIME.findall(written)) == 8


def test_a_log_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    plain, screen = shown()
    with progress.logged(plain, tmp_path / "run", 3) as seen:
        watch(seen)
    assert "p95 12.38 ms" in screen.getvalue()


def test_a_disk_that_is_full_ends_the_log_only() -> None:
    plain, screen = shown()
    with suppress(OSError), Path("/dev/full").open("w") as full:
        watch(progress.LoggedProgress(plain, GrowingFile(full), 3))
    assert "p95 12.38 ms" in screen.getvalue()
