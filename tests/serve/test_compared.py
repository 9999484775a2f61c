"""Two systems side by side: numbers with what differs, and no verdict across runs."""

from __future__ import annotations

from pathlib import Path

from dbdyno.serve.runs import Row, Side, compared
from support import making
from support.made_workspace import runs_of, stored_run


def test_systems_of_two_runs_have_numbers_and_a_caveat_but_no_verdict(tmp_path: Path) -> None:
    runs = runs_of(tmp_path)
    first, second = (stored_run(tmp_path, blocks=b, tps=t) for b, t in ((3, 1000.0), (5, 1100.0)))
    sides = (Side(runs.judged(first), making.A), Side(runs.judged(second), making.A))
    made = compared(*sides)
    assert "there is no verdict" in made.caveat
    assert made.rows[0] == Row(
        cell="oltp_read_write, 8 threads",
        metric="TPS, 1/s",
        first="1\u202f001",
        second="1\u202f102",
        difference="+10.1 %",
    )
    assert [row.metric for row in made.rows] == ["TPS, 1/s", "p95, ms"]
    unlike = {name: (a, b) for name, a, b in made.differences}
    assert unlike["blocks"] == ("3", "5")
    assert unlike["cpu"] == ("made 1000", "made 1100")
    assert "seed" not in unlike
    assert sides[0].name == f"{making.A} ({first})"


def test_systems_of_one_run_lead_to_its_verdict(tmp_path: Path) -> None:
    run = runs_of(tmp_path).judged(stored_run(tmp_path))
    made = compared(Side(run, making.A), Side(run, making.B))
    assert "the run's report has the verdict" in made.caveat
    assert made.differences == ()
    assert made.rows[0].difference.startswith("−30")


def test_a_system_without_a_sound_trial_has_no_row(tmp_path: Path) -> None:
    runs = runs_of(tmp_path)
    whole = runs.judged(stored_run(tmp_path))
    empty = runs.judged(stored_run(tmp_path, trials=0))
    made = compared(Side(whole, making.A), Side(empty, making.A))
    assert made.rows == ()
    assert made.only == ("oltp_read_write, 8 threads",)
