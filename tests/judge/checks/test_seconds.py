"""The seconds of a trial and their rates."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks.course import rates_of, whole_seconds
from support import making
from support.made_seconds import trial


def test_the_piece_at_the_windows_end_is_no_second():
    made = trial((100.0,) * 10)
    piece = made.intervals[-1].model_copy(update={"start_s": 12.0, "end_s": 12.2, "events": 30})
    made = making.changed(made, intervals=(*made.intervals, piece), window_s=10.2)
    assert len(whole_seconds(made)) == 10
    assert rates_of(made).tolist() == [100.0] * 10


def test_a_slow_clock_does_not_change_the_rate():
    made = trial((100.0,) * 10)
    late = made.intervals[5].model_copy(update={"end_s": made.intervals[5].start_s + 1.25})
    made = making.changed(made, intervals=(*made.intervals[:5], late, *made.intervals[6:]))
    assert rates_of(made)[3] == pytest.approx(80.0)
