from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.verdict import Verdict
from dbdyno.language.catalogues import Language
from dbdyno.plan.load import LoadPlan
from dbdyno.report.formats import markdown
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.story import story_of
from dbdyno.report.tell import findings
from dbdyno.report.tell.findings import Telling
from support import making
from support.made_profiles import profile, sampled_trials
from support.made_rates import at_rate
from support.made_run import Run, run

GOLDEN = Path(__file__).parents[2] / "golden" / "report.txt"


def summary(made: Run, output: Output = Output.PLAIN) -> str:
    return render(Summary(made.plan, made.judgement, made.facts), output)


def test_the_text_is_the_golden_one(made: Run) -> None:
    text = summary(made)
    assert text == GOLDEN.read_text(), "if the change is meant, write the new text to the file"


def test_two_cells_fit_a_screen_of_25_lines(made: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Telling((Level.DOUBTFUL,), rule="", evidence="seen " * 90, advice="act " * 30)
    checks = [f"check-{number}" for number in range(9)]
    told = {**findings.FINDINGS, **dict.fromkeys(checks, row)}
    monkeypatch.setattr(findings, "FINDINGS", told)
    doubts = (Finding(check=check, level=Level.DOUBTFUL) for check in checks)
    every = (*made.judgement.findings, *doubts)
    doubtful = replace(made, judgement=made.judgement.model_copy(update={"findings": every}))
    for language in Language:
        text = render(Summary(made.plan, doubtful.judgement, made.facts), Output.PLAIN, language)
        lines = [part for one in text.splitlines() for part in textwrap.wrap(one, 100) or [""]]
        assert len(lines) < 25, "and a line that says where the report is"
    assert "and 7 more doubts in the report" in summary(doubtful)


def test_many_cells_are_told_by_their_workloads_and_a_table() -> None:
    made = run(
        making.plan(threads=(1, 2, 4, 8, 16), blocks=3),
        [t for n in (1, 2, 4, 8, 16) for t in making.pairs((0.8, 0.801, 0.799), threads=n)],
    )
    lines = summary(made).splitlines()
    assert lines[2].startswith(f"Compared with {making.A}, {making.B} reads and writes 20 % slower")
    assert lines[3].startswith(f"oltp_read_write, 5 cells: {making.B} is slower than {making.A}: ")
    assert lines[4] == f"{making.B} against {making.A} in 5 cells: slower in 5."
    assert lines[5].startswith(f"Why: {making.B} waits longer ")
    assert lines[7] == f"Verdicts against {making.A}"
    assert sum(f" {making.B} " in line and " slower " in line for line in lines[8:]) == 5


def test_a_doubt_about_every_verdict_is_told_once() -> None:
    trials = [
        making.measurement(system, block, threads=threads, steal=0.1)
        for threads in (8, 16)
        for block in range(3)
        for system in (making.A, making.B)
    ]
    made = run(making.plan(threads=(8, 16), blocks=3), trials)
    assert len(made.judgement.verdicts) == 2
    told = [line for line in summary(made).splitlines() if "machine (6×)" in line]
    assert told == ["every verdict: doubtful: machine (6×)"]
    page = markdown.render(story_of(made.plan, trials, made.judgement, made.facts))
    assert [line for line in page.splitlines() if "machine (6×)" in line] == [
        "- Every verdict: doubtful: machine (6×)."
    ]


def test_a_system_without_a_verdict_is_not_called_the_baseline(made: Run) -> None:
    imported = replace(made, judgement=made.judgement.model_copy(update={"verdicts": ()}))
    rows = [one for one in summary(imported, Output.MARKDOWN).splitlines() if one.startswith("|")]
    assert any(making.B in row and "no verdict" in row for row in rows)
    assert not any(making.B in row and "baseline" in row for row in rows)


def test_the_table_of_a_rate_has_the_percentile_that_its_verdict_is_about() -> None:
    took_ms = {making.A: 10.0, making.B: 20.0}
    trials = [
        at_rate(system, block, latency_ms=ms + block / 10)
        for block in range(3)
        for system, ms in took_ms.items()
    ]
    made = run(making.plan(blocks=3, load=LoadPlan(rates=("1000",))), trials)
    page = summary(made, Output.MARKDOWN)
    numbers = "TPS 1/s | Change [95 %] | p99 ms | Change [95 %]"
    assert f"| Cell | System | Verdict | {numbers} |\n" in page
    changes = "1 000 | 0.0 % [0.0, 0.0] | 20.61 | +99.0 % [+96.7, +101.4]"
    assert f"| {making.B} | slower | {changes} |\n" in page


def test_windows_too_short_for_a_percentile_are_the_reason_and_have_a_remedy() -> None:
    plan = making.plan(blocks=3, load=LoadPlan(rates=("200",), connections=64))
    trials = [at_rate(system, block, 200) for block in range(3) for system in (making.A, making.B)]
    lines = summary(run(plan, trials)).splitlines()
    assert "Too few requests in a trial for oltp_read_write, 200/s over 64 threads." in lines
    (verdict,) = (line for line in lines if " has no verdict: " in line)
    assert "p99 needs 10000 requests in each trial, one had 2000: use a window of 50 s" in verdict
    assert "valid blocks" not in verdict


def test_json_holds_the_judges_numbers(made: Run) -> None:
    read = json.loads(summary(made, Output.JSON))
    back = tuple(Verdict.model_validate(verdict) for verdict in read["verdicts"])
    assert back == made.judgement.verdicts
    assert read["run"]["run_id"] == "20261121-060000-made"


def test_an_incomplete_run_and_one_without_comparison_say_so(empty: Run) -> None:
    text = summary(empty)
    assert "incomplete (20 trials planned)" in text
    assert "Too few blocks for oltp_read_write." in text
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    assert summary(alone).endswith("no comparison was made\n")


def test_a_reason_is_said_once_and_nothing_steers_the_terminal() -> None:
    died = [making.measurement(s, failure="\x1b[2J\nbad") for s in (making.A, making.B)]
    made = run(making.plan(), died)
    text = summary(made)
    assert "\x1b" not in text
    assert text.count("0 valid blocks") == 1
    assert "No usable trials for oltp_read_write." in text


def test_a_failed_attempt_is_told_unless_a_complete_one_made_it_good() -> None:
    failed = making.measurement(failure="gone")
    still = run(making.plan(), [failed, making.measurement(making.B)])
    assert "void: trial-failed" in summary(still)
    good = run(making.plan(), [failed, making.measurement(), making.measurement(making.B)])
    assert "trial-failed" not in summary(good)


def test_a_run_with_sampled_stacks_begins_with_its_functions_and_is_no_measurement() -> None:
    below, above = profile({"spin": 50.0, "read": 20.0}), profile({"spin": 80.0, "read": 20.0})
    text = summary(run(making.plan(blocks=3), sampled_trials(below, above)))
    slowed, functions = text.splitlines()[2:4]
    assert slowed.startswith("Sampling stacks slowed the servers")
    assert functions.startswith(
        f"oltp_read_write, 8 threads, {making.B} against {making.A}: spin +30.00 (CPU µs per "
    )
    assert "dbdyno explain" not in text
