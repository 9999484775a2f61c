from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.uses.gate import Gate, gate
from dbdyno.language.words import name
from dbdyno.report.formats.gate import (
    DIFFERENCES_MAX,
    DOUBTS_MAX,
    GateResult,
    doubts,
    junit,
)
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.tell import findings
from dbdyno.report.tell.findings import Telling
from support.made_run import Run

GOLDEN = Path(__file__).parents[2] / "golden"


def gate_of(made: Run, slower_max: float = 0.03) -> Gate:
    return gate(made.judgement.verdicts, slower_max)


def result(made: Run) -> GateResult:
    return GateResult(gate_of(made), made.judgement, made.facts)


def test_the_text_and_the_markdown_are_the_golden_ones(made: Run) -> None:
    text = render(result(made), Output.PLAIN)
    assert text == (GOLDEN / "gate.txt").read_text(), "if it is meant, write the new text there"
    page = render(result(made), Output.MARKDOWN)
    assert page == (GOLDEN / "gate.md").read_text(), "if it is meant, write the new text there"


def test_json_has_the_outcome_and_the_numbers(made: Run) -> None:
    read = json.loads(render(result(made), Output.JSON))
    assert read["holds"] is False
    (slower,) = (p for p in read["gate"]["passages"] if p["outcome"] == "slower")
    assert slower["verdict"]["estimate"]["ratio"] == made.judgement.verdicts[1].estimate.ratio
    assert read["run"]["run_id"] == made.facts.run_id


def test_doubts_are_told_and_a_long_list_is_cut(
    made: Run, empty: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (void,) = doubts(made.judgement, made.facts)  # the failed trial was made good
    assert void.startswith("void: client-bound")
    assert "incomplete" in doubts(empty.judgement, empty.facts)[0]
    row = Telling((Level.DOUBTFUL,), rule="", evidence="seen", advice="do")
    monkeypatch.setattr(findings, "FINDINGS", {f"c{n}": row for n in range(DOUBTS_MAX + 3)})
    many = [Finding(check=f"c{n}", level=Level.DOUBTFUL) for n in range(DOUBTS_MAX + 3)]
    sentences = doubts(made.judgement.model_copy(update={"findings": tuple(many)}), made.facts)
    assert len(sentences) == DOUBTS_MAX + 1
    assert sentences[-1] == "and 3 more doubts; see the report"


def test_differences_of_two_runs_are_cut_in_text_and_whole_in_json(made: Run) -> None:
    rows = tuple(
        (name(f"fact {number}"), name("1"), name("2")) for number in range(DIFFERENCES_MAX + 3)
    )
    compared = dataclasses.replace(result(made), differences=rows)
    said = render(compared, Output.PLAIN)
    assert "fact 0 was 1 in the earlier run and is 2 in this run\n" in said
    assert "and 3 more; all of them: --output json\n" in said
    assert len(json.loads(render(compared, Output.JSON))["differences"]) == len(rows)


# The file is what CI systems read: counted right, escaped, and without a test that passes by
# saying nothing.


def suite(run: Run, slower_max: float = 0.03, strict: bool = False) -> ElementTree.Element:
    made = gate(run.judgement.verdicts, slower_max, strict=strict)
    return ElementTree.fromstring(junit(made, run.facts)).find("testsuite")


def counts(found: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(found.get(name) for name in ("tests", "failures", "skipped", "errors"))


def test_a_slower_system_is_a_failure(made: Run) -> None:
    found = suite(made)
    assert counts(found) == ("2", "1", "0", "0")
    (failed,) = [case for case in found.iter("testcase") if case.find("failure") is not None]
    assert failed.get("name") == "oltp_read_write, 8 threads"
    assert failed.get("classname") == "mysql:8.0.15 against mysql:5.7.22"
    failure = failed.find("failure")
    assert "−22.8 %" in (failure.get("message") or "")


@pytest.mark.parametrize(("strict", "counted"), [(False, ("2", "0", "1")), (True, ("2", "1", "0"))])
def test_undecided_is_never_a_passed_test(made: Run, strict: bool, counted: tuple[str]) -> None:
    assert counts(suite(made, 0.228, strict))[:3] == counted


def test_a_gate_that_decides_nothing_has_a_test_that_fails(empty: Run) -> None:
    assert counts(suite(empty))[1] == "1"


def test_signs_that_no_xml_may_hold_are_replaced(made: Run) -> None:
    strange = made.facts.model_copy(update={"run_id": 'a\x00b\x1b<&>"\ud800é'})
    found = ElementTree.fromstring(junit(gate(made.judgement.verdicts, 0.03), strange))
    text = found[0].get("name")
    assert text == 'dbdyno gate a\ufffdb\ufffd<&>"\ufffdé'
