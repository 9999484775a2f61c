"""The sections on open loops: limit, curve, pilot."""

from __future__ import annotations

from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.plan.load import LoadPlan
from dbdyno.report import document as report_document
from dbdyno.report.formats import markdown
from dbdyno.report.parts import Entries, Table
from dbdyno.report.sections import cells
from dbdyno.report.story import tell
from support import making
from support.made_run import Run, run

MADE = run(plan_of(3), trials_of({making.A: [1000, 1010, 990], making.B: [1100, 1111, 1089]}))


def tables(made: Run) -> list[Table]:
    section = cells.within_limit(made.judgement)
    return [part for part in section.parts if isinstance(part, Table)]


def test_each_system_has_its_rate_with_interval_and_every_block() -> None:
    limits, _ = tables(MADE)
    assert [row[0] for row in limits.rows] == [making.A, making.B]
    assert [row[3] for row in limits.rows] == ["3", "3"]
    assert all(len(row[4].split(", ")) == 3 for row in limits.rows)


def test_the_curve_says_where_a_rate_was_not_sustained() -> None:
    _, curve = tables(MADE)
    assert [column.heading for column in curve.columns] == [
        "events/s due",
        f"{making.A}, p50 ms",
        "sustained",
        f"{making.B}, p50 ms",
        "sustained",
    ]
    assert curve.rows[0][2] == "3/3"
    assert curve.rows[-1][2] == "0/3"


def test_the_verdict_is_told_with_its_meaning() -> None:
    section = cells.within_limit(MADE.judgement)
    (entries,) = [part for part in section.parts if isinstance(part, Entries)]
    assert entries.entries[0].mark == "better"
    assert "rate within the limit" in entries.entries[0].text


def test_the_pilot_is_told_with_what_it_chose() -> None:
    section = cells.pilot(MADE.plan)
    (table,) = [part for part in section.parts if isinstance(part, Table)]
    assert [row[1:4] for row in table.rows] == [
        (making.A, "1\u202f250", "1\u202f000"),
        (making.B, "1\u202f250", "1\u202f000"),
    ]


def test_the_whole_report_has_both_and_says_what_latency_is() -> None:
    page = markdown.render(tell(MADE.plan, MADE.measurements, MADE.judgement, MADE.facts))
    conclusion = page.split("\n## ")[0]
    assert "sustains" in conclusion
    assert "## Throughput within the latency limit" in page
    assert "## How the rates were chosen" in page
    assert "open loop at rates around the limit, over 64 connections" in page
    assert "which this run did not use" not in page
    document = report_document.document(MADE.plan, MADE.measurements, MADE.judgement, MADE.facts)
    assert len(document["slo"][0]["limits"]) == 2
    assert document["trials"][0]["arrivals"] > 0


def test_a_closed_loop_has_neither(made: Run) -> None:
    assert cells.within_limit(made.judgement).parts == ()
    assert cells.pilot(made.plan).parts == ()


def test_rates_that_were_given_need_no_pilot_section() -> None:
    plan = making.plan().model_copy(update={"load": LoadPlan(rates=("500",), threads=(8,))})
    empty = run(plan, [])
    assert cells.pilot(plan).parts == ()
    page = markdown.render(tell(plan, [], empty.judgement, empty.facts))
    assert "Load: closed loop of 8 connections" in page
    assert "Load: open loop of 500 events/s over 64 connections" in page
