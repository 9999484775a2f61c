"""What is printed at which verbosity, and the progress bar of a load."""

from __future__ import annotations

from io import StringIO

import pytest

from dbdyno.sysbench.console import ConsoleOutput, ProgressBar, progress_text

REPORT = "step\nline\nreport\n\n"
SHOWN = {0: "step\n", 2: "step\n", 3: REPORT, 4: f"{REPORT}info\n"}


@pytest.mark.parametrize("verbosity", SHOWN)
def test_verbosity_decides(capsys, verbosity):
    output = ConsoleOutput(verbosity)
    output.step("step")
    output.notice("line")
    output.notice("report\n")
    output.info("info")
    output.debug("debug")
    assert capsys.readouterr().out == SHOWN[verbosity]


# The progress bar.


class Terminal(StringIO):
    def isatty(self):
        return True


def progress(done, stage="insert", total=1_000_000):
    return {"table": 2, "stage": stage, "rows_done": done, "rows_total": total}


def test_the_bar_shows_rows_speed_and_time_left():
    shown = progress_text(progress(250_000), 2.0)
    bar = "###" + 9 * " "
    assert shown == f"loading [{bar}] 250,000 of 1,000,000 rows, 125,000 rows/s, 6 s left"
    assert progress_text(progress(1_000), 36.0).endswith(" rows, 28 rows/s, 9 h 59 min left")
    assert progress_text(progress(100_000), 30.0).endswith("3,333 rows/s, 4 min 30 s left")


def test_the_line_is_sound_before_the_first_row_and_after_the_last():
    assert progress_text(progress(0, "create"), 1.0).endswith("] 0 of 1,000,000 rows")
    done = progress_text(progress(1_000_000, "index"), 9.0)
    assert done == f"building indexes [{12 * '#'}] 1,000,000 of 1,000,000 rows"
    assert progress_text(progress(0, "create", total=0), 1.0) == "creating tables: table 2"


def test_a_terminal_sees_it_redrawn_and_in_the_end_nothing():
    terminal, now_s = Terminal(), iter([0.0, 1.0, 1.01, 2.0])
    with ProgressBar(terminal, lambda: next(now_s)) as bar:
        bar.update(progress(10))
        bar.update(progress(20))  # too soon
        bar.update(progress(30))
    text = terminal.getvalue()
    assert text.count("\r\x1b[K") == 3
    assert " 10 of " in text
    assert " 20 of " not in text
    assert text.endswith("left\r\x1b[K")


def test_nobody_else_sees_it():
    stream = StringIO()
    with ProgressBar(stream) as bar:
        bar.update(progress(10))
        bar.erase()
    assert stream.getvalue() == ""
