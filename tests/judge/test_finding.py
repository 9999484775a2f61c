from __future__ import annotations

from dbdyno.judge.finding import Finding, Level, on_trial
from support import making


def test_place_counts_blocks_from_one() -> None:
    made = making.measurement(making.B, block=2)
    found = on_trial(made, "check", Level.NOTE, "seen", "do")
    assert found.place == "mysql:8.0.15, oltp_read_write, 8 threads, block 3"


def test_place_of_a_finding_on_the_run_is_empty() -> None:
    assert Finding(check="check", level=Level.NOTE, evidence="seen", advice="do").place == ""
