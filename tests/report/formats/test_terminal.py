"""None"""

from __future__ import annotations

import json
from pathlib import Path

from dbdyno.judge.verdict import Verdict
from dbdyno.report.formats.terminal import as_json, as_markdown, lines, padded, plain, printable
from dbdyno.report.parts import Column, Table
from support import making
from support.made_run import Run, run

GOLDEN = Path(__file__).parents[2] / "golden" / "report.txt"


def test_the_text_is_the_golden_one(made: Run) -> None:
    text = plain(made.plan, made.judgement, made.facts)
    assert text == GOLDEN.read_text(), "if the change is meant, write the new text to the file"


def test_json_holds_the_judges_numbers(made: Run) -> None:
    read = json.loads(as_json(made.plan, made.judgement, made.facts))
    back = tuple(Verdict.model_validate(verdict) for verdict in read["verdicts"])
    assert back == made.judgement.verdicts
    assert read["run"]["run_id"] == "20261121-060000-made"


def test_markdown_is_one_table_with_the_doubts_below(made: Run) -> None:
    lines = as_markdown(made.plan, made.judgement, made.facts).splitlines()
    rows = [line for line in lines if line.startswith("| oltp")]
    assert len(rows) == 4
    assert rows[3].startswith(
        "| oltp_read_write, 8 threads | mysql:8.0.15 | worse | 772.5 | −22.8 % [−23.8, −21.7] |"
    )
    assert lines[-1].startswith("- better 0, worse 1, equivalent 1")
    assert sum(line.startswith("- void: ") for line in lines) == 1


def test_an_incomplete_run_and_one_without_comparison_say_so(empty: Run) -> None:
    text = plain(empty.plan, empty.judgement, empty.facts)
    assert "incomplete (20 trials planned)" in text
    assert "no verdict 1" in text
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    assert plain(alone.plan, alone.judgement, alone.facts).endswith("no comparison was made\n")


def test_a_reason_is_said_once_and_nothing_steers_the_terminal() -> None:
    died = [making.measurement(s, failure="\x1b[2J\nbad") for s in (making.A, making.B)]
    made = run(making.plan(), died)
    text = plain(made.plan, made.judgement, made.facts)
    assert "\x1b" not in text
    assert text.count("0 sound blocks") == 1
    assert "void 1" in text


def test_a_failed_attempt_is_told_unless_a_complete_one_made_it_good() -> None:
    failed = making.measurement(failure="gone")
    still = run(making.plan(), [failed, making.measurement(making.B)])
    assert "void: trial-failed" in plain(still.plan, still.judgement, still.facts)
    good = run(making.plan(), [failed, making.measurement(), making.measurement(making.B)])
    assert "trial-failed" not in plain(good.plan, good.judgement, good.facts)


def test_columns_stand_side_by_side_and_numbers_to_the_right() -> None:
    columns = (Column("Name"), Column("TPS", numeric=True), Column("State"))
    rows = (("mysql", "1\u202f234", "sound"), ("数据库", "7", ""))
    assert list(lines(Table("caption", columns, rows))) == [
        "Name      TPS  State",
        "mysql   1 234  sound",
        "数据库      7",
    ]


def test_nothing_steers_the_terminal() -> None:
    assert printable("a\x1b[31mb\u202fc\n") == "a [31mb c "


def test_a_cell_is_padded_by_the_columns_it_takes() -> None:
    assert padded("p95", 5) == "p95  "
    assert padded("p95", 5, right=True) == "  p95"
    assert padded("请求", 5, right=True) == " 请求"
    assert padded("too long", 3) == "too long"
